-- Written by `cargo xtask docs`: what all migrations of SQLite make, for new databases.

CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);

CREATE TABLE channels_cursor (
    channel text not null,
    name text not null,
    position text not null,
    primary key (channel, name)
) strict, without rowid;

CREATE TABLE conversations (
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
, queue text, sessions_version integer not null default 0, voice text) strict, without rowid;

CREATE UNIQUE INDEX conversations_by_address on conversations (channel, chat, thread) where succeeded_by is null;

CREATE INDEX conversations_succeeded on conversations (channel, chat, thread) where succeeded_by is not null;

CREATE INDEX conversations_by_session on conversations (session_id);

CREATE INDEX conversations_by_successor on conversations (succeeded_by) where succeeded_by is not null;

CREATE TABLE sessions (
    id blob not null primary key,
    conversation_id blob not null references conversations (id),
    created_at integer not null
, name text, owner blob, agent text, model text, used_at integer, title text) strict, without rowid;

CREATE INDEX sessions_of_conversation on sessions (conversation_id);

CREATE TABLE turns (
    -- The order in which turns were accepted. Ids do not tell it: the clock may have been set back between two starts.
    seq integer primary key,
    id blob not null unique,
    conversation_id blob not null references conversations (id),
    session_id blob not null,       -- no foreign key: it would need an index, with a page for each active session
    agent text,                     -- the handler: this agent, or a command of the gateway
    command text,
    accepted_at integer not null,
    channel text not null,          -- of its conversation
    picked blob, rule text, model text, left_out integer not null default 0, event integer not null default 0, person text not null default '', next_agent text not null default '', version integer not null default 1, owed integer not null default 0, state text not null default '', work text, wake_at integer, overdue_at integer, ended_at integer, absent integer not null default 0, rank integer not null default 0, place integer, body text not null default '{}',                    -- the turn that the first pick opened, if this turn was answered with a question
    check ((agent is null) <> (command is null))
) strict;

CREATE INDEX turns_of_conversation on turns (conversation_id, seq);

CREATE INDEX turns_of_channel on turns (channel, seq);

CREATE TABLE run_contents (
    run integer primary key,        -- the seq of the turn * 65536 + the number of the run: new rows are among the last
    at integer not null,            -- when the run ended
    settings integer,               -- of run_settings
    messages blob,                  -- JSON: array, compressed: LZ4 block after its size as 4 bytes, little-endian
    left_out integer not null,      -- how many of the oldest messages are missing
    tools text,                     -- JSON: list of ToolUse; null without tool calls
    tools_left_out integer not null
) strict;

CREATE TABLE run_settings (
    id integer primary key,
    digest blob not null unique,    -- SHA-256 of the body
    -- A run that refers to it is at most a step after this one (SETTINGS_STEP in runs.rs).
    used integer not null,
    body text not null              -- JSON: object
) strict;

CREATE TABLE deliveries (
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
, copies integer not null default 0, resend_from integer) strict;

CREATE INDEX deliveries_of_turn on deliveries (turn_id, claim, part);

CREATE INDEX deliveries_undelivered on deliveries (conversation_id, seq) where state in ('pending', 'sending');

CREATE INDEX deliveries_in_lanes on deliveries (channel, conversation_id, seq, state, parked, absent)
    where state in ('pending', 'sending') and absent = 0;

CREATE INDEX deliveries_held on deliveries (id) where state = 'held';

CREATE INDEX deliveries_dead on deliveries (id, state, is_copy) where state = 'dead' and is_copy = 1;

CREATE INDEX deliveries_failed on deliveries (seq) where state in ('held', 'refused', 'dead');

CREATE INDEX deliveries_absent on deliveries (turn_id, absent) where absent = 1;

CREATE TABLE attempts (
    delivery_id blob not null references deliveries (id),
    number integer not null,
    owner blob not null,            -- the process that started it
    started_at integer not null,
    ended_at integer,
    result text,                    -- delivered, or the error's name
    detail text,
    primary key (delivery_id, number)
) strict, without rowid;

