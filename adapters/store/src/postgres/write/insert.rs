//! Inserts new events, and the turns that they open.

use rejoinder_core::{
    ConversationId, ConversationRef, EventId, InboundEvent, SessionId, StoreError, Timestamp, TurnId,
    store::{EarlierMessage, EventSeq, LogEvent, NewEvent, NewLogEntry, NewTurn, Stored, Subject, TurnSeq, rules},
};
use sqlx::postgres::PgRow;

use super::{
    approvals, daily_use,
    lines::{self, Candidate},
    log,
    rows::{self, Transaction},
    runs,
    sessions::{self, Current},
    slots,
};
use crate::{
    postgres::values::{insert_into, statement},
    records::columns::Columns,
    shared::stored::{ObligationColumns, handler, json, sender_names, thread},
};

/// Inserts an event that changes no earlier rows, and opens its turn.
pub(super) async fn one(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    if new.only_if_known {
        return Ok(known(transaction, &new.event).await?.unwrap_or(Stored::Unknown));
    }
    let (turn, content) = match &new.turn {
        Some(turn) => (Some(turn.id), Content::All),
        None => (None, Content::Payload),
    };
    let Some(seq) = insert(transaction, new.id, &new.event, turn, content).await? else {
        return duplicate(transaction, &new.event).await;
    };
    match &new.turn {
        Some(turn) => {
            let stored = open(transaction, seq, &new.event, turn).await?;
            if stored != Stored::Busy {
                approvals::note_told(transaction, new).await?;
            }
            Ok(stored)
        }
        None => Ok(Stored::Kept),
    }
}

/// Inserts only the key of an event.
pub(super) async fn key(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    match insert(transaction, new.id, &new.event, None, Content::None).await? {
        Some(_) => Ok(Stored::Kept),
        None => duplicate(transaction, &new.event).await,
    }
}

/// Inserts an event that changes a turn. Returns its place; `None` if it is not new.
pub(super) async fn change(
    transaction: &mut Transaction<'_>,
    id: EventId,
    event: &InboundEvent,
    turn: TurnId,
) -> Result<Option<EventSeq>, StoreError> {
    insert(transaction, id, event, Some(turn), Content::All).await
}

/// What is stored of an event beside its key.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    None,
    Payload,
    All,
}

/// Inserts the row of an event. Returns its place; `None` if the event is not new. One that another transaction inserts at the same
/// moment is waited for.
async fn insert(
    transaction: &mut Transaction<'_>,
    id: EventId,
    event: &InboundEvent,
    turn: Option<TurnId>,
    content: Content,
) -> Result<Option<EventSeq>, StoreError> {
    let address = &event.conversation;
    let is_whole = content == Content::All;
    let inserted = statement!(
        INSERT,
        id,
        address.channel,
        if is_whole { &*address.chat } else { "" },
        if is_whole { thread(address) } else { "" },
        event.external_id,
        event.revision,
        turn,
        is_whole.then_some(&event.text),
        is_whole.then(|| json(event)),
        is_whole.then(|| sender_names(&event.sender)).flatten(),
        Some(&event.raw).filter(|raw| content != Content::None && !raw.is_empty()),
        event.received_at,
    );
    rows::one(transaction, inserted, |row| row.value("seq")).await
}

async fn duplicate(transaction: &mut Transaction<'_>, event: &InboundEvent) -> Result<Stored, StoreError> {
    let known = known(transaction, event).await?;
    known.ok_or_else(|| StoreError::Failed("an event was neither inserted nor found".to_owned()))
}

async fn known(transaction: &mut Transaction<'_>, event: &InboundEvent) -> Result<Option<Stored>, StoreError> {
    let found = statement!(SELECT_DUPLICATE, event.conversation.channel, event.external_id, event.revision);
    let read = |row: &PgRow| {
        let (text, sender): (Option<String>, Option<String>) = (row.value("text")?, row.value("sender")?);
        let seal_to = row.value("seal_to")?;
        let message = text.zip(sender).map(|(text, sender)| EarlierMessage { text, sender, seal_to });
        Ok(Stored::Duplicate { turn: row.value("turn_id")?, message })
    };
    rows::one(transaction, found, read).await
}

