-- Who is known on which channels, and who asks to be let in.

create table people (
    id blob not null primary key,
    name text not null,
    role text not null,             -- member, owner
    created_at integer not null
) strict, without rowid;

-- Who people are on channels.
create table identities (
    channel text not null,
    id text not null,               -- as InboundEvent::person names them
    person_id blob not null references people (id),
    added_at integer not null,
    added_by text not null,         -- who let them in: the name of a token, configuration, or the name of an owner
    primary key (channel, id)
) strict, without rowid;

create index identities_of_person on identities (person_id);

-- Requests to be let in, at most one of each sender. Those that have expired are removed with the next request.
create table pairings (
    channel text not null,
    id text not null,               -- who asks, as InboundEvent::person names them
    code text not null unique,      -- without the dash
    name text,                      -- the display name, and the unique one, that the platform gave
    username text,
    chat text not null,             -- where they asked
    thread text not null,           -- '' without a thread
    asked_at integer not null,
    expires_at integer not null,    -- of a declined request: until when they cannot ask again
    state text not null,            -- waiting, declined, approved: let in, and not told yet
    primary key (channel, id)
) strict, without rowid;
