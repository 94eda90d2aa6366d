-- Ids are UUIDv7 as 16 bytes; times are milliseconds since the Unix epoch; JSON columns hold what
-- serde writes for the type of that name in rejoinder-core.

create table channels_cursor (
    channel text not null,
    name text not null,
    position text not null,
    primary key (channel, name)
) strict, without rowid;

create table conversations (
    id blob not null primary key,
    channel text not null,
    chat text not null,
    thread text not null,           -- '' where there is none
    session_id blob                 -- the current one; null until something was said there
        references sessions (id) deferrable initially deferred,
    created_at integer not null,
    -- An older conversation whose chat moved to where this one is: what was accepted in this one ends here, what comes
    -- next belongs to the older one.
    succeeded_by blob references conversations (id)
) strict, without rowid;

create unique index conversations_by_address on conversations (channel, chat, thread) where succeeded_by is null;
create index conversations_succeeded on conversations (channel, chat, thread) where succeeded_by is not null;
-- A session and its conversation refer to each other, so one of them is checked at the commit. For each
-- new session SQLite then looks for the conversations that wait for it.
create index conversations_by_session on conversations (session_id);

create table sessions (
    id blob not null primary key,
    conversation_id blob not null references conversations (id),
    created_at integer not null
) strict, without rowid;

create table events (
    id blob not null primary key,
    channel text not null,
    chat text not null,
    thread text not null,           -- '' where there is none
    external_id text not null,
    revision integer not null,
    turn_id blob,                   -- the turn it became; that row is written after this one
    text text not null,
    details text not null,          -- JSON: the rest of the event
    raw text not null,              -- the payload as it was received
    received_at integer not null
) strict;

create unique index events_by_key on events (channel, external_id, revision);

create table turns (
    id blob not null primary key,
    event_id blob not null references events (id),
    conversation_id blob not null references conversations (id),
    session_id blob not null references sessions (id),
    agent text,                     -- who answers: an agent, or the gateway with a command
    command text,
    accepted_at integer not null,
    picked blob,                    -- the turn that the first pick opened, where this one was answered with a question
    check ((agent is null) <> (command is null))
) strict, without rowid;

create index turns_of_conversation on turns (conversation_id, id);

-- What is owed for a turn. `body` is the guard's machine; the columns beside it repeat what is
-- searched for.
create table obligations (
    turn_id blob not null primary key references turns (id),
    conversation_id blob not null,
    version integer not null,
    owed integer not null,          -- whether an answer is owed
    state text not null,
    work text,                      -- waiting, running, or null
    wake_at integer,
    ended_at integer,               -- when it was settled or given up
    absent integer not null default 0,  -- whether its channel is not configured: nothing is done until it is again
    body text not null              -- JSON: Obligation
) strict, without rowid;

-- The column of a condition stands in its index as well where rows are counted: the index alone is read.
create index obligations_live on obligations (conversation_id, turn_id, owed, ended_at) where ended_at is null;
-- The scheduler asks which conversations have turns waiting, and steps from one to the next: a conversation
-- with a long line costs it no more than any other.
create index obligations_waiting on obligations (conversation_id, turn_id, work, absent)
    where work = 'waiting' and absent = 0;
create index obligations_running on obligations (turn_id) where work = 'running' and absent = 0;
create index obligations_wake on obligations (wake_at) where wake_at is not null and absent = 0;
create index obligations_absent on obligations (turn_id, absent) where absent = 1;
create index obligations_undeliverable on obligations (turn_id, state) where state = 'undeliverable';

create table runs (
    turn_id blob not null references turns (id),
    number integer not null,
    agent text,                     -- as of turns
    command text,
    owner blob not null,            -- the process that it began in
    started_at integer not null,
    ended_at integer,
    ending text,                    -- reply, reaction, deferral, silent, failed, stopped, crashed
    detail text,
    usage text,                     -- JSON: Usage
    primary key (turn_id, number)
) strict, without rowid;

create table deliveries (
    id blob not null primary key,
    turn_id blob not null references turns (id),
    claim integer not null,         -- 0: the message of a draft
    part integer not null,
    parts integer not null,
    conversation_id blob not null references conversations (id),
    seq integer not null,           -- the order within the conversation
    class text not null,            -- final, interim, typing, draft
    signal text not null,           -- reply, reaction, deferral
    via text not null,              -- JSON: Via
    is_copy integer not null,
    action text not null,           -- JSON: Action
    state text not null,            -- pending, sending, delivered, withdrawn, refused, dead
    attempts integer not null,
    next_attempt_at integer not null,
    labelled integer not null,
    message_ids text not null,      -- JSON: list of text
    error text,
    created_at integer not null,
    delivered_at integer,
    fetched_at integer,
    absent integer not null default 0   -- as of obligations
) strict;

create unique index deliveries_in_order on deliveries (conversation_id, seq);
create index deliveries_of_turn on deliveries (turn_id, claim, part);
create index deliveries_undelivered on deliveries (conversation_id, seq) where state in ('pending', 'sending');
create index deliveries_pending on deliveries (next_attempt_at, state, absent) where state = 'pending' and absent = 0;
create index deliveries_absent on deliveries (turn_id, absent) where absent = 1;

create table attempts (
    delivery_id blob not null references deliveries (id),
    number integer not null,
    owner blob not null,            -- the process that it began in
    started_at integer not null,
    ended_at integer,
    result text,                    -- delivered, or the error's name
    detail text,
    primary key (delivery_id, number)
) strict, without rowid;

create index attempts_open on attempts (delivery_id) where ended_at is null;

create table transcript (
    session_id blob not null references sessions (id),
    turn_id blob not null references turns (id),
    speaker text not null,          -- person, agent, gateway
    name text,                      -- who said it, in chats of several people
    text text not null,
    at integer not null,
    primary key (session_id, turn_id, speaker)
) strict, without rowid;

create table audit (
    id integer primary key,
    turn_id blob not null references turns (id),
    at integer not null,
    kind text not null,
    detail text not null
) strict;

create index audit_of_turn on audit (turn_id);

-- Scopes that a platform blocked.
create table blocked (
    channel text not null,
    account integer not null,       -- whether the whole account is meant
    chat text not null,             -- '' for the account
    until integer not null,
    primary key (channel, account, chat)
) strict, without rowid;

-- One row, written to see whether writing works.
create table probe (
    id integer primary key check (id = 1),
    count integer not null
) strict;

insert into probe (id, count) values (1, 0);
