//! The statement that applies several transitions: its parts, as text. One without rows is left out.
//!
//! All parts see the same state of the tables: that before the statement, and of a row that another transaction has changed meanwhile
//! the latest version, once it is locked. So what is decided on is read from `conversation` and `locked`, which lock. That a lane is
//! empty is read as it was before: a claim of another node at the same moment is not seen, and two answers may change their order.
//!
//! Locks are taken in the order of the row path: leases, conversations, turns, and all else of the locked turns. Each part reads from
//! the one before it, because PostgreSQL executes a part when its rows are asked for.

use super::table::{
    Section,
    Type::{Bytes, Flag, Id, Number, Text},
};

/// Requests, and the leases under which they are done, as far as these are held. They are locked until the end of the transaction, in
/// the order of their names.
macro_rules! requests_under_leases {
    () => {
        concat!(
            "
requests as materialized (
    select x.* from {rows}
), lease as materialized (
    select l.name, l.fence
    from (select distinct lease, fence from requests where lease is not null) as w
        join leases as l on l.name = w.lease and l.fence = w.fence
    where ",
            $crate::postgres::sql::lease_is_held!("l"),
            "
    order by l.name for key share of l
)"
        )
    };
}
pub(super) use requests_under_leases;

/// The end of a statement that inserts slots. Whether a slot that a turn has may be taken is decided by the row path.
macro_rules! free_slot_taken {
    () => {
        "    on conflict (conversation_id) do update
        set turn_id = excluded.turn_id, node = excluded.node, since = excluded.since
        where slots.turn_id is null or slots.turn_id = excluded.turn_id and slots.node = excluded.node
    returning turn_id
"
    };
}
pub(super) use free_slot_taken;

/// Transitions, by their numbers, with the lease under which each is done and the lane that it wants to be empty.
///
/// `takes`: whether a run of it takes a slot.
pub(super) const REQUESTS: Section = Section {
    columns: &[
        ("req", Number),
        ("lease", Text),
        ("fence", Number),
        ("takes", Flag),
        ("conversation", Id),
        ("channel", Text),
        ("chat", Text),
        ("thread", Text),
    ],
    sql: requests_under_leases!(),
    ..Section::EMPTY
};

/// Turns that are locked with their conversations, and the conversations of lanes.
pub(super) const LOCKS: Section = Section {
    columns: &[("turn", Id), ("lane", Id)],
    sql: "
locks as materialized (
    select x.* from {rows}
), conversation as materialized (
    select c.id, c.channel, c.chat, c.thread
    from conversations as c
    where (select count(*) from lease) is not null and c.id = any(array(
        select t.conversation_id from turns as t where t.id = any(array(select w.turn from locks as w))
        union all select w.lane from locks as w))
    order by c.id for no key update of c
), locked as materialized (
    select t.id, t.version, t.seq, t.session_id, t.place, t.conversation_id, t.channel, t.person,
        t.work is not distinct from 'running' as is_running
    from turns as t
    where (select count(*) from conversation) is not null and t.id = any(array(select w.turn from locks as w))
    order by t.id for no key update of t
)",
    ..Section::EMPTY
};

/// Turns that change. `holds`: whether the run in flight has the slot. `has_left`: whether a run has left it, as in `slots.rs`.
pub(super) const CHANGES: Section = Section {
    columns: &[
        ("req", Number),
        ("turn", Id),
        ("expected", Number),
        ("owed", Flag),
        ("state", Text),
        ("work", Text),
        ("wake_at", Number),
        ("overdue_at", Number),
        ("ended_at", Number),
        ("handoff", Text),
        ("body", Text),
        ("postponed", Flag),
        ("suspended", Flag),
        ("fell_back", Flag),
        ("merged_into", Id),
        ("waits", Flag),
        ("holds", Flag),
        ("has_left", Flag),
    ],
    sql: "
changes as materialized (
    select x.*, k.id is not null as is_current, k.place, k.is_running, k.conversation_id
    from {rows} left join locked as k on k.id = x.turn and k.version = x.expected
)",
    guard: "
        when r.req in (select c.req from changes as c where not c.is_current) then 1",
    ..Section::EMPTY
};

/// If a turn begins or ceases to wait, what is left in the line of its conversation must be looked at.
pub(super) const UNSETTLED: Section = Section {
    guard: "
        when r.req in (select c.req from changes as c where c.waits <> (c.place is not null)) then 3",
    ..Section::EMPTY
};

