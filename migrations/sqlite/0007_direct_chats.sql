-- Where people who are known are reached.

-- The direct chat of each identity, since they wrote there.
create table direct_chats (
    channel text not null,
    id text not null,               -- whose chat it is, as InboundEvent::person names them
    chat text not null,
    thread text not null,           -- '' without a thread
    since integer not null,         -- since when they write there, and not on another of their channels
    primary key (channel, id)
) strict, without rowid;
