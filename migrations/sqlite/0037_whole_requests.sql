-- What agents ask approval for, as they asked for it, where the approval's row has only a part of it.

create table whole_requests (
    approval_id blob primary key references approvals (id),
    action text not null,
    details text,
    kind text
) strict, without rowid;