pub(super) const EMPTY_LANES: Section = Section {
    guard: "
        when r.conversation is not null and (
            not exists (
                select 1 from conversation as c
                where c.id = r.conversation and c.channel = r.channel and c.chat = r.chat and c.thread = r.thread)
            or exists (
                select 1 from deliveries as d
                where d.channel = r.channel and d.conversation_id = r.conversation and d.state in ('pending', 'sending') offset 0))
            then 1",
    ..Section::EMPTY
};

/// Runs that start: they are known before it is known which transitions are applied. A transition that frees a slot and takes one is
/// not for this statement, in which both happen at the same time.
pub(super) const STARTS: Section = Section {
    columns: &[
        ("req", Number),
        ("turn", Id),
        ("number", Number),
        ("agent", Text),
        ("command", Text),
        ("owner", Id),
        ("at", Number),
        ("takes", Flag),
    ],
    sql: "
starts as materialized (
    select x.* from {rows}
)",
    guard: "
        when r.takes and r.req in (select c.req from changes as c where c.is_running and not c.holds) then 3",
    ..Section::EMPTY
};

/// Which transitions are applied (0), conflict (1), have lost their lease (2), or are not for this statement (3). `{guards}`: cases.
pub(super) const GUARDS: Section = Section {
    sql: "
guards as materialized (
    select r.req, case
        when r.lease is not null and (r.lease, r.fence) not in (select name, fence from lease) then 2{guards}
        else 0 end as code
    from requests as r
)",
    ..Section::EMPTY
};

/// After the other guards: a slot is taken only by a transition that is applied otherwise. The row path, which decides on a slot that a
/// turn has, sees what was committed before the conversation was locked.
pub(super) const SLOTS_TAKEN: Section = Section {
    sql: concat!(
        "
taken as (
    insert into slots (conversation_id, turn_id, node, since)
    select k.conversation_id, s.turn, s.owner, clock_timestamp()
    from starts as s join guards as g on g.req = s.req and g.code = 0 join locked as k on k.id = s.turn
    where s.takes
    order by k.conversation_id
",
        free_slot_taken!(),
        "), result as materialized (
    select g.req, case
        when g.code = 0 and g.req in (
            select s.req from starts as s where s.takes and s.turn not in (select turn_id from taken)) then 3
        else g.code end as code
    from guards as g
), good as materialized (
    select req from result where code = 0
)"
    ),
    ..Section::EMPTY
};

pub(super) const NO_SLOTS_TAKEN: Section = Section {
    sql: "
result as materialized (
    select req, code from guards
), good as materialized (
    select req from result where code = 0
)",
    ..Section::EMPTY
};

/// What [`CHANGES`] write.
pub(super) const CHANGED: Section = Section {
    sql: "
freed as (
    update slots as s set turn_id = null, node = null, since = null
    from changes as c join good on good.req = c.req
    where c.is_running and not c.holds and s.conversation_id = c.conversation_id and s.turn_id = c.turn
        and (c.has_left or not exists (select 1 from living_nodes as n where n.id = s.node))
), changed as (
    update turns as t set
        version = t.version + 1, owed = c.owed, state = c.state, work = c.work, wake_at = c.wake_at, overdue_at = c.overdue_at,
        place = case when c.work = 'waiting' then t.place end, absent = t.absent and c.ended_at is null,
        ended_at = case when c.ended_at is not null then coalesce(t.ended_at, c.ended_at) end,
        next_agent = coalesce(c.handoff, t.next_agent), body = c.body, postponed = c.postponed, suspended = c.suspended,
        fell_back = c.fell_back, merged_into = c.merged_into
    from changes as c join good on good.req = c.req
    where t.id = c.turn
    returning 1
)",
    check: "
    and must_be((select count(*) from changed), (select count(*) from changes join good on good.req = changes.req), 'turns')",
    ..Section::EMPTY
};

/// What [`STARTS`] write.
pub(super) const STARTED: Section = Section {
    sql: "
started as (
    insert into runs (run, agent, command, owner, started_at)
    select k.seq << 16 | s.number, s.agent, s.command, s.owner, s.at
    from starts as s join good on good.req = s.req join locked as k on k.id = s.turn
    returning 1
)",
    check: "
    and must_be((select count(*) from started), (select count(*) from starts join good on good.req = starts.req), 'runs')",
    ..Section::EMPTY
};

