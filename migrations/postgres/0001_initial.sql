-- The schema of the store on PostgreSQL 15 or newer: what `migrations/sqlite/0001` to `0039` make, in one step.
--
-- Times are milliseconds since 1970-01-01 UTC. Texts that are compared or sorted have the collation "C", so that they are compared
-- byte by byte, as SQLite and Rust do, and no update of the operating system's locales damages an index. JSON that statements look
-- into is `jsonb`, other JSON is `text`. What statements of SQLite read from `turns.body` has columns here.
--
-- PostgreSQL writes a row anew when it changes. An index on a column that changes costs a new entry in each index of the row, so
-- tables whose rows change have few, and none has columns only to cover a query. Where no column of an index changes, `fillfactor`
-- leaves room for the new row in the page of the old one: half of it, where each row changes once soon after it was inserted.

-- The places in the orders of acceptance, of claims and of what happened. With gaps. Never cached by a connection: within a
-- conversation they are taken while its row is locked, and are in the order of commits.
create sequence turn_seq as bigint cache 1;
create sequence event_seq as bigint cache 1;
create sequence claim_seq as bigint cache 1;
create sequence log_seq as bigint cache 1;

-- The numbers of grants of leases.
create sequence fence_seq as bigint cache 1;

-- A statement whose part did not change as many rows as it should fails.
create function must_be(matched bigint, expected bigint, what text) returns boolean stable language plpgsql as $$
begin
    if matched is distinct from expected then
        raise exception 'a change of % matched % rows in place of %', what, matched, expected;
    end if;
    return true;
end $$;