/// A conversation and the session of a turn in it.
struct CurrentSession {
    conversation: ConversationId,
    session: SessionId,
    has_history: bool,
}

/// Finds the conversation of a turn, or creates it, and the session that the turn is in.
async fn current_session(
    transaction: &mut Transaction<'_>,
    address: &ConversationRef,
    turn: &NewTurn,
    at: Timestamp,
) -> Result<CurrentSession, StoreError> {
    let conversation = conversation(transaction, address, turn, at).await?;
    let read = |row: &PgRow| Ok((row.value("has_history")?, Current::read(row)?));
    let found = rows::one(transaction, statement!(SELECT_CURRENT_SESSION, conversation), read).await?;
    let (has_history, current) = found.unwrap_or((false, None));
    let (session, goes_on) = sessions::for_turn(transaction, conversation, current, turn, at).await?;
    Ok(CurrentSession { conversation, session, has_history: has_history && goes_on })
}

/// The conversation of a turn, which may be new. It is locked: until the end of the transaction, no other one opens turns in it,
/// chooses its session, or moves it.
async fn conversation(
    transaction: &mut Transaction<'_>,
    address: &ConversationRef,
    turn: &NewTurn,
    at: Timestamp,
) -> Result<ConversationId, StoreError> {
    if let Some(found) = locked(transaction, address).await? {
        return Ok(found);
    }
    let created = insert_into!(
        conversations {
            id: turn.conversation,
            channel: address.channel,
            chat: address.chat,
            thread: thread(address),
            created_at: at,
        },
        "on conflict (channel, chat, thread) where succeeded_by is null do nothing"
    );
    if rows::change(transaction, created).await? > 0 {
        return Ok(turn.conversation);
    }
    // Another transaction has created it meanwhile.
    let found = locked(transaction, address).await?;
    found.ok_or_else(|| StoreError::Unavailable("a conversation was moved at the same moment".to_owned()))
}

/// Locks the conversation at an address. What belongs to it must be read after this: a statement that waits for the lock does not see
/// what was committed meanwhile.
async fn locked(
    transaction: &mut Transaction<'_>,
    address: &ConversationRef,
) -> Result<Option<ConversationId>, StoreError> {
    let lock = statement!(LOCK, address.channel, address.chat, thread(address));
    rows::one(transaction, lock, |row| row.value("id")).await
}

