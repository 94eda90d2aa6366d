//! Plain events: three statements in one transaction accept those of a batch, with the rules of [`accept`](super::super::accept) and
//! [`insert`](super::super::insert).
//!
//! The first inserts the events and locks the conversations, the second looks what is there, and the third writes what follows. An event
//! that is not new, a slot that another node has or for which an earlier turn waits, a lease that is lost or a session that ends is not for
//! a batch: the transaction is rolled back, and the other requests are accepted without it.

use std::collections::{HashMap, HashSet};

use rejoinder_core::{
    ConversationId, EventKind, SessionId, StoreError, Timestamp,
    store::{
        Beside, CursorMove, EventSeq, LogEvent, LogSeq, NewEvent, NewTurn, Stored, TurnSeq,
        rules::{self, Changes, SessionOfTurn},
    },
};
use sqlx::postgres::PgRow;

use super::{
    outcome::{Outcome, hash},
    sections::{free_slot_taken, requests_under_leases},
    table::{
        Composed, Section, Table,
        Type::{Flag, Id, Number, Text},
        row,
    },
};
use crate::{
    postgres::write::{
        lines,
        rows::{self, Transaction},
        sessions::Current,
    },
    records::columns::Columns,
    shared::{
        request::{WriteRequest, WriteResult},
        stored::{AHEAD, ObligationColumns, handler, json, run_key, sender_names, thread},
    },
};

/// What events write that open plain turns, or none, with what is beside them: no two requests of a batch have one of these in common.
/// `None` if they are not for a batch.
pub(super) fn keys(events: &[NewEvent], beside: Option<&Beside<Stored>>) -> Option<Vec<u64>> {
    let mut keys = Vec::new();
    match beside {
        Some(Beside::Operation(_)) => return None,
        Some(Beside::Cursor(CursorMove { channel, name, .. })) => keys.push(hash(&("cursor", channel.as_str(), name))),
        Some(Beside::Lease(_)) | None => {}
    }
    for new in events {
        if !is_plain(new) {
            return None;
        }
        let Some(turn) = &new.turn else { continue };
        let address = &new.event.conversation;
        keys.push(hash(&("address", address.channel.as_str(), &*address.chat, thread(address))));
        if turn.obligation.is_waiting() || turn.day.is_some() {
            keys.push(hash(&("person", address.channel.as_str(), new.event.person())));
        }
    }
    let different: HashSet<u64> = keys.iter().copied().collect();
    (different.len() == keys.len()).then_some(keys)
}

fn is_plain(new: &NewEvent) -> bool {
    let is_plain = |turn: &NewTurn| {
        turn.about.is_none()
            && turn.repeats.is_none()
            && turn.remark.is_none()
            && turn.run.as_ref().is_none_or(|run| u16::try_from(run.number).is_ok())
    };
    !new.only_if_known
        && new.files.is_empty()
        && Changes::of(&new.event, new.turn.is_some()) == Changes::Nothing
        && !matches!(new.event.kind, EventKind::ApprovalAsked { .. })
        && new.turn.as_ref().is_none_or(is_plain)
}

/// An event of a batch, with the numbers of its request and its own.
struct Item<'a> {
    request: usize,
    number: usize,
    new: &'a NewEvent,
}

/// Accepts a batch.
pub(super) async fn write(
    transaction: &mut Transaction<'_>,
    requests: &[WriteRequest],
) -> Result<Vec<Outcome>, StoreError> {
    let items = items(requests);
    let (mut excluded, entered) = enter(transaction, requests, &items).await?;
    if !excluded.is_empty() {
        return Ok(without(requests.len(), &excluded));
    }
    let seen = look(transaction, &items, &entered).await?;
    let mut turns = Vec::with_capacity(seen.len());
    for (item, turn) in items.iter().filter_map(|item| Some((item, item.new.turn.as_ref()?))) {
        let (entered, seen) = (entered.get(&item.number), seen.get(&item.number));
        match entered.zip(seen).and_then(|(entered, seen)| Opened::of(item, turn, entered, seen)) {
            Some(opened) => turns.push(opened),
            None => {
                excluded.insert(item.request);
            }
        }
    }
    if !excluded.is_empty() {
        return Ok(without(requests.len(), &excluded));
    }
    transaction.logged = open(transaction, requests, &turns).await?;
    let is_unsettled = |opened: &&Opened<'_>| opened.turn.obligation.is_waiting() && opened.position.is_none();
    for opened in turns.iter().filter(is_unsettled) {
        lines::settle(transaction, opened.conversation.as_uuid(), None).await?;
    }
    let mut stored: Vec<Vec<Stored>> = requests.iter().map(|_| Vec::new()).collect();
    let mut turns = turns.into_iter().peekable();
    for item in &items {
        let opened = turns.next_if(|opened| opened.item.number == item.number);
        stored[item.request].push(opened.map_or(Stored::Kept, |opened| opened.stored()));
    }
    Ok(stored.into_iter().map(|stored| Outcome::Done(WriteResult::Accepted(stored))).collect())
}