-- The processes that use the database, by its clock. A row goes an hour after its node. Whether a node lives, `living_nodes` says.
create table nodes (
    id uuid primary key,
    name text not null,                         -- of its machine, for operators
    version text not null,
    revision bigint,                            -- of its configuration
    held text[] not null,                       -- the leases that it had before its last heartbeat
    channels text[] not null,                   -- those of its configuration
    agents text[] not null,                     -- likewise
    draining boolean not null,                  -- it takes no leases
    downs jsonb not null default '[]',          -- its channels and agents that are down
    asked_to_drain boolean not null default false,
    clock_ms bigint not null,                   -- how far its clock was ahead of the database's at its last heartbeat
    since timestamptz not null,
    until timestamptz not null,                 -- 15 seconds after its last heartbeat, or after the first one of any node after an outage
    awaited boolean not null default false      -- it was given that time after an outage, and has had no heartbeat since
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- For `living_nodes`. Most connections plan without scans of whole tables (`enable_seqscan = off`). Where only such a scan is possible, its
-- cost is so high that the other costs of a statement make no difference, and the plan is bad.
create index nodes_by_end on nodes (until);

-- The nodes that are not over. Each node has a heartbeat every 5 seconds. If none has had one for 6, they could not reach the database,
-- and time stands still: the first heartbeat after that gives those that lived then 15 seconds for their own.
create view living_nodes as
select id, revision, agents from nodes
where until > least(clock_timestamp(), (select max(until) from nodes) - interval '9 seconds');

-- A lease on what one node does at a time: `channel/telegram.main`, `housekeeper`. It is taken anew with another fence. A transaction of
-- its holder locks the row `for key share` with this fence: a renewal does not wait for that, and a taker of the lease does, because the
-- fence is part of a key.
create table leases (
    name text collate "C" primary key,
    fence bigint not null,
    node uuid,                                  -- null: it was given back
    since timestamptz not null,
    until timestamptz not null,
    unique (name, fence)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- The configurations that have counted: one row, which orders those that nodes begin with at the same moment. The last one counts.
create table configuration (
    id bigint primary key check (id = 1),
    digests bytea[] not null,                   -- of each revision, SHA-256 of what all nodes must have in common
    revision bigint not null generated always as (cardinality(digests)) stored
);

-- Generated tokens and keys, which all nodes use. Each node has a copy in a file.
create table secrets (
    name text collate "C" primary key,          -- that of the file
    value text not null,
    at timestamptz not null
);

-- What the accounts of channels need at whichever node has the channel, such as the keys that decrypt messages. Written under the
-- channel's lease, by the use of the keyring that began last.
create table keyring_uses (
    channel text collate "C" primary key,
    id uuid not null
) with (fillfactor = 50);

create table keyring (
    channel text collate "C" not null,
    kind text collate "C" not null,             -- what it is; the adapter's
    owner bytea not null,                       -- the text, or its SHA-256 if it is long; so is the id
    id bytea not null,
    value bytea not null,
    primary key (channel, kind, owner, id)
) with (fillfactor = 75);

-- Requests with an idempotency key that are being done. One of a node that is over, or older than a request may be, does not count. Empty
-- after a crash of the database, which ends all of them.
create unlogged table answers_under_way (
    by text collate "C" not null,
    key text collate "C" not null,
    node uuid not null,
    request uuid not null,
    at timestamptz not null,
    primary key (by, key)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- How far ahead of time the turns of people have moved, in microseconds: each by its share of a minute. Only of people who may write at
-- several nodes. Empty after a crash of the database: then a minute begins anew.
create unlogged table minute_use (
    who text collate "C" primary key,           -- a person, or somebody on a channel
    used_until bigint not null,
    wait bigint not null                        -- for how long the last turn was one too many; 0: it was counted
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The right to run a turn of an agent in a conversation: of one turn at a time, whichever node runs it. A row goes with its conversation,
-- whose row is locked while this one changes.
create table slots (
    conversation_id uuid primary key,
    turn_id uuid,                               -- null: the slot is free
    node uuid,                                  -- the one that runs the turn; null: nobody does
    since timestamptz
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- How many turns of an agent a node may run, where the limit holds over all nodes. The sum over the nodes that live is never above it:
-- the table is locked while they change. A row goes when its node is over.
create table agent_permits (
    agent text collate "C" not null,
    node uuid not null,
    granted bigint not null,                    -- or what the node held when it asked, if that is more
    wanted bigint not null,
    has_worker boolean not null,                -- whether the agent's workers fetch turns there; true of an agent without workers
    primary key (agent, node)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- What runs say so far, for the nodes that show it and do not run them. It is gone after a crash, and comes again with the next text.
create unlogged table drafts (
    turn_id uuid primary key,
    run bigint not null,
    text text not null,
    at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create table conversations (
    id uuid primary key,
    channel text collate "C" not null,
    chat text collate "C" not null,
    thread text collate "C" not null,           -- '' without a thread
    session_id uuid,                            -- the current session; null until the first turn
    created_at bigint not null,
    -- An older conversation with the same address, when a chat moved to this one's id: turns of this one end here,
    -- new events go to the older one.
    succeeded_by uuid references conversations (id),
    queue text collate "C",                     -- the queue mode, if it was chosen
    voice text collate "C",                     -- which answers are spoken, if it was chosen
    sessions_version bigint not null default 0
) with (fillfactor = 85);

create unique index conversations_by_address on conversations (channel, chat, thread) where succeeded_by is null;
create index conversations_succeeded on conversations (channel, chat, thread) where succeeded_by is not null;
create index conversations_by_successor on conversations (succeeded_by) where succeeded_by is not null;
create index conversations_by_session on conversations (session_id);

create table sessions (
    id uuid primary key,
    conversation_id uuid not null references conversations (id),    -- where it began
    created_at bigint not null,
    name text collate "C",
    owner uuid,                                 -- the person; null: it belongs to its conversation
    agent text collate "C",
    model text collate "C",
    used_at bigint,                             -- to the minute
    title text,
    changes bigint not null default 0           -- how many transactions have changed its lines
) with (fillfactor = 50);

create index sessions_of_conversation on sessions (conversation_id);
create index sessions_of_owner on sessions (owner) where owner is not null;

alter table conversations add foreign key (session_id) references sessions (id) deferrable initially deferred;

create table events (
    seq bigint primary key,                     -- of event_seq
    id uuid not null,                           -- what the gateway's own log calls it
    channel text collate "C" not null,
    chat text collate "C" not null,
    thread text collate "C" not null,           -- '' without a thread
    external_id text collate "C" not null,
    revision bigint not null,
    turn_id uuid,                               -- the turn it opened or changed; no foreign key: that row is written after this one
    text text,
    details jsonb,                              -- the fields of the event without a column
    -- The names of the sender, folded as `core::folded` does, each between line feeds; null without one.
    sender_names text collate "C",
    raw text,                                   -- the payload as received; null after it was removed
    received_at bigint not null
) with (fillfactor = 95);

create unique index events_by_key on events (channel, external_id, revision);
create index events_of_key_only on events (received_at) where details is null;
create index events_with_payload on events (received_at) where raw is not null;

-- Turns, with what is owed for them. A row changes with each step of its turn.
create table turns (
    -- The order in which turns were accepted: of turn_seq, taken while the conversation's row is locked.
    seq bigint primary key,
    id uuid not null unique,
    -- No foreign keys from turns, deliveries and attempts to what they belong to: each check costs as much as the row. Who inserts
    -- locks the row above first; who removes locks, and only then looks whether anything is left below it.
    conversation_id uuid not null,
    session_id uuid not null,                   -- the session may be gone when an old turn is answered
    agent text collate "C",                     -- the handler: this agent, or a command of the gateway
    command text collate "C",
    accepted_at bigint not null,
    channel text collate "C" not null,          -- of its conversation
    picked uuid,                                -- the turn that the first pick opened, if this turn was answered with a question
    rule text collate "C",
    model text collate "C",
    left_out boolean not null default false,
    event bigint not null,                      -- the seq of its event
    person text collate "C" not null,           -- as InboundEvent::person names them
    next_agent text collate "C" not null,       -- of its next run; '' for a command
    version bigint not null,
    owed boolean not null,
    state text collate "C" not null,            -- open, claimed, deferred, settled, merged, undeliverable
    work text collate "C",                      -- waiting, running
    wake_at bigint,
    overdue_at bigint,
    ended_at bigint,
    absent boolean not null default false,      -- its channel is not configured: it waits
    rank bigint not null,
    place bigint,                               -- of the first waiting turn of a conversation
    -- What statements need to know of the obligation.
    postponed boolean not null default false,
    suspended boolean not null default false,   -- its run waits for an approval, or to go on after one
    fell_back boolean not null default false,   -- it was settled by the ladder
    merged_into uuid,
    body text not null,                         -- JSON: Obligation
    check ((agent is null) <> (command is null))
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);

create index turns_of_conversation on turns (conversation_id, seq);
create index turns_of_channel on turns (channel, seq);
create index turns_open on turns (conversation_id, seq) where ended_at is null or work is not null;
create index turns_wake on turns (wake_at, seq) where wake_at is not null and not absent;
create index turns_line on turns (channel, next_agent, place, rank) where place is not null and not absent;
create unique index turns_first on turns (conversation_id) where place is not null;
create index turns_waiting on turns (conversation_id, rank) where work = 'waiting';
create index turns_of_person on turns (channel, person, owed, place) where work = 'waiting';
create index turns_running on turns (id) where work = 'running';
create index turns_ended on turns (ended_at) where ended_at is not null;
create index turns_deferred on turns (seq) where state = 'deferred';
create index turns_undeliverable on turns (seq) where state = 'undeliverable';
create index turns_absent on turns (seq) where absent;

create table asides (
    turn_id uuid primary key references turns (id),
    conversation_id uuid not null,              -- whose history its agent gets; no foreign key: it may be removed first
    sender text collate "C" not null            -- who began it: a schedule, a trigger, a hook
);

create index asides_about on asides (conversation_id, sender);

create table runs (
    run bigint primary key,                     -- the seq of the turn * 65536 + the number of the run
    agent text collate "C",                     -- agent and command: as in turns
    command text collate "C",
    owner uuid not null,                        -- the node that started it
    started_at bigint not null,
    ended_at bigint,
    ending text collate "C",                    -- reply, reaction, deferral, silent, failed, unreadable, stopped, crashed, interrupted
    detail text,
    usage jsonb,                                -- Usage
    cost_micros bigint,                         -- at the price when it ended, in millionths of the currency
    currency text collate "C",
    member text collate "C",                    -- of an agent that has members, the one that answered; null: the agent itself
    holder text                                 -- who does it outside of the gateway's process; null: nobody does
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

create table run_settings (
    id bigint generated always as identity primary key,
    digest bytea not null unique,               -- SHA-256 of the body
    -- A run that refers to it is at most a step after this one (SETTINGS_STEP).
    used bigint not null,
    body text not null                          -- JSON: object
);

create table run_contents (
    run bigint primary key,                     -- as in runs
    at bigint not null,                         -- when the run ended
    settings bigint,                            -- of run_settings
    messages bytea,                             -- JSON: array, compressed: LZ4 block after its size as 4 bytes, little-endian
    left_out bigint not null,                   -- how many of the oldest messages are missing
    tools text,                                 -- JSON: list of ToolUse; null without tool calls
    tools_left_out bigint not null
);

-- It is compressed already.
alter table run_contents alter column messages set storage external;

create table deliveries (
    -- The order in which they were claimed: a number of claim_seq for each claim, times 65536, and the part. So the parts of a claim
    -- are in a row, although other connections claim meanwhile.
    seq bigint primary key,
    id uuid not null unique,
    turn_id uuid not null,
    claim bigint not null,                      -- 0: the message of a draft
    part bigint not null,
    parts bigint not null,
    conversation_id uuid not null,              -- that of its turn
    channel text collate "C" not null,          -- the conversation's channel, which never changes
    class text collate "C" not null,            -- final, interim, typing, draft
    signal text collate "C" not null,           -- reply, reaction, deferral
    via text not null,                          -- JSON: Via
    -- Whether an agent said it, so that reactions to it are kept.
    by_agent boolean not null default false,
    is_copy boolean not null,
    action jsonb not null,                      -- Action
    state text collate "C" not null,            -- pending, held, sending, delivered, withdrawn, refused, dead
    attempts bigint not null,
    next_attempt_at bigint not null,
    label text collate "C",                     -- resent, replaces
    parked boolean not null,                    -- it gets nowhere, and later claims do not wait for it
    copies bigint not null default 0,
    resend_from bigint,
    message_ids jsonb not null,                 -- list of text
    error text,
    created_at bigint not null,
    retried_at bigint,                          -- when the operator last had it sent again
    delivered_at bigint,
    fetched_at bigint,
    absent boolean not null default false       -- as in turns
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);

create index deliveries_of_turn on deliveries (turn_id, claim, part);
create index deliveries_in_lanes on deliveries (channel, conversation_id, seq) where state in ('pending', 'sending');
create index deliveries_sending on deliveries (conversation_id, seq) where state = 'sending';
create index deliveries_upcoming on deliveries (channel, parked, next_attempt_at) where state = 'pending' and not absent;
create index deliveries_failed on deliveries (seq) where state in ('held', 'refused', 'dead');
create index deliveries_held on deliveries (id) where state = 'held';
create index deliveries_dead on deliveries (id) where state = 'dead' and is_copy;
create index deliveries_absent on deliveries (turn_id) where absent;

-- Those without an end are found by the deliveries that are being sent: an index of them would be written with each attempt.
create table attempts (
    delivery_id uuid not null,
    number bigint not null,
    owner uuid not null,                        -- the node that started it
    started_at bigint not null,
    ended_at bigint,
    result text collate "C",                    -- delivered, or the error's name
    detail text,
    primary key (delivery_id, number)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

create table transcript (
    session_id uuid not null,                   -- no foreign key: the session's row may be gone when an old turn is answered
    seq bigint not null,                        -- as in turns
    claim bigint not null,                      -- the claim that says it; 0: what the person wrote
    turn_id uuid not null,
    speaker text collate "C" not null,          -- person, agent, gateway
    author jsonb,                               -- the sender, in chats of several people
    forwarded jsonb,                            -- who first wrote a forwarded text
    text text,                                  -- null: the text of the turn's event
    at bigint not null,
    stopped boolean not null default false,     -- what the person wrote was to be answered no more
    primary key (session_id, seq, claim, turn_id)
);

-- Whether a line was seen follows from the deliveries of its claim.
create view transcript_lines as
select session_id, seq, claim, turn_id, speaker, author, forwarded, at, state,
    case when state = 'partly' then (
        select string_agg(coalesce(d.action #>> '{send,content,text}', d.action #>> '{edit,content,text}', ''), E'\n\n' order by d.part)
        from deliveries as d
        where d.turn_id = s.turn_id and d.claim = s.claim and not d.is_copy and d.state = 'delivered')
    else text end as text
from (
    select l.*, case when l.claim = 0 then case when l.stopped then 'stopped' else 'seen' end else (
        select case
            when count(*) filter (where d.state = 'delivered') = count(*) then 'seen'
            when count(*) filter (where d.state = 'delivered') > 0 then 'partly'
            when count(*) filter (where d.state in ('pending', 'held', 'sending')) > 0 then 'on_its_way'
            else 'not_delivered' end
        from deliveries as d where d.turn_id = l.turn_id and d.claim = l.claim and not d.is_copy) end as state
    from transcript as l) as s;

create table remarks (
    id bigint generated always as identity primary key,
    turn_id uuid not null references turns (id),
    at bigint not null,
    kind text collate "C" not null,
    detail text not null
);

create index remarks_of_turn on remarks (turn_id);

create table reactions (
    turn_id uuid not null references turns (id),    -- the turn that was answered
    person text collate "C" not null,               -- as in turns
    emoji text collate "C" not null,
    author jsonb,                                   -- the person, in chats of several people
    at bigint not null,
    channel text collate "C" not null,
    external_id text collate "C" not null,          -- of its event, by which some platforms take it back
    primary key (turn_id, person)
);

create index reactions_by_event on reactions (external_id);

create table questions (
    seq bigint generated always as identity unique, -- the order in which turns first asked
    turn_id uuid primary key references turns (id),
    claim bigint not null,                          -- whose deliveries ask it
    conversation_id uuid not null,                  -- where it was asked
    channel text collate "C" not null,
    chooser text collate "C",                       -- the platform's id of the only person who may pick
    text text not null,                             -- the question, without its choices
    choices text not null,                          -- JSON: list of text
    free_text boolean not null,                     -- whether the person may also answer in their own words
    asked_at bigint not null,
    expires_at bigint,
    language text collate "C",                      -- of the person who was asked; null if it is not known
    state text collate "C" not null,                -- open, picked, expired
    picked text                                     -- the choice that was picked first
);

create index questions_open on questions (conversation_id, asked_at) where state = 'open';
create index questions_expiring on questions (expires_at) where state = 'open' and expires_at is not null;

create table approvals (
    seq bigint generated always as identity primary key,    -- the order in which they were asked for
    id uuid not null unique,
    turn_id uuid not null references turns (id),
    channel text collate "C" not null,
    agent text collate "C" not null,
    person text not null,                       -- the name of who wrote the turn, or their id
    action text not null,
    details text,
    kind text,
    asked_at bigint not null,
    expires_at bigint,                          -- null: a rule decided it
    state text collate "C" not null,            -- waiting, approved, declined, expired, dropped
    decided_at bigint,
    decided_by text,
    note text,
    given_to bigint,                            -- the run that it was given to
    choices text,                               -- JSON: Choices
    options text not null,                      -- JSON: list of ApprovalOption
    chosen text
);

create index approvals_of_turn on approvals (turn_id);
create index approvals_waiting on approvals (seq) where state = 'waiting';

create table whole_requests (
    approval_id uuid primary key references approvals (id),
    action text not null,
    details text,
    kind text
);

create table approval_notices (
    approval_id uuid not null,
    person_id uuid not null,
    turn_id uuid not null references turns (id),    -- the message
    primary key (approval_id, person_id)
);

create index approval_notices_of_turn on approval_notices (turn_id);

create table files (
    digest bytea primary key,                   -- SHA-256 of the content
    size bigint not null,                       -- of the content, in bytes
    content bytea not null
);

alter table files alter column content set storage external;

create table file_uses (
    turn_id uuid not null,                      -- no foreign keys: they are removed with the turn, and written with the file
    digest bytea not null,
    spoken_at bigint,                           -- since when the sound of spoken words is kept; null: as long as its turn
    primary key (turn_id, digest)
);

create index file_uses_of_file on file_uses (digest);
create index file_uses_spoken on file_uses (spoken_at) where spoken_at is not null;

-- Where browsers are told of answers while no page shows the conversation (RFC 8030, RFC 8291).
create table push_subscriptions (
    channel text collate "C" not null,
    chat text collate "C" not null,
    thread text collate "C" not null,           -- '' without a thread
    endpoint text collate "C" not null,         -- a URL of the browser's push service
    key bytea not null,                         -- the browser's public key, 65 bytes
    auth bytea not null,                        -- 16 bytes
    told_at bigint not null,                    -- what was shown until then is told
    primary key (channel, chat, thread, endpoint)
);

create index push_subscriptions_of_endpoint on push_subscriptions (channel, endpoint);

create table agent_sessions (
    session_id uuid not null,                   -- no foreign key: the row stays until the agent is told that the session is gone
    agent text collate "C" not null,
    own_session text,                           -- the agent's own id of the session; null: it has named none
    removals bigint not null default 0,
    primary key (session_id, agent)
) with (fillfactor = 80);

create table agent_notices (
    session_id uuid not null,
    agent text collate "C" not null,
    change text collate "C" not null,           -- left, deleted, turn_removed
    turn_id uuid not null,                      -- the removed turn, or the nil id; no foreign key: the turn is gone
    due_at bigint not null,                     -- 0: at once
    attempts bigint not null,
    primary key (session_id, agent, change, turn_id)
);

create index agent_notices_due on agent_notices (due_at);

create table people (
    id uuid primary key,
    name text not null,
    role text collate "C" not null,             -- member, owner
    created_at bigint not null,
    sessions_version bigint not null default 0
) with (fillfactor = 80);

create table identities (
    channel text collate "C" not null,
    id text collate "C" not null,               -- as InboundEvent::person names them
    person_id uuid not null references people (id),
    added_at bigint not null,
    added_by text not null,                     -- who let them in: the name of a token, configuration, or the name of an owner
    primary key (channel, id)
);

create index identities_of_person on identities (person_id);

create table pairings (
    channel text collate "C" not null,
    id text collate "C" not null,               -- who asks, as InboundEvent::person names them
    code text collate "C" not null unique,      -- without the dash
    name text,                                  -- the display name, and the unique one, that the platform gave
    username text,
    chat text collate "C" not null,             -- where they asked
    thread text collate "C" not null,           -- '' without a thread
    asked_at bigint not null,
    expires_at bigint not null,                 -- of a declined request: until when they cannot ask again
    state text collate "C" not null,            -- waiting, declined, approved: let in, and not told yet
    language text collate "C",
    linked_by uuid,
    primary key (channel, id)
);

create table languages (
    channel text collate "C" not null,
    id text collate "C" not null,               -- who chose, as InboundEvent::person names them
    language text collate "C" not null,         -- two or three letters: de
    primary key (channel, id)
);

create table direct_chats (
    channel text collate "C" not null,
    id text collate "C" not null,               -- whose chat it is, as InboundEvent::person names them
    chat text collate "C" not null,
    thread text collate "C" not null,           -- '' without a thread
    since bigint not null,                      -- since when they write there, and not on another of their channels
    is_home boolean not null default false,
    language text collate "C",
    primary key (channel, id)
) with (fillfactor = 80);

create table guesses (
    who text collate "C" not null,              -- an operator's name, an identity, or a channel
    code text collate "C" not null,
    since bigint not null,                      -- when the first of the tries came that count together
    primary key (who, code)
);

create table daily_use (
    channel text collate "C" not null,
    id text collate "C" not null,               -- who it is, as InboundEvent::person names them
    day bigint not null,                        -- days since 1970-01-01, in the gateway's time zone
    turns bigint not null,
    tokens bigint not null,
    micros bigint not null default 0,
    estimated bigint not null default 0,
    primary key (channel, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

create table agent_use (
    agent text collate "C" primary key,
    day bigint not null,                        -- days since 1970-01-01, in the gateway's time zone
    turns bigint not null,                      -- runs, of which a turn may have several
    tokens bigint not null,
    micros bigint not null,                     -- in millionths of the currency of its price
    estimated bigint not null default 0
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create table schedules (
    id uuid primary key,
    name text collate "C" not null unique,
    body text not null                          -- JSON: Schedule
);

create table schedule_runs (
    schedule_id uuid not null references schedules (id),
    due_at bigint not null,
    at bigint not null,                         -- when it was acted on
    turns text not null,                        -- JSON: list of ids of turns, which may be gone
    problem text,                               -- why none was begun
    not_reached text not null default '[]',
    primary key (schedule_id, due_at)
);

create table channels_cursor (
    channel text collate "C" not null,
    name text collate "C" not null,
    position text not null,
    primary key (channel, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

create table blocked (
    channel text collate "C" not null,
    account boolean not null,                   -- whether the whole account is blocked
    chat text collate "C" not null,             -- '' if the account is blocked
    until bigint not null,
    primary key (channel, account, chat)
) with (fillfactor = 70);

create table paused (
    channel text collate "C" primary key,
    since bigint not null,
    by text not null,                           -- the name of the token
    reason text
);

create table versions (
    noun text collate "C" primary key,          -- people, schedules, tokens
    version bigint not null
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

insert into versions (noun, version) values ('people', 0), ('schedules', 0), ('tokens', 0);

-- What happened. A reader goes on after the last place that it has read, and never beyond the place up to which all writers have
-- ended (`postgres/log.rs`): places are taken before their transactions commit.
create table log (
    seq bigint primary key default nextval('log_seq'),
    at bigint not null,
    topic text collate "C" not null,            -- turn.settled, …
    turn_id uuid,                               -- no foreign keys: an entry may be kept longer than what it is about
    conversation_id uuid,
    channel text collate "C",
    data text not null                          -- JSON: the fields of LogEvent
) with (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

create table audit (
    id bigint generated always as identity primary key,
    at bigint not null,
    by text not null,                           -- the name of the token
    action text collate "C" not null,           -- retry, redirect, …
    target text collate "C" not null,           -- the id of what it was done to
    reason text,
    turn_id uuid,
    conversation_id uuid,
    channel text collate "C",
    not_reached text not null                   -- JSON: list of NotReached
);

create table answers (
    by text collate "C" not null,
    key text collate "C" not null,
    request bytea not null,                     -- a digest of what was asked
    status bigint not null,                     -- of HTTP
    body text not null,                         -- JSON
    at bigint not null,
    primary key (by, key)
);

create index answers_by_age on answers (at);

create table tokens (
    id uuid primary key,
    name text collate "C" not null,
    hash bytea not null unique,                 -- SHA-256 of the token
    role text collate "C" not null,             -- viewer, operator, admin
    channels text,                              -- JSON: list of text; null: all
    created_at bigint not null,
    created_by text not null,
    expires_at bigint,
    revoked_at bigint
);

create table sign_ins (
    id uuid primary key,
    hash bytea not null unique,                 -- HMAC-SHA-256 of the cookie's secret, by the token of the configuration
    token uuid,                                 -- the token with which it was opened; null: the one of the configuration
    browser text not null,                      -- what the browser calls itself, cut
    opened_at bigint not null,
    expires_at bigint not null
);

create table sign_in_links (
    code bytea primary key,                     -- SHA-256 of the code
    token uuid,                                 -- the token with which it was made; null: the one of the configuration
    session uuid,                               -- the session in which it was made
    expires_at bigint not null
);

-- What people sign in to a chat page with.
create table passkeys (
    id bytea primary key,                       -- as the authenticator gave it
    channel text collate "C" not null,
    account text collate "C" not null,          -- the id of the person on the channel
    party text collate "C" not null,            -- the host of the page for which it was made
    algorithm bigint not null,                  -- the COSE number
    key bytea not null,                         -- SubjectPublicKeyInfo
    counter bigint not null,                    -- of signatures; 0: the authenticator does not count
    browser text not null,                      -- what the browser calls itself, cut
    added_at bigint not null,
    used_at bigint
);

create index passkeys_of_account on passkeys (channel, account);

create table visits (
    id uuid primary key,
    hash bytea not null unique,                 -- SHA-256 of the cookie's secret
    channel text collate "C" not null,
    account text collate "C" not null,
    challenge bytea not null unique,            -- SHA-256 of the challenge that was signed
    browser text not null,
    opened_at bigint not null,
    expires_at bigint not null
);

create index visits_of_account on visits (channel, account);
create index visits_by_end on visits (expires_at);

create table invitations (
    code bytea primary key,                     -- SHA-256 of the code
    channel text collate "C" not null,
    account text collate "C" not null,
    expires_at bigint not null
);

create index invitations_of_account on invitations (channel, account);

create table log_lines (
    id bigint generated always as identity primary key,     -- never used again: pages of the list begin at ids
    at bigint not null,
    level text collate "C" not null,            -- error, warn, info, debug
    target text collate "C" not null,           -- the module that wrote it
    message text not null,
    channel text collate "C",
    turn_id uuid,                               -- no foreign key: a line may be kept longer than its turn
    fields text not null                        -- JSON: object
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

create index log_lines_of_trouble on log_lines (id) where level in ('error', 'warn');
create index log_lines_of_channel on log_lines (channel, id) where channel is not null;
create index log_lines_of_turn on log_lines (turn_id, id) where turn_id is not null;

create table errors (
    id bigint generated always as identity primary key,
    key bytea not null unique,                  -- SHA-256 of level, target, message and channel
    level text collate "C" not null,            -- error, warn
    target text collate "C" not null,
    message text not null,
    channel text collate "C",
    count bigint not null,
    first_at bigint not null,
    last_at bigint not null,
    last_line bigint not null,                  -- the latest of these lines; the error is removed with it
    fields text not null,                       -- JSON: object, of the latest
    acknowledged_at bigint,
    muted boolean not null default false
) with (fillfactor = 50);

create index errors_by_last_line on errors (last_line);

-- The index of the lines of ended turns, for the search: of what a person wrote, and of what was answered. It has no copy of the
-- texts. The words are those of `core::model::search`, folded, with their places: PostgreSQL's own parser and dictionaries are not
-- used, so that both databases find the same. One word stands for the channel, and one for the conversation.
create table search (
    position bigint primary key,                -- seq of the turn * 4 + the speaker (0 person, 1 agent, 2 gateway)
    words tsvector not null
) with (autovacuum_vacuum_scale_factor = 0.05);

create index search_words on search using gin (words) with (fastupdate = on, gin_pending_list_limit = 1024);

-- One row: how far the index has followed the log.
create table search_progress (
    id bigint primary key check (id = 1),
    logged bigint not null,                     -- the seq of the last entry of the log that was read
    turn bigint,                                -- while all turns are indexed anew: the seq of the last one
    again boolean not null default false        -- whether all turns are indexed once more after that
) with (fillfactor = 20);

insert into search_progress (id, logged) values (1, 0);

-- The last batch of each connection that writes, in its transaction: a node that lost the answer finds out here whether it was
-- committed, and which of its requests were refused.
create table writers (
    node uuid not null,
    lane bigint not null,
    batch bigint not null,
    refused bigint[] not null,
    at timestamptz not null,
    primary key (node, lane)
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

create table probe (
    id bigint primary key check (id = 1),
    count bigint not null
) with (fillfactor = 20);

insert into probe (id, count) values (1, 0);
