-- A turn is one row, with what is owed for it. Its event is found by its place, not by its id.

alter table turns add column event integer not null default 0;          -- the seq of its event; no foreign key, which would need an index
alter table turns add column person text not null default '';           -- the sender, as InboundEvent::person names them
alter table turns add column next_agent text not null default '';       -- the agent of its next run; '' for a command of the gateway
alter table turns add column version integer not null default 1;
alter table turns add column owed integer not null default 0;           -- whether an answer is owed
alter table turns add column state text not null default '';
alter table turns add column work text;                                 -- waiting, running, or null for neither
alter table turns add column wake_at integer;
alter table turns add column overdue_at integer;                        -- from when on it counts as overdue, while it is open
alter table turns add column ended_at integer;                          -- when it was settled or became undeliverable
alter table turns add column absent integer not null default 0;         -- 1 while its channel is not configured: it waits for the channel
alter table turns add column rank integer not null default 0;           -- the order within the conversation while it waits
alter table turns add column place integer;                             -- of its conversation in the channel's line, if it runs next there
-- JSON: Obligation, the guard's state machine. The columns before it repeat parts of it for searches.
alter table turns add column body text not null default '{}';

-- A turn without its obligation could not be read: it has ended.
update turns set
    event = coalesce((select e.rowid from events as e where e.id = turns.event_id), 0),
    state = 'settled', ended_at = accepted_at, rank = seq;

update turns set
    (person, next_agent, version, owed, state, work, wake_at, overdue_at, ended_at, absent, rank, place, body) = (
        select o.person, o.agent, o.version, o.owed, o.state, o.work, o.wake_at, o.overdue_at, o.ended_at, o.absent, o.rank,
            o.place, o.body
        from obligations as o where o.turn_id = turns.id)
where exists (select 1 from obligations as o where o.turn_id = turns.id);

drop table obligations;
alter table turns drop column event_id;

create table events_by_seq (
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

insert into events_by_seq
select rowid, id, channel, chat, thread, external_id, revision, turn_id, text, details, raw, received_at from events;

drop table events;
alter table events_by_seq rename to events;

create unique index events_by_key on events (channel, external_id, revision);
create index events_with_payload on events (received_at) where raw is not null;
create index events_of_key_only on events (received_at) where details is null;

-- A run is found by the seq of its turn.
create table runs_by_turn (
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

insert into runs_by_turn
select t.seq << 16 | r.number, r.agent, r.command, r.owner, r.started_at, r.ended_at, r.ending, r.detail, r.usage, r.cost_micros,
    r.currency, r.member, r.holder
from turns as t cross join runs as r on r.turn_id = t.id where r.number <= 65535 order by t.seq, r.number;

drop table runs;
alter table runs_by_turn rename to runs;

-- An index whose rows are counted also contains the columns of its condition, so that only the index is read. A run may go on after
-- its turn has ended.
create index turns_open on turns (conversation_id, seq, owed, overdue_at, absent, ended_at, work)
    where ended_at is null or work is not null;
create index turns_waiting on turns (conversation_id, rank, work, absent) where work = 'waiting';
-- One row for each conversation with waiting turns, so that one with many of them costs no more than any other.
create unique index turns_first on turns (conversation_id) where place is not null;
create index turns_line on turns (channel, next_agent, place, rank, absent) where place is not null and absent = 0;
create index turns_of_person on turns (channel, person, owed, place) where work = 'waiting';
create index turns_wake on turns (wake_at, seq) where wake_at is not null and absent = 0;
create index turns_absent on turns (seq, absent) where absent = 1;
create index turns_deferred on turns (seq, state) where state = 'deferred';
create index turns_undeliverable on turns (seq, state) where state = 'undeliverable';
create index turns_ended on turns (ended_at, state) where ended_at is not null;