CREATE INDEX attempts_open on attempts (delivery_id) where ended_at is null;

CREATE VIRTUAL TABLE search using fts5 (
    text,
    place,                          -- two words: one stands for the channel, one for the conversation
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE search_words using fts5vocab (search, instance);

CREATE TABLE search_progress (
    id integer primary key check (id = 1),
    logged integer not null,        -- the seq of the last entry of the log that was read
    turn integer                    -- while all turns are indexed anew: the seq of the last one
) strict;

CREATE TABLE remarks (
    id integer primary key,
    turn_id blob not null references turns (id),
    at integer not null,
    kind text not null,
    detail text not null
) strict;

CREATE INDEX remarks_of_turn on remarks (turn_id);

CREATE TABLE log (
    seq integer primary key,
    at integer not null,
    topic text not null,            -- turn.settled, …
    turn_id blob,                   -- no foreign keys: an entry may be kept longer than what it is about
    conversation_id blob,
    channel text,
    data text not null              -- JSON: the fields of LogEvent
) strict;

CREATE TABLE log_lines (
    id integer primary key autoincrement,   -- never used again: pages of the list begin at ids
    at integer not null,
    level text not null,            -- error, warn, info, debug
    target text not null,           -- the module that wrote it
    message text not null,
    channel text,
    turn_id blob,                   -- no foreign key: a line may be kept longer than its turn
    fields text not null            -- JSON: object
) strict;

CREATE INDEX log_lines_of_trouble on log_lines (id, level) where level in ('error', 'warn');

CREATE INDEX log_lines_of_channel on log_lines (channel, id) where channel is not null;

CREATE INDEX log_lines_of_turn on log_lines (turn_id, id) where turn_id is not null;

CREATE TABLE errors (
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
, acknowledged_at integer, muted integer not null default 0) strict;

CREATE INDEX errors_by_last_line on errors (last_line);

CREATE TABLE audit (
    id integer primary key,
    at integer not null,
    by text not null,               -- the name of the token
    action text not null,           -- retry, redirect, …
    target text not null,           -- the id of what it was done to
    reason text,
    turn_id blob,
    conversation_id blob,
    channel text
, not_reached text not null default '[]') strict;

CREATE TABLE answers (
    by text not null,
    key text not null,
    request blob not null,          -- a digest of what was asked
    status integer not null,        -- of HTTP
    body text not null,             -- JSON
    at integer not null,
    primary key (by, key)
) strict, without rowid;

CREATE INDEX answers_by_age on answers (at);

CREATE TABLE tokens (
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

CREATE TABLE blocked (
    channel text not null,
    account integer not null,       -- 1 if the whole account is blocked
    chat text not null,             -- '' if the account is blocked
    until integer not null,
    primary key (channel, account, chat)
) strict, without rowid;

CREATE TABLE paused (
    channel text not null primary key,
    since integer not null,
    by text not null,               -- the name of the token
    reason text
) strict, without rowid;

CREATE TABLE probe (
    id integer primary key check (id = 1),
    count integer not null,
    room blob not null default x''    -- zeros: whether there is room for more than a page
) strict;

CREATE TABLE people (
    id blob not null primary key,
    name text not null,
    role text not null,             -- member, owner
    created_at integer not null
, sessions_version integer not null default 0) strict, without rowid;

CREATE TABLE identities (
    channel text not null,
    id text not null,               -- as InboundEvent::person names them
    person_id blob not null references people (id),
    added_at integer not null,
    added_by text not null,         -- who let them in: the name of a token, configuration, or the name of an owner
    primary key (channel, id)
) strict, without rowid;

CREATE INDEX identities_of_person on identities (person_id);

CREATE TABLE pairings (
    channel text not null,
    id text not null,               -- who asks, as InboundEvent::person names them
    code text not null unique,      -- without the dash
    name text,                      -- the display name, and the unique one, that the platform gave
    username text,
    chat text not null,             -- where they asked
    thread text not null,           -- '' without a thread
    asked_at integer not null,
    expires_at integer not null,    -- of a declined request: until when they cannot ask again
    state text not null, language text, linked_by blob,            -- waiting, declined, approved: let in, and not told yet
    primary key (channel, id)
) strict, without rowid;

CREATE TABLE questions (
    turn_id blob not null primary key references turns (id),
    claim integer not null,         -- whose deliveries ask it
    conversation_id blob not null,  -- where it was asked; no foreign key, as in turns
    channel text not null,
    chooser text,                   -- the platform's id of the only person who may pick
    text text not null,             -- the question, without its choices
    choices text not null,          -- JSON: list of text
    free_text integer not null,     -- whether the person may also answer in their own words
    asked_at integer not null,
    expires_at integer,
    language text,                  -- of the person who was asked; null if it is not known
    state text not null,            -- open, picked, expired
    picked text                     -- the choice that was picked first
) strict;

CREATE INDEX questions_open on questions (conversation_id, asked_at) where state = 'open';

CREATE INDEX questions_expiring on questions (expires_at) where state = 'open' and expires_at is not null;

CREATE TABLE languages (
    channel text not null,
    id text not null,               -- who chose, as InboundEvent::person names them
    language text not null,         -- two or three letters: de
    primary key (channel, id)
) strict, without rowid;

CREATE TABLE direct_chats (
    channel text not null,
    id text not null,               -- whose chat it is, as InboundEvent::person names them
    chat text not null,
    thread text not null,           -- '' without a thread
    since integer not null, is_home integer not null default 0, language text,         -- since when they write there, and not on another of their channels
    primary key (channel, id)
) strict, without rowid;

CREATE INDEX sessions_of_owner on sessions (owner) where owner is not null;

CREATE TABLE approvals (
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
, given_to integer, choices text, options text not null default '[]', chosen text) strict;

CREATE INDEX approvals_of_turn on approvals (turn_id);

CREATE INDEX approvals_waiting on approvals (seq) where state = 'waiting';

CREATE TABLE approval_notices (
    approval_id blob not null,
    person_id blob not null,
    turn_id blob not null references turns (id), -- the message
    primary key (approval_id, person_id)
) strict, without rowid;

CREATE INDEX approval_notices_of_turn on approval_notices (turn_id);

CREATE TABLE daily_use (
    channel text not null,
    id text not null,               -- who it is, as InboundEvent::person names them
    day integer not null,           -- days since 1970-01-01, in the gateway's time zone
    turns integer not null,
    tokens integer not null, micros integer not null default 0, estimated integer not null default 0,
    primary key (channel, id)
) strict, without rowid;

CREATE TABLE schedules (
    id blob not null primary key,
    name text not null unique,
    body text not null              -- JSON: Schedule
) strict, without rowid;

CREATE TABLE schedule_runs (
    schedule_id blob not null references schedules (id),
    due_at integer not null,
    at integer not null,            -- when it was acted on
    turns text not null,            -- JSON: list of ids of turns, which may be gone
    problem text, not_reached text not null default '[]',                   -- why none was begun
    primary key (schedule_id, due_at)
) strict, without rowid;

CREATE TABLE "transcript" (
    session_id blob not null,       -- no foreign key: the session's row may be gone when an old turn is answered
    seq integer not null,           -- as in turns
    claim integer not null,         -- the claim that says it; 0: what the person wrote
    turn_id blob not null,          -- no foreign key: it would need an index of its own
    speaker text not null,          -- person, agent, gateway
    author text,                    -- JSON: the sender, in chats of several people
    forwarded text,                 -- JSON: who first wrote a forwarded text
    text text,                      -- null: the text of the turn's event
    at integer not null,
    stopped integer not null default 0,     -- 1: what the person wrote was to be answered no more
    primary key (session_id, seq, claim, turn_id)
) strict, without rowid;

CREATE VIEW transcript_lines as
select session_id, seq, claim, turn_id, speaker, author, forwarded, at, state,
    iif(state = 'partly', (
        select group_concat(coalesce(action ->> '$.send.content.text', action ->> '$.edit.content.text', ''), char(10, 10))
        from (
            select iif(json_valid(d.action), d.action, '{}') as action from deliveries as d
            where d.turn_id = s.turn_id and d.claim = s.claim and d.is_copy = 0 and d.state = 'delivered'
            order by d.part)), text) as text
from (
    select l.*, case when l.claim = 0 then iif(l.stopped, 'stopped', 'seen') else (
        select case
            when total(d.state = 'delivered') = count(*) then 'seen'
            when total(d.state = 'delivered') > 0 then 'partly'
            when total(d.state in ('pending', 'held', 'sending')) > 0 then 'on_its_way'
            else 'not_delivered' end
        from deliveries as d where d.turn_id = l.turn_id and d.claim = l.claim and d.is_copy = 0) end as state
    from transcript as l) as s;

CREATE TABLE sign_ins (
    id blob not null primary key,
    hash blob not null unique,      -- HMAC-SHA-256 of the cookie's secret, by the token of the configuration
    token blob,                     -- the token with which it was opened; null: the one of the configuration
    browser text not null,          -- what the browser calls itself, cut
    opened_at integer not null,
    expires_at integer not null
) strict, without rowid;

CREATE TABLE asides (
    turn_id blob not null primary key references turns (id),
    conversation_id blob not null,  -- whose history its agent gets; no foreign key: it may be removed first
    sender text not null            -- who began it: a schedule, a trigger, a hook
) strict, without rowid;

CREATE INDEX asides_about on asides (conversation_id, sender);

CREATE TABLE versions (
    noun text primary key,          -- people, schedules, tokens
    version integer not null
) strict, without rowid;

CREATE TABLE guesses (
    who text not null,              -- an operator's name, an identity, or a channel
    code text not null,
    since integer not null,         -- when the first of the tries came that count together
    primary key (who, code)
) strict, without rowid;

CREATE TABLE sign_in_links (
    code blob not null primary key, -- SHA-256 of the code
    token blob,                     -- the token with which it was made; null: the one of the configuration
    session blob,                   -- the session in which it was made
    expires_at integer not null
) strict, without rowid;

CREATE TABLE agent_sessions (
    session_id blob not null,       -- no foreign key: the row stays until the agent is told that the session is gone
    agent text not null,
    own_session text, removals integer not null default 0,               -- the agent's own id of the session; null: it has named none
    primary key (session_id, agent)
) strict, without rowid;

CREATE TABLE agent_notices (
    session_id blob not null,
    agent text not null,
    change text not null,           -- left, deleted, turn_removed
    turn_id blob not null,          -- the removed turn, or empty; no foreign key: the turn is gone
    due_at integer not null,        -- 0: at once
    attempts integer not null,
    primary key (session_id, agent, change, turn_id)
) strict, without rowid;

CREATE INDEX agent_notices_due on agent_notices (due_at);

CREATE TABLE agent_use (
    agent text primary key,
    day integer not null,           -- days since 1970-01-01, in the gateway's time zone
    turns integer not null,         -- runs, of which a turn may have several
    tokens integer not null,
    micros integer not null         -- in millionths of the currency of its price
, estimated integer not null default 0) strict, without rowid;

CREATE TABLE files (
    digest blob not null unique,    -- SHA-256 of the content
    size integer not null,          -- of the content, in bytes
    content blob not null
) strict;

CREATE TABLE file_uses (
    turn_id blob not null,          -- no foreign keys: they are removed with the turn, and written with the file
    digest blob not null, spoken_at integer,
    primary key (turn_id, digest)
) strict, without rowid;

CREATE INDEX file_uses_of_file on file_uses (digest);

CREATE TABLE reactions (
    turn_id blob not null references turns (id),    -- the turn that was answered
    person text not null,                           -- as in obligations
    emoji text not null,
    author text,                                    -- JSON: the person, in chats of several people
    at integer not null,
    channel text not null,
    external_id text not null,                      -- of its event, by which some platforms take it back
    primary key (turn_id, person)
) strict, without rowid;

CREATE INDEX reactions_by_event on reactions (external_id);

CREATE TABLE whole_requests (
    approval_id blob primary key references approvals (id),
    action text not null,
    details text,
    kind text
) strict, without rowid;

CREATE TABLE "events" (
    seq integer primary key,
    id blob not null,               -- what the gateway's own log calls it
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

CREATE UNIQUE INDEX events_by_key on events (channel, external_id, revision);

CREATE INDEX events_with_payload on events (received_at) where raw is not null;

CREATE INDEX events_of_key_only on events (received_at) where details is null;

CREATE TABLE "runs" (
    run integer primary key,        -- as in run_contents
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
    member text,                    -- of an agent that has members, the one that answered; null: the agent itself
    holder text                     -- who does it outside of the gateway's process; null: nobody does
) strict;

CREATE INDEX turns_open on turns (conversation_id, seq, owed, overdue_at, absent, ended_at, work)
    where ended_at is null or work is not null;

CREATE INDEX turns_waiting on turns (conversation_id, rank, work, absent) where work = 'waiting';

CREATE UNIQUE INDEX turns_first on turns (conversation_id) where place is not null;

CREATE INDEX turns_line on turns (channel, next_agent, place, rank, absent) where place is not null and absent = 0;

CREATE INDEX turns_of_person on turns (channel, person, owed, place) where work = 'waiting';

CREATE INDEX turns_wake on turns (wake_at, seq) where wake_at is not null and absent = 0;

CREATE INDEX turns_absent on turns (seq, absent) where absent = 1;

CREATE INDEX turns_deferred on turns (seq, state) where state = 'deferred';

CREATE INDEX turns_undeliverable on turns (seq, state) where state = 'undeliverable';

CREATE INDEX turns_ended on turns (ended_at, state) where ended_at is not null;

CREATE INDEX file_uses_spoken on file_uses (spoken_at) where spoken_at is not null;

CREATE TABLE passkeys (
    id blob not null primary key,       -- as the authenticator gave it
    channel text not null,
    account text not null,              -- the id of the person on the channel
    party text not null,                -- the host of the page for which it was made
    algorithm integer not null,         -- the COSE number
    key blob not null,                  -- SubjectPublicKeyInfo
    counter integer not null,           -- of signatures; 0: the authenticator does not count
    browser text not null,              -- what the browser calls itself, cut
    added_at integer not null,
    used_at integer
) strict, without rowid;

CREATE INDEX passkeys_of_account on passkeys (channel, account);

CREATE TABLE visits (
    id blob not null primary key,
    hash blob not null unique,          -- SHA-256 of the cookie's secret
    channel text not null,
    account text not null,
    challenge blob not null unique,     -- SHA-256 of the challenge that was signed
    browser text not null,
    opened_at integer not null,
    expires_at integer not null
) strict, without rowid;

CREATE INDEX visits_of_account on visits (channel, account);

CREATE INDEX visits_by_end on visits (expires_at);

CREATE TABLE invitations (
    code blob not null primary key,     -- SHA-256 of the code
    channel text not null,
    account text not null,
    expires_at integer not null
) strict, without rowid;

CREATE INDEX invitations_of_account on invitations (channel, account);

CREATE TABLE push_subscriptions (
    channel text not null,
    chat text not null,
    thread text not null,           -- '' without a thread
    endpoint text not null,         -- a URL of the browser's push service
    key blob not null,              -- the browser's public key, 65 bytes
    auth blob not null,             -- 16 bytes
    told_at integer not null,       -- what was shown until then is told
    primary key (channel, chat, thread, endpoint)
) strict, without rowid;

CREATE INDEX push_subscriptions_of_endpoint on push_subscriptions (channel, endpoint);

insert into probe values (1, 0, X'');

insert into search_progress values (1, 0, NULL);

insert into versions values ('people', 0);

insert into versions values ('schedules', 0);

insert into versions values ('tokens', 0);
