-- Ids are UUIDv7 as 16 bytes. Times are milliseconds since the Unix epoch. JSON columns hold the serde form of the
-- named type of rejoinder-core.

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
    thread text not null,           -- '' without a thread
    session_id blob                 -- the current session; null until the first turn
        references sessions (id) deferrable initially deferred,
    created_at integer not null,
    -- An older conversation with the same address, when a chat moved to this one's id: turns of this one end here,
    -- new events go to the older one.
    succeeded_by blob references conversations (id)
) strict, without rowid;

create unique index conversations_by_address on conversations (channel, chat, thread) where succeeded_by is null;
create index conversations_succeeded on conversations (channel, chat, thread) where succeeded_by is not null;
-- A session and its conversation refer to each other, so one foreign key is checked at the commit. For each
-- new session SQLite then looks for the conversations that refer to it.
create index conversations_by_session on conversations (session_id);
create index conversations_by_successor on conversations (succeeded_by) where succeeded_by is not null;

create table sessions (
    id blob not null primary key,
    conversation_id blob not null references conversations (id),
    created_at integer not null
) strict, without rowid;

create index sessions_of_conversation on sessions (conversation_id);

-- Of an event that opened and changed no turn, and of one whose turn was removed, only the key is stored, by which the event
-- is known when it arrives again: text and details are null, chat and thread are empty.
create table events (
    id blob not null primary key,
    channel text not null,
    chat text not null,
    thread text not null,           -- '' without a thread
    external_id text not null,
    revision integer not null,
    turn_id blob,                   -- the turn it opened or changed; no foreign key: that row is written after this one
    text text,
    details text,                   -- JSON: the fields of the event without a column
    raw text,                       -- the payload as received; null after it was removed
    received_at integer not null
) strict;

create unique index events_by_key on events (channel, external_id, revision);
create index events_with_payload on events (received_at) where raw is not null;
create index events_of_key_only on events (received_at) where details is null;

create table turns (
    -- The order in which turns were accepted. Ids do not tell it: the clock may have been set back between two starts.
    seq integer primary key,
    id blob not null unique,
    event_id blob not null,         -- no foreign key: an event is removed long after its turn, and by its key
    conversation_id blob not null references conversations (id),
    session_id blob not null,       -- no foreign key: it would need an index, with a page for each active session
    agent text,                     -- the handler: this agent, or a command of the gateway
    command text,
    accepted_at integer not null,
    channel text not null,          -- of its conversation
    picked blob,                    -- the turn that the first pick opened, if this turn was answered with a question
    check ((agent is null) <> (command is null))
) strict;

create index turns_of_conversation on turns (conversation_id, seq);
create index turns_of_channel on turns (channel, seq);

-- What is owed for a turn. `body` is the guard's state machine; the other columns repeat parts of it for searches.
create table obligations (
    turn_id blob not null primary key references turns (id),
    seq integer not null,           -- as in turns
    conversation_id blob not null,
    channel text not null,
    person text not null,           -- the sender, as InboundEvent::person names them
    agent text not null,            -- the agent that its next run is for; '' for a command of the gateway
    version integer not null,
    owed integer not null,          -- whether an answer is owed
    state text not null,
    work text,                      -- waiting, running, or null for neither
    wake_at integer,
    overdue_at integer,             -- from when on it counts as overdue, while it is open
    ended_at integer,               -- when it was settled or became undeliverable
    absent integer not null default 0,  -- 1 while its channel is not configured: the turn waits for the channel
    rank integer not null,          -- the order within the conversation while it waits: seq, later if nothing is owed
    place integer,                  -- the conversation's place in the channel's line, in the row that runs next in it
    body text not null              -- JSON: Obligation
) strict, without rowid;

-- An index whose rows are counted also contains the columns of its condition, so that only the index is read.
create index obligations_live on obligations (conversation_id, seq, owed, overdue_at, absent, ended_at)
    where ended_at is null;
create index obligations_waiting on obligations (conversation_id, rank, work, absent) where work = 'waiting';
-- One row for each conversation with waiting turns, so that one with many of them costs no more than any other.
create unique index obligations_first on obligations (conversation_id) where place is not null;
create index obligations_line on obligations (channel, agent, place, rank, absent) where place is not null and absent = 0;
create index obligations_of_person on obligations (channel, person, owed, place) where work = 'waiting';
create index obligations_running on obligations (turn_id) where work = 'running' and absent = 0;
create index obligations_wake on obligations (wake_at, seq) where wake_at is not null and absent = 0;
create index obligations_absent on obligations (seq, absent) where absent = 1;
create index obligations_deferred on obligations (seq, state) where state = 'deferred';
create index obligations_undeliverable on obligations (seq, state) where state = 'undeliverable';
create index obligations_ended on obligations (ended_at, state) where ended_at is not null;