/// New deliveries. The parts of a claim have the same `family`.
pub(super) const DELIVERIES: Section = Section {
    columns: &[
        ("req", Number),
        ("family", Number),
        ("id", Id),
        ("turn", Id),
        ("claim", Number),
        ("part", Number),
        ("parts", Number),
        ("conversation", Id),
        ("channel", Text),
        ("class", Text),
        ("signal", Text),
        ("via", Text),
        ("by_agent", Flag),
        ("is_copy", Flag),
        ("action", Text),
        ("state", Text),
        ("attempts", Number),
        ("next_attempt_at", Number),
        ("label", Text),
        ("parked", Flag),
        ("message_ids", Text),
        ("error", Text),
        ("created_at", Number),
        ("retried_at", Number),
        ("delivered_at", Number),
        ("fetched_at", Number),
    ],
    sql: "
deliveries_in as materialized (
    select x.* from {rows} join good on good.req = x.req
), families as materialized (
    select w.family, nextval('claim_seq') << 16 as first from (select distinct family from deliveries_in order by family) as w
), deliveries_made as (
    insert into deliveries (
        seq, id, turn_id, claim, part, parts, conversation_id, channel, class, signal, via, by_agent, is_copy, action, state, attempts,
        next_attempt_at, label, parked, message_ids, error, created_at, retried_at, delivered_at, fetched_at)
    select f.first | d.part, d.id, d.turn, d.claim, d.part, d.parts, d.conversation, d.channel, d.class, d.signal, d.via, d.by_agent,
        d.is_copy, d.action::jsonb, d.state, d.attempts, d.next_attempt_at, d.label, d.parked, d.message_ids::jsonb, d.error,
        d.created_at, d.retried_at, d.delivered_at, d.fetched_at
    from deliveries_in as d join families as f on f.family = d.family join locked as k on k.id = d.turn
    returning 1
)",
    check: "
    and must_be((select count(*) from deliveries_made), (select count(*) from deliveries_in), 'deliveries')",
    ..Section::EMPTY
};

pub(super) const DELIVERY_CHANGES: Section = Section {
    columns: &[
        ("req", Number),
        ("id", Id),
        ("state", Text),
        ("attempts", Number),
        ("next_attempt_at", Number),
        ("label", Text),
        ("parked", Flag),
        ("action", Text),
        ("message_ids", Text),
        ("error", Text),
        ("retried_at", Number),
        ("delivered_at", Number),
        ("copies", Number),
        ("resend_from", Number),
    ],
    sql: "
delivery_changes as materialized (
    select x.* from {rows} join good on good.req = x.req
), deliveries_changed as (
    update deliveries as d set
        state = c.state, attempts = c.attempts, next_attempt_at = c.next_attempt_at, label = c.label, parked = c.parked,
        action = coalesce(c.action::jsonb, d.action), message_ids = c.message_ids::jsonb, error = c.error,
        retried_at = c.retried_at, delivered_at = c.delivered_at, copies = c.copies, resend_from = c.resend_from
    from delivery_changes as c where d.id = c.id
    returning 1
)",
    check: "
    and must_be((select count(*) from deliveries_changed), (select count(*) from delivery_changes), 'deliveries')",
    ..Section::EMPTY
};

/// The deliveries are locked: they are made or changed in the same transition.
pub(super) const ATTEMPTS: Section = Section {
    columns: &[("req", Number), ("delivery", Id), ("number", Number), ("owner", Id), ("at", Number)],
    sql: "
attempts_made as (
    insert into attempts (delivery_id, number, owner, started_at)
    select x.delivery, x.number, x.owner, x.at from {rows} join good on good.req = x.req
)",
    ..Section::EMPTY
};

pub(super) const ATTEMPT_ENDS: Section = Section {
    columns: &[
        ("req", Number),
        ("delivery", Id),
        ("number", Number),
        ("at", Number),
        ("result", Text),
        ("detail", Text),
    ],
    sql: "
attempt_ends as materialized (
    select x.* from {rows} join good on good.req = x.req
), attempts_ended as (
    update attempts as a set ended_at = e.at, result = e.result, detail = e.detail
    from attempt_ends as e where a.delivery_id = e.delivery and a.number = e.number and a.ended_at is null
    returning 1
)",
    check: "
    and must_be((select count(*) from attempts_ended), (select count(*) from attempt_ends), 'attempts')",
    ..Section::EMPTY
};

