-- How often what is decided on together was changed: who decides on it finds that somebody else was first.

create table versions (
    noun text primary key,          -- people, schedules, tokens
    version integer not null
) strict, without rowid;

insert into versions (noun, version) values ('people', 0), ('schedules', 0), ('tokens', 0);

alter table conversations add column sessions_version integer not null default 0;
alter table people add column sessions_version integer not null default 0;