/// Inserts the turn of the event with the place `event_seq`, and its run if that starts at once. If another turn has the slot of the
/// conversation, or waits for it, the transaction is rolled back.
async fn open(
    transaction: &mut Transaction<'_>,
    event_seq: EventSeq,
    event: &InboundEvent,
    turn: &NewTurn,
) -> Result<Stored, StoreError> {
    let (address, at) = (&event.conversation, event.received_at);
    let CurrentSession { conversation, session, has_history } = current_session(transaction, address, turn, at).await?;
    if let Some(run) = &turn.run
        && !slots::take_at_once(transaction, conversation.as_uuid(), run).await?
    {
        return Ok(Stored::Busy);
    }
    let (agent, command) = handler(&turn.handler);
    let seq: Option<TurnSeq> = rows::one(transaction, statement!(SELECT_NEXT), |row| row.value("seq")).await?;
    let seq = seq.ok_or_else(|| StoreError::Failed("a sequence gave no number".to_owned()))?;
    let columns = ObligationColumns::of(&turn.obligation);
    let (owed, rank) = (columns.owed, rules::rank(seq, columns.owed));
    let is_waiting = turn.obligation.is_waiting();
    let position = if is_waiting {
        let candidate = Candidate { rank, channel: address.channel.as_str(), person: event.person(), owed };
        lines::position_of(transaction, conversation.as_uuid(), &candidate).await?
    } else {
        None
    };
    let inserted = insert_into!(turns {
        seq,
        id: turn.id,
        conversation_id: conversation,
        session_id: session,
        agent,
        command,
        accepted_at: at,
        channel: address.channel,
        rule: turn.rule,
        model: turn.model,
        event: event_seq,
        person: event.person(),
        next_agent: agent.unwrap_or(""),
        rank,
        place: position,
        owed,
        state: columns.state,
        work: columns.work,
        wake_at: columns.wake_at,
        overdue_at: columns.overdue_at,
        ended_at: columns.ended.then_some(at),
        postponed: columns.postponed,
        suspended: columns.suspended,
        fell_back: columns.fell_back,
        merged_into: columns.merged_into,
        body: json(&turn.obligation),
        version: 1,
    });
    rows::change(transaction, inserted).await?;
    if let Some(day) = turn.day {
        daily_use::count(transaction, &event.identity(), day).await?;
    }
    if is_waiting && position.is_none() {
        lines::settle(transaction, conversation.as_uuid(), None).await?;
    }
    let subject =
        Subject { turn_id: Some(turn.id), conversation_id: Some(conversation), channel: Some(address.channel.clone()) };
    let accepted = LogEvent::TurnAccepted { handler: turn.handler.clone(), owed };
    log::add(transaction, &NewLogEntry { at, subject: subject.clone(), event: accepted }).await?;
    if let Some(detail) = &turn.remark {
        let remark = insert_into!(remarks { turn_id: turn.id, at, kind: "choice_gone", detail });
        rows::change(transaction, remark).await?;
    }
    if let Some(about) = turn.about {
        let aside = insert_into!(asides { turn_id: turn.id, conversation_id: about, sender: event.sender.id });
        rows::change(transaction, aside).await?;
    }
    if let Some(repeated) = &turn.repeats {
        sessions::leave_out(transaction, &repeated.turns).await?;
        sessions::count_changes(transaction, [repeated.session], &repeated.turns).await?;
    }
    if let Some(run) = &turn.run {
        runs::start_of(transaction, seq, run).await?;
        let started = LogEvent::TurnStarted { handler: run.handler.clone(), run: run.number };
        log::add(transaction, &NewLogEntry { at: run.at, subject, event: started }).await?;
    }
    Ok(Stored::Turn { seq, conversation, session, has_history })
}

/// The place that the next turn gets. It has it before it is inserted: its rank is made of it.
const SELECT_NEXT: &str = "select nextval('turn_seq') as seq";

const INSERT: &str = "
    insert into events (
        seq, id, channel, chat, thread, external_id, revision, turn_id, text, details, sender_names, raw, received_at)
    values (nextval('event_seq'), $1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11, $12)
    on conflict (channel, external_id, revision) do nothing
    returning seq";

const SELECT_DUPLICATE: &str = "
    select turn_id, coalesce(details #>> '{said}', text) as text, details #>> '{sender,id}' as sender,
        details #>> '{seal_to}' as seal_to
    from events
    where channel = $1 and external_id = $2 and revision = $3";

const LOCK: &str = "
    select id from conversations
    where channel = $1 and chat = $2 and thread = $3 and succeeded_by is null
    for no key update";

/// Locks the session: another conversation may continue in it, and give it to somebody.
const SELECT_CURRENT_SESSION: &str = "
    select exists (select 1 from transcript as t where t.session_id = c.session_id) as has_history, s.id, s.owner,
        s.name is not null as is_named, s.conversation_id = c.id as began_here,
        coalesce(s.used_at, s.created_at) as used, s.agent, s.model
    from conversations as c
        left join lateral (select * from sessions where id = c.session_id for no key update) as s on true
    where c.id = $1";