/// Runs that end. One whose end is written is not for this statement, unless that end gives way: what it used does not count again.
pub(super) const RUN_ENDS: Section = Section {
    columns: &[
        ("req", Number),
        ("turn", Id),
        ("number", Number),
        ("at", Number),
        ("ending", Text),
        ("detail", Text),
        ("usage", Text),
        ("cost_micros", Number),
        ("currency", Text),
        ("member", Text),
    ],
    sql: "
run_ends as materialized (
    select x.*, k.seq << 16 | x.number as run from {rows} join locked as k on k.id = x.turn
)",
    guard: "
        when r.req in (
            select e.req from run_ends as e where not exists (
                select 1 from runs as o
                where o.run = e.run and (o.ended_at is null or o.ending in ('crashed', 'stopped')) offset 0))
            then 3",
    ..Section::EMPTY
};

/// What [`RUN_ENDS`] write. If another node writes one of them at the same moment, the statement fails.
pub(super) const ENDED: Section = Section {
    sql: "
runs_ended as (
    update runs as r set
        ended_at = e.at, ending = e.ending, detail = e.detail, usage = e.usage::jsonb, cost_micros = e.cost_micros,
        currency = e.currency, member = e.member, holder = case when e.ending in ('crashed', 'stopped') then r.holder end
    from run_ends as e join good on good.req = e.req
    where r.run = e.run and (r.ended_at is null or r.ending in ('crashed', 'stopped'))
    returning 1
)",
    check: "
    and must_be((select count(*) from runs_ended), (select count(*) from run_ends join good on good.req = run_ends.req), 'runs')",
    ..Section::EMPTY
};

/// What runs used, of which people have a limit. Rows are changed in one order, and summands have a limit, as in the row path.
pub(super) const USED: Section = Section {
    columns: &[("req", Number), ("turn", Id), ("tokens", Number), ("estimated", Number), ("micros", Number)],
    sql: "
used as materialized (
    select k.channel, k.person, least(sum(x.tokens), 4000000000000000000)::bigint as tokens,
        least(sum(x.estimated), 4000000000000000000)::bigint as estimated, least(sum(x.micros), 4000000000000000000)::bigint as micros
    from {rows} join good on good.req = x.req join locked as k on k.id = x.turn
    group by k.channel, k.person
), users as materialized (
    select u.channel, u.id from used as w join daily_use as u on u.channel = w.channel and u.id = w.person
    order by u.channel, u.id for no key update of u
), counted as (
    update daily_use as u set
        tokens = least(u.tokens + w.tokens, 4000000000000000000),
        estimated = least(u.estimated + w.estimated, 4000000000000000000),
        micros = least(u.micros + w.micros, 4000000000000000000)
    from used as w where u.channel = w.channel and u.id = w.person and (select count(*) from users) is not null
)",
    ..Section::EMPTY
};

/// What runs were shown and did, with settings that are stored and may be used up to a run.
pub(super) const CONTENTS: Section = Section {
    columns: &[
        ("req", Number),
        ("turn", Id),
        ("number", Number),
        ("at", Number),
        ("settings", Number),
        ("used_until", Number),
        ("messages", Bytes),
        ("left_out", Number),
        ("tools", Text),
        ("tools_left_out", Number),
    ],
    sql: "
contents as materialized (
    select x.*, k.seq << 16 | x.number as run from {rows} join locked as k on k.id = x.turn
)",
    guard: "
        when r.req in (select c.req from contents as c where c.run > c.used_until) then 3",
    ..Section::EMPTY
};

/// What [`CONTENTS`] write. Another connection may have removed the settings, or may be about to.
pub(super) const KEPT: Section = Section {
    sql: "
settings as materialized (
    select s.id
    from (select distinct c.settings from contents as c join good on good.req = c.req) as w
        join run_settings as s on s.id = w.settings
    order by s.id for key share of s
), kept as (
    insert into run_contents (run, at, settings, messages, left_out, tools, tools_left_out)
    select c.run, c.at, c.settings, c.messages, c.left_out, c.tools, c.tools_left_out
    from contents as c join good on good.req = c.req
    where c.settings is null or c.settings in (select id from settings)
    on conflict (run) do update set at = excluded.at, settings = excluded.settings, messages = excluded.messages,
        left_out = excluded.left_out, tools = excluded.tools, tools_left_out = excluded.tools_left_out
    returning 1
)",
    check: "
    and must_be((select count(*) from kept), (select count(*) from contents join good on good.req = contents.req), 'contents')",
    ..Section::EMPTY
};