create table runs (
    turn_id blob not null references turns (id),
    number integer not null,
    agent text,                     -- agent and command: as in turns
    command text,
    owner blob not null,            -- the process that started it
    started_at integer not null,
    ended_at integer,
    ending text,                    -- reply, reaction, deferral, silent, failed, unreadable, stopped, crashed, interrupted
    detail text,
    usage text,                     -- JSON: Usage
    cost_micros integer,            -- at the price when it ended, in millionths of the currency
    currency text,
    primary key (turn_id, number)
) strict, without rowid;

-- What the models of runs were shown, and the tools that they called. No foreign keys: removing what they refer to would
-- need indexes.
create table run_contents (
    run integer primary key,        -- the seq of the turn * 65536 + the number of the run: new rows are among the last
    at integer not null,            -- when the run ended
    settings integer,               -- of run_settings
    messages blob,                  -- JSON: array, compressed: LZ4 block after its size as 4 bytes, little-endian
    left_out integer not null,      -- how many of the oldest messages are missing
    tools text,                     -- JSON: list of ToolUse; null without tool calls
    tools_left_out integer not null
) strict;

-- The settings of runs, each of which many runs have in common.
create table run_settings (
    id integer primary key,
    digest blob not null unique,    -- SHA-256 of the body
    -- A run that refers to it is at most a step after this one (SETTINGS_STEP in runs.rs).
    used integer not null,
    body text not null              -- JSON: object
) strict;

create table deliveries (
    seq integer primary key,        -- the order in which they were claimed; the parts of a claim are in a row
    id blob not null unique,
    turn_id blob not null references turns (id),
    claim integer not null,         -- 0: the message of a draft
    part integer not null,
    parts integer not null,
    conversation_id blob not null,  -- that of its turn; no foreign key, as in turns
    channel text not null,          -- the conversation's channel, which never changes
    class text not null,            -- final, interim, typing, draft
    signal text not null,           -- reply, reaction, deferral
    via text not null,              -- JSON: Via
    is_copy integer not null,
    action text not null,           -- JSON: Action
    state text not null,            -- pending, held, sending, delivered, withdrawn, refused, dead
    attempts integer not null,
    next_attempt_at integer not null,
    label text,                     -- resent, replaces
    parked integer not null,        -- 1: it gets nowhere, and later claims do not wait for it
    message_ids text not null,      -- JSON: list of text
    error text,
    created_at integer not null,
    retried_at integer,             -- when the operator last had it sent again
    delivered_at integer,
    fetched_at integer,
    absent integer not null default 0   -- as in obligations
) strict;

create index deliveries_of_turn on deliveries (turn_id, claim, part);
create index deliveries_undelivered on deliveries (conversation_id, seq) where state in ('pending', 'sending');
-- The sweep steps along it from the first delivery of one conversation to that of the next: what waits behind a
-- delivery costs nothing.
create index deliveries_in_lanes on deliveries (channel, conversation_id, seq, state, parked, absent)
    where state in ('pending', 'sending') and absent = 0;
create index deliveries_held on deliveries (id) where state = 'held';
create index deliveries_dead on deliveries (id, state, is_copy) where state = 'dead' and is_copy = 1;
create index deliveries_failed on deliveries (seq) where state in ('held', 'refused', 'dead');
create index deliveries_absent on deliveries (turn_id, absent) where absent = 1;

create table attempts (
    delivery_id blob not null references deliveries (id),
    number integer not null,
    owner blob not null,            -- the process that started it
    started_at integer not null,
    ended_at integer,
    result text,                    -- delivered, or the error's name
    detail text,
    primary key (delivery_id, number)
) strict, without rowid;

create index attempts_open on attempts (delivery_id) where ended_at is null;

create table transcript (
    session_id blob not null,       -- no foreign key: the session's row may be gone when an old turn is answered
    seq integer not null,           -- as in turns
    turn_id blob not null,          -- no foreign key: it would need an index of its own
    speaker text not null,          -- person, agent, gateway
    author text,                    -- JSON: the sender, in chats of several people
    forwarded text,                 -- JSON: who first wrote a forwarded text
    text text,                      -- null: the text of the turn's event
    at integer not null,
    primary key (session_id, seq, speaker)
) strict, without rowid;