fn items(requests: &[WriteRequest]) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for (request, events) in requests.iter().map(|request| accepted(request).0).enumerate() {
        for new in events {
            items.push(Item { request, number: items.len(), new });
        }
    }
    items
}

fn accepted(request: &WriteRequest) -> (&[NewEvent], Option<&Beside<Stored>>) {
    match request {
        WriteRequest::Accept { events, beside } => (&events[..], beside.as_ref()),
        _ => (<&[NewEvent]>::default(), None),
    }
}

/// The others are accepted without these.
fn without(size: usize, excluded: &HashSet<usize>) -> Vec<Outcome> {
    (0..size).map(|number| if excluded.contains(&number) { Outcome::Alone } else { Outcome::Again }).collect()
}

/// An event that was inserted, and the conversation at its address, which is locked, with its session.
struct Entered {
    seq: EventSeq,
    conversation: Option<ConversationId>,
    session: Option<SessionId>,
}

/// Inserts the events, and locks the conversations in which they open turns. Returns the requests of which an event is not new or the
/// lease is lost, and the events by their numbers.
async fn enter(
    transaction: &mut Transaction<'_>,
    requests: &[WriteRequest],
    items: &[Item<'_>],
) -> Result<(HashSet<usize>, HashMap<usize, Entered>), StoreError> {
    let (mut leases, mut events) = (Table::new(LEASES), Table::new(EVENTS));
    for (number, request) in requests.iter().enumerate() {
        let fence = accepted(request).1.and_then(Beside::fence);
        leases.push(row![number, fence.map(|(name, _)| name.to_string()), fence.map(|(_, fence)| fence.0)]);
    }
    for Item { request, number, new } in items {
        let (event, turn) = (&new.event, new.turn.as_ref());
        let address = &event.conversation;
        let is_whole = turn.is_some();
        events.push(row![
            request,
            number,
            new.id,
            address.channel,
            if is_whole { &*address.chat } else { "" },
            if is_whole { thread(address) } else { "" },
            event.external_id,
            event.revision,
            turn.map(|turn| turn.id),
            is_whole.then_some(&event.text),
            is_whole.then(|| json(&**event)),
            is_whole.then(|| sender_names(&event.sender)).flatten(),
            Some(&event.raw).filter(|raw| !raw.is_empty()),
            event.received_at,
        ]);
    }
    let mut composed = Composed::default();
    composed.add(leases);
    composed.add(events);
    let read = |row: &PgRow| {
        let (request, number) = (usize::from(row.value::<u16>("req")?), row.value::<Option<u32>>("number")?);
        let (is_held, seq) = (row.value::<bool>("is_held")?, row.value::<Option<EventSeq>>("seq")?);
        let (conversation, session) = (row.value("conversation")?, row.value("session")?);
        Ok((request, number, is_held, seq.map(|seq| Entered { seq, conversation, session })))
    };
    let rows = rows::all(transaction, composed.statement(SELECT_ENTERED), read).await?;
    let (mut excluded, mut entered) = (HashSet::new(), HashMap::new());
    for (request, number, is_held, event) in rows {
        match (number.and_then(|number| usize::try_from(number).ok()), event) {
            (Some(number), Some(event)) if is_held => {
                entered.insert(number, event);
            }
            (None, _) if is_held => {}
            _ => {
                excluded.insert(request);
            }
        }
    }
    Ok((excluded, entered))
}

/// What there is when a turn is opened.
struct Look {
    seq: TurnSeq,
    /// Whether its conversation exists, or was created just now, and the turn has the slot if it needs one.
    may_open: bool,
    has_history: bool,
    current: Option<Current>,
    /// Whether a waiting turn of the conversation has a place.
    is_placed: bool,
    /// The last place of the person.
    last: Option<i64>,
}

/// Creates conversations, takes slots and the places of turns, and looks what else is there.
async fn look(
    transaction: &mut Transaction<'_>,
    items: &[Item<'_>],
    entered: &HashMap<usize, Entered>,
) -> Result<HashMap<usize, Look>, StoreError> {
    let mut turns = Table::new(NEW_TURNS);
    for Item { number, new, .. } in items {
        let Some(turn) = &new.turn else { continue };
        let (event, address) = (&new.event, &new.event.conversation);
        let owed = ObligationColumns::of(&turn.obligation).owed;
        let run = turn.run.as_ref().filter(|run| run.handler.agent().is_some());
        let entered = entered.get(number);
        turns.push(row![
            number,
            entered.and_then(|entered| entered.conversation),
            entered.and_then(|entered| entered.session),
            turn.conversation,
            address.channel,
            address.chat,
            thread(address),
            event.received_at,
            turn.id,
            run.map(|run| run.node.as_uuid()),
            turn.obligation.is_waiting(),
            event.person(),
            owed,
        ]);
    }
    if turns.is_empty() {
        return Ok(HashMap::new());
    }
    let mut composed = Composed::default();
    composed.add(turns);
    let read = |row: &PgRow| {
        let look = Look {
            seq: row.value("seq")?,
            may_open: row.value("may_open")?,
            has_history: row.value("has_history")?,
            current: Current::read(row)?,
            is_placed: row.value("is_placed")?,
            last: row.value("last")?,
        };
        Ok((row.value::<u32>("number")?, look))
    };
    let rows = rows::all(transaction, composed.statement(SELECT_LOOK), read).await?;
    Ok(rows.into_iter().filter_map(|(number, look)| Some((usize::try_from(number).ok()?, look))).collect())
}

/// A turn that is about to be inserted.
struct Opened<'a> {
    item: &'a Item<'a>,
    turn: &'a NewTurn,
    event: EventSeq,
    seq: TurnSeq,
    conversation: ConversationId,
    session: SessionId,
    /// Whether the session begins with it.
    is_first: bool,
    /// Whether the time of the last use of the session is stored.
    is_use_stored: bool,
    has_history: bool,
    rank: i64,
    position: Option<i64>,
}

impl<'a> Opened<'a> {
    /// `None` if more must be done for it than what a batch does.
    fn of(item: &'a Item<'a>, turn: &'a NewTurn, entered: &Entered, look: &Look) -> Option<Self> {
        let begins = turn.run.as_ref().is_some_and(|run| run.handler.agent().is_some());
        if !look.may_open || (begins && look.is_placed) {
            return None;
        }
        let (wanted, is_agents, at) = (&turn.session, turn.handler.agent().is_some(), item.new.event.received_at);
        let session = look.current.as_ref().map(|current| &current.session);
        let (session, is_first, is_use_stored) =
            match (rules::session_of_turn(session, wanted, is_agents, at), &look.current) {
                (SessionOfTurn::Current { new_person: None, is_use_stored }, Some(current)) => {
                    (current.id, false, is_use_stored)
                }
                (_, None) => (wanted.id, true, false),
                _ => return None,
            };
        let rank = rules::rank(look.seq, ObligationColumns::of(&turn.obligation).owed);
        let is_waiting = turn.obligation.is_waiting();
        Some(Self {
            item,
            turn,
            event: entered.seq,
            seq: look.seq,
            conversation: entered.conversation.unwrap_or(turn.conversation),
            session,
            is_first,
            is_use_stored,
            has_history: look.has_history && !is_first,
            rank,
            position: (is_waiting && !look.is_placed).then(|| rules::position(rank, None, look.last)),
        })
    }

    const fn stored(&self) -> Stored {
        let Self { seq, conversation, session, has_history, .. } = *self;
        Stored::Turn { seq, conversation, session, has_history }
    }
}

/// Inserts turns and what belongs to them, and moves cursors. Returns the place of the last entry of the log.
async fn open(
    transaction: &mut Transaction<'_>,
    requests: &[WriteRequest],
    turns: &[Opened<'_>],
) -> Result<Option<LogSeq>, StoreError> {
    let (mut inserted, mut sessions, mut used) = (Table::new(TURNS), Table::new(SESSIONS), Table::new(USED));
    let (mut runs, mut log, mut cursors) = (Table::new(RUNS), Table::new(LOG), Table::new(CURSORS));
    let mut days = Table::new(DAYS);
    for opened in turns {
        let Opened { item, turn, conversation, session, .. } = opened;
        let (event, at) = (&item.new.event, item.new.event.received_at);
        insert(&mut inserted, opened);
        if opened.is_first {
            sessions.push(row![session, conversation, turn.session.person, at]);
        }
        if opened.is_use_stored {
            used.push(row![session, at]);
        }
        let channel = &event.conversation.channel;
        if let Some(day) = turn.day {
            days.push(row![channel, event.person(), day, day.saturating_add(AHEAD)]);
        }
        let mut log = |at: Timestamp, event: &LogEvent| {
            log.push(row![at, &*event.topic(), turn.id, conversation, channel, json(event)]);
        };
        let owed = ObligationColumns::of(&turn.obligation).owed;
        log(at, &LogEvent::TurnAccepted { handler: turn.handler.clone(), owed });
        if let Some(run) = &turn.run {
            let (agent, command) = handler(&run.handler);
            let key = run_key(opened.seq, run.number);
            runs.push(row![key, agent, command, run.node.as_uuid(), run.at]);
            log(run.at, &LogEvent::TurnStarted { handler: run.handler.clone(), run: run.number });
        }
    }
    for beside in requests.iter().filter_map(|request| accepted(request).1) {
        if let Beside::Cursor(CursorMove { channel, name, position, .. }) = beside {
            cursors.push(row![channel, name, position]);
        }
    }
    let has_log = !log.is_empty();
    let mut composed = Composed::default();
    composed.add(inserted);
    for table in [sessions, used, days, runs, log, cursors] {
        composed.add_some(table);
    }
    let select = if has_log { "\nselect max(seq) as logged from logged" } else { "\nselect null::bigint as logged" };
    rows::one(transaction, composed.statement(select), |row| row.value("logged")).await.map(Option::flatten)
}

fn insert(turns: &mut Table, opened: &Opened<'_>) {
    let (turn, event) = (opened.turn, &opened.item.new.event);
    let (agent, command) = handler(&turn.handler);
    let columns = ObligationColumns::of(&turn.obligation);
    turns.push(row![
        opened.seq,
        turn.id,
        opened.conversation,
        opened.session,
        agent,
        command,
        event.received_at,
        event.conversation.channel,
        turn.rule,
        turn.model,
        opened.event,
        event.person(),
        agent.unwrap_or(""),
        opened.rank,
        opened.position,
        columns.owed,
        columns.state,
        columns.work,
        columns.wake_at,
        columns.overdue_at,
        columns.ended.then_some(event.received_at),
        columns.postponed,
        columns.suspended,
        columns.fell_back,
        columns.merged_into,
        json(&turn.obligation),
    ]);
}

/// Requests with the leases under which they are accepted.
const LEASES: Section = Section {
    columns: &[("req", Number), ("lease", Text), ("fence", Number)],
    sql: concat!(
        requests_under_leases!(),
        ", accepted as materialized (
    select req, lease is null or (lease, fence) in (select name, fence from lease) as is_held from requests
)"
    ),
    ..Section::EMPTY
};

/// Events, with the addresses of those that open turns. As in the row path, a conversation is locked after the event is inserted.
const EVENTS: Section = Section {
    columns: &[
        ("req", Number),
        ("number", Number),
        ("id", Id),
        ("channel", Text),
        ("chat", Text),
        ("thread", Text),
        ("external_id", Text),
        ("revision", Number),
        ("turn", Id),
        ("text", Text),
        ("details", Text),
        ("sender_names", Text),
        ("raw", Text),
        ("received_at", Number),
    ],
    sql: "
events_in as materialized (
    select x.* from {rows}
), inserted as (
    insert into events (
        seq, id, channel, chat, thread, external_id, revision, turn_id, text, details, sender_names, raw, received_at)
    select nextval('event_seq'), e.id, e.channel, e.chat, e.thread, e.external_id, e.revision, e.turn, e.text, e.details::jsonb,
        e.sender_names, e.raw, e.received_at
    from (select w.* from events_in as w join accepted as a on a.req = w.req and a.is_held order by w.ord) as e
    on conflict (channel, external_id, revision) do nothing
    returning seq, id
), conversation as materialized (
    select c.id, c.channel, c.chat, c.thread, c.session_id, c.succeeded_by
    from conversations as c
    where (select count(*) from inserted) is not null and c.id = any(array(
        select (
            select o.id from conversations as o
            where o.channel = w.channel and o.chat = w.chat and o.thread = w.thread and o.succeeded_by is null)
        from events_in as w where w.turn is not null))
    order by c.id for no key update of c
)",
    ..Section::EMPTY
};

const SELECT_ENTERED: &str = "
select a.req, a.is_held, e.number, i.seq, c.id as conversation, c.session_id as session
from accepted as a
    left join events_in as e on e.req = a.req
    left join inserted as i on i.id = e.id
    left join conversation as c on e.turn is not null and c.channel = e.channel and c.chat = e.chat and c.thread = e.thread
        and c.succeeded_by is null";

/// Turns to open, in the conversations that exist, or in new ones. `node`: the one that runs it at once, if its run needs a slot.
const NEW_TURNS: Section = Section {
    columns: &[
        ("number", Number),
        ("conversation", Id),
        ("session", Id),
        ("new_conversation", Id),
        ("channel", Text),
        ("chat", Text),
        ("thread", Text),
        ("at", Number),
        ("turn", Id),
        ("node", Id),
        ("waits", Flag),
        ("person", Text),
        ("owed", Flag),
    ],
    sql: concat!(
        "
new_turns as materialized (
    select x.* from {rows}
), created as (
    insert into conversations (id, channel, chat, thread, created_at)
    select n.new_conversation, n.channel, n.chat, n.thread, n.at from new_turns as n where n.conversation is null
    order by n.channel, n.chat, n.thread
    on conflict (channel, chat, thread) where succeeded_by is null do nothing
    returning id
), taken as (
    insert into slots (conversation_id, turn_id, node, since)
    select coalesce(n.conversation, n.new_conversation), n.turn, n.node, clock_timestamp()
    from new_turns as n where n.node is not null
    order by 1
",
        free_slot_taken!(),
        "), session as materialized (
    select s.id, s.owner, s.name, s.conversation_id, coalesce(s.used_at, s.created_at) as used, s.agent, s.model
    from sessions as s where s.id = any(array(select n.session from new_turns as n))
    order by s.id for no key update of s
)"
    ),
    ..Section::EMPTY
};

/// Conversations are locked before: what belongs to them is as it stays.
const SELECT_LOOK: &str = "
select n.number, n.seq,
    (n.conversation is not null or n.new_conversation in (select id from created))
        and (n.node is null or n.turn in (select turn_id from taken)) as may_open,
    exists (select 1 from transcript as t where t.session_id = n.session offset 0) as has_history,
    s.id, s.owner, s.name is not null as is_named, s.conversation_id = n.conversation as began_here, s.used, s.agent, s.model,
    exists (select 1 from turns as t where t.place is not null and t.conversation_id = n.conversation offset 0) as is_placed,
    case when n.waits then (
        select t.place from turns as t
        where t.work = 'waiting' and t.channel = n.channel and t.person = n.person and t.owed = n.owed and t.place is not null
        order by t.place desc limit 1) end as last
from (select w.*, nextval('turn_seq') as seq from (select * from new_turns order by ord) as w) as n
    left join session as s on s.id = n.session";

const TURNS: Section = Section {
    columns: &[
        ("seq", Number),
        ("id", Id),
        ("conversation", Id),
        ("session", Id),
        ("agent", Text),
        ("command", Text),
        ("accepted_at", Number),
        ("channel", Text),
        ("rule", Text),
        ("model", Text),
        ("event", Number),
        ("person", Text),
        ("next_agent", Text),
        ("rank", Number),
        ("place", Number),
        ("owed", Flag),
        ("state", Text),
        ("work", Text),
        ("wake_at", Number),
        ("overdue_at", Number),
        ("ended_at", Number),
        ("postponed", Flag),
        ("suspended", Flag),
        ("fell_back", Flag),
        ("merged_into", Id),
        ("body", Text),
    ],
    sql: "
turns_made as (
    insert into turns (
        seq, id, conversation_id, session_id, agent, command, accepted_at, channel, rule, model, event, person, next_agent, rank,
        place, owed, state, work, wake_at, overdue_at, ended_at, postponed, suspended, fell_back, merged_into, body, version)
    select x.seq, x.id, x.conversation, x.session, x.agent, x.command, x.accepted_at, x.channel, x.rule, x.model, x.event, x.person,
        x.next_agent, x.rank, x.place, x.owed, x.state, x.work, x.wake_at, x.overdue_at, x.ended_at, x.postponed, x.suspended,
        x.fell_back, x.merged_into, x.body, 1
    from {rows}
)",
    ..Section::EMPTY
};

/// New sessions, in which their conversations continue.
const SESSIONS: Section = Section {
    columns: &[("id", Id), ("conversation", Id), ("owner", Id), ("at", Number)],
    sql: "
new_sessions as materialized (
    select x.* from {rows}
), sessions_made as (
    insert into sessions (id, conversation_id, owner, created_at, used_at)
    select s.id, s.conversation, s.owner, s.at, s.at from new_sessions as s
), pointed as (
    update conversations as c set session_id = s.id from new_sessions as s where c.id = s.conversation
)",
    ..Section::EMPTY
};

const USED: Section = Section {
    columns: &[("session", Id), ("at", Number)],
    sql: "
used as (
    update sessions as s set used_at = x.at from {rows} where s.id = x.session
)",
    ..Section::EMPTY
};

/// Turns that count on a day. A row stays on its day until `until`, as in the row path.
const DAYS: Section = Section {
    columns: &[("channel", Text), ("id", Text), ("day", Number), ("until", Number)],
    sql: "
days as materialized (
    select x.* from {rows}
), counted as (
    insert into daily_use as u (channel, id, day, turns, tokens)
    select d.channel, d.id, d.day, 1, 0 from days as d order by d.channel, d.id
    on conflict (channel, id) do update set (day, turns, tokens, estimated, micros) = (
        select case when w.goes_on then u.day else excluded.day end, case when w.goes_on then u.turns else 0 end + 1,
            case when w.goes_on then u.tokens else 0 end, case when w.goes_on then u.estimated else 0 end,
            case when w.goes_on then u.micros else 0 end
        from (
            select u.day between excluded.day and d.until as goes_on
            from days as d where d.channel = excluded.channel and d.id = excluded.id) as w)
)",
    ..Section::EMPTY
};

const RUNS: Section = Section {
    columns: &[("run", Number), ("agent", Text), ("command", Text), ("owner", Id), ("at", Number)],
    sql: "
runs_made as (
    insert into runs (run, agent, command, owner, started_at)
    select x.run, x.agent, x.command, x.owner, x.at from {rows}
)",
    ..Section::EMPTY
};

const LOG: Section = Section {
    columns: &[("at", Number), ("topic", Text), ("turn", Id), ("conversation", Id), ("channel", Text), ("data", Text)],
    sql: "
logged as (
    insert into log (seq, at, topic, turn_id, conversation_id, channel, data)
    select nextval('log_seq'), w.at, w.topic, w.turn, w.conversation, w.channel, w.data
    from (select x.* from {rows} order by x.ord) as w
    where pg_current_xact_id() is not null
    returning seq
)",
    ..Section::EMPTY
};

const CURSORS: Section = Section {
    columns: &[("channel", Text), ("name", Text), ("position", Text)],
    sql: "
moved as (
    insert into channels_cursor (channel, name, position) select x.channel, x.name, x.position from {rows}
    on conflict (channel, name) do update set position = excluded.position
)",
    ..Section::EMPTY
};
