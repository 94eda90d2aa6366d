-- What agents cost for people on a day, and what agents with a budget have used of one.

alter table daily_use add column micros integer not null default 0; -- in millionths of the currency of the agents' prices

create table agent_use (
    agent text primary key,
    day integer not null,           -- days since 1970-01-01, in the gateway's time zone
    turns integer not null,         -- runs, of which a turn may have several
    tokens integer not null,
    micros integer not null         -- in millionths of the currency of its price
) strict, without rowid;
