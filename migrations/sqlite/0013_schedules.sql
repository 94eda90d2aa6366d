-- What the gateway begins at given times, and what became of each time.

create table schedules (
    id blob not null primary key,
    name text not null unique,
    body text not null              -- JSON: Schedule
) strict, without rowid;

-- Of each schedule the last hundred.
create table schedule_runs (
    schedule_id blob not null references schedules (id),
    due_at integer not null,
    at integer not null,            -- when it was acted on
    turns text not null,            -- JSON: list of ids of turns, which may be gone
    problem text,                   -- why none was begun
    primary key (schedule_id, due_at)
) strict, without rowid;