-- The index of the lines of ended turns, for the search: of what a person wrote, and of what was answered. It has no copy of
-- the texts. The rowid is seq * 4 + the speaker (0 person, 1 agent, 2 gateway), so that the newest lines have the largest.
create virtual table search using fts5 (
    text,
    place,                          -- two words: one stands for the channel, one for the conversation
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- The words in the index.
create virtual table search_words using fts5vocab (search, instance);

-- One row: how far the index has followed the log.
create table search_progress (
    id integer primary key check (id = 1),
    logged integer not null,        -- the seq of the last entry of the log that was read
    turn integer                    -- while all turns are indexed anew: the seq of the last one
) strict;

insert into search_progress (id, logged) values (1, 0);

create table remarks (
    id integer primary key,
    turn_id blob not null references turns (id),
    at integer not null,
    kind text not null,
    detail text not null
) strict;

create index remarks_of_turn on remarks (turn_id);

-- What happened, in the order in which it was stored. Entries are only added, and removed by their age.
create table log (
    seq integer primary key,
    at integer not null,
    topic text not null,            -- turn.settled, …
    turn_id blob,                   -- no foreign keys: an entry may be kept longer than what it is about
    conversation_id blob,
    channel text,
    data text not null              -- JSON: the fields of LogEvent
) strict;

-- Lines of the gateway's own log: what its code reports, without the steps of turns, which are in `log`. Removed by their age.
create table log_lines (
    id integer primary key autoincrement,   -- never used again: pages of the list begin at ids
    at integer not null,
    level text not null,            -- error, warn, info, debug
    target text not null,           -- the module that wrote it
    message text not null,
    channel text,
    turn_id blob,                   -- no foreign key: a line may be kept longer than its turn
    fields text not null            -- JSON: object
) strict;

create index log_lines_of_trouble on log_lines (id, level) where level in ('error', 'warn');
create index log_lines_of_channel on log_lines (channel, id) where channel is not null;
create index log_lines_of_turn on log_lines (turn_id, id) where turn_id is not null;

-- Errors and warnings among the lines, equal ones together.
create table errors (
    id integer primary key,
    key blob not null unique,       -- SHA-256 of level, target, message and channel
    level text not null,            -- error, warn
    target text not null,
    message text not null,
    channel text,
    count integer not null,
    first_at integer not null,
    last_at integer not null,
    last_line integer not null,     -- the latest of these lines; the error is removed with it
    fields text not null            -- JSON: object, of the latest
) strict;

create index errors_by_last_line on errors (last_line);

-- What operators did, which is kept longer than the log.
create table audit (
    id integer primary key,
    at integer not null,
    by text not null,               -- the name of the token
    action text not null,           -- retry, redirect, …
    target text not null,           -- the id of what it was done to
    reason text,
    turn_id blob,
    conversation_id blob,
    channel text
) strict;

-- The answers to requests of operators with an idempotency key.
create table answers (
    by text not null,
    key text not null,
    request blob not null,          -- a digest of what was asked
    status integer not null,        -- of HTTP
    body text not null,             -- JSON
    at integer not null,
    primary key (by, key)
) strict, without rowid;

create index answers_by_age on answers (at);

-- The tokens of operators, beside the one in the configuration.
create table tokens (
    id blob not null primary key,
    name text not null,
    hash blob not null unique,      -- SHA-256 of the token
    role text not null,             -- viewer, operator, admin
    channels text,                  -- JSON: list of text; null: all
    created_at integer not null,
    created_by text not null,
    expires_at integer,
    revoked_at integer
) strict, without rowid;

-- Channels and chats that a platform has blocked for a time.
create table blocked (
    channel text not null,
    account integer not null,       -- 1 if the whole account is blocked
    chat text not null,             -- '' if the account is blocked
    until integer not null,
    primary key (channel, account, chat)
) strict, without rowid;

-- Channels to which nothing is sent, because an operator wants it so.
create table paused (
    channel text not null primary key,
    since integer not null,
    by text not null,               -- the name of the token
    reason text
) strict, without rowid;

-- One row, updated to check that writing works.
create table probe (
    id integer primary key check (id = 1),
    count integer not null,
    room blob not null default x''    -- zeros: whether there is room for more than a page
) strict;

insert into probe (id, count) values (1, 0);