/// The session of the turn may be another one than when its run began. A turn with the line of a person is at its expected version: so
/// is its event.
pub(super) const LINES: Section = Section {
    columns: &[
        ("req", Number),
        ("session", Id),
        ("seq", Number),
        ("turn", Id),
        ("speaker", Text),
        ("author", Text),
        ("forwarded", Text),
        ("text", Text),
        ("at", Number),
        ("claim", Number),
        ("stopped", Flag),
    ],
    sql: "
lines as (
    insert into transcript (session_id, seq, turn_id, speaker, author, forwarded, text, at, claim, stopped)
    select coalesce(k.session_id, x.session), x.seq, x.turn, x.speaker, x.author::jsonb, x.forwarded::jsonb,
        case when x.speaker = 'person' then nullif(x.text, (
            select e.text from turns as t join events as e on e.seq = t.event where t.seq = x.seq)) else x.text end,
        x.at, x.claim, x.stopped
    from {rows} join good on good.req = x.req left join locked as k on k.id = x.turn
    on conflict (session_id, seq, claim, turn_id) do update set author = excluded.author,
        forwarded = excluded.forwarded, text = excluded.text, at = excluded.at, stopped = excluded.stopped
)",
    ..Section::EMPTY
};

/// Counts the changes of sessions, which are given by id or by a turn in them. Each transition counts once for each session.
///
/// After [`USED`]: parts that change rows and that no other part reads are executed from the last to the first, and an accept also locks
/// sessions before the budgets of the day.
pub(super) const CHANGED_SESSIONS: Section = Section {
    columns: &[("req", Number), ("session", Id), ("turn", Id)],
    sql: "
changed_sessions as materialized (
    select w.session, count(*) as number
    from (
        select x.req, x.session from {rows} join good on good.req = x.req
        union select x.req, k.session_id from {rows} join good on good.req = x.req join locked as k on k.id = x.turn) as w
    group by w.session
), locked_sessions as materialized (
    select s.id from changed_sessions as w join sessions as s on s.id = w.session order by s.id for no key update of s
), counted_changes as (
    update sessions as s set changes = s.changes + w.number
    from changed_sessions as w where s.id = w.session and (select count(*) from locked_sessions) is not null
)",
    ..Section::EMPTY
};

pub(super) const REMARKS: Section = Section {
    columns: &[("req", Number), ("turn", Id), ("at", Number), ("kind", Text), ("detail", Text)],
    sql: "
remarked as (
    insert into remarks (turn_id, at, kind, detail)
    select x.turn, x.at, x.kind, x.detail from {rows} join good on good.req = x.req order by x.ord
)",
    ..Section::EMPTY
};

/// Entries of the log get their numbers when the transaction has its id: so readers wait for it.
pub(super) const LOG: Section = Section {
    columns: &[
        ("req", Number),
        ("at", Number),
        ("topic", Text),
        ("turn", Id),
        ("conversation", Id),
        ("channel", Text),
        ("data", Text),
    ],
    sql: "
logged as (
    insert into log (seq, at, topic, turn_id, conversation_id, channel, data)
    select nextval('log_seq'), w.at, w.topic, w.turn, w.conversation, w.channel, w.data
    from (select x.* from {rows} join good on good.req = x.req order by x.ord) as w
    where pg_current_xact_id() is not null
    returning seq
)",
    ..Section::EMPTY
};

/// The row of the lane, if the statement is a transaction of its own.
pub(super) const WRITER: Section = Section {
    columns: &[("node", Id), ("lane", Number), ("batch", Number)],
    sql: "
writer as (
    insert into writers (node, lane, batch, refused, at)
    select x.node, x.lane, x.batch, array(select r.req from result as r where r.code <> 0), now() from {rows}
    on conflict (node, lane) do update set batch = excluded.batch, refused = excluded.refused, at = excluded.at
)",
    ..Section::EMPTY
};
