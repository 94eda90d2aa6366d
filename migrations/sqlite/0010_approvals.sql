-- What agents ask approval for, and who was told of it.

create table approvals (
    seq integer primary key,     -- the order in which they were asked for
    id blob not null unique,
    turn_id blob not null references turns (id),
    channel text not null,
    agent text not null,
    person text not null,        -- the name of who wrote the turn, or their id
    action text not null,
    details text,
    kind text,
    asked_at integer not null,
    expires_at integer,          -- null: a rule decided it
    state text not null,         -- waiting, approved, declined, expired, dropped
    decided_at integer,
    decided_by text,
    note text
) strict;

create index approvals_of_turn on approvals (turn_id);
create index approvals_waiting on approvals (seq) where state = 'waiting';

create table approval_notices (
    approval_id blob not null,
    person_id blob not null,
    turn_id blob not null references turns (id), -- the message
    primary key (approval_id, person_id)
) strict, without rowid;

create index approval_notices_of_turn on approval_notices (turn_id);
