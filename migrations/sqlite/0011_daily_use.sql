-- What people have used of a day.

-- Only of those whose turns or tokens of a day are limited, and only of the last day on which they wrote.
create table daily_use (
    channel text not null,
    id text not null,               -- who it is, as InboundEvent::person names them
    day integer not null,           -- days since 1970-01-01, in the gateway's time zone
    turns integer not null,
    tokens integer not null,
    primary key (channel, id)
) strict, without rowid;
