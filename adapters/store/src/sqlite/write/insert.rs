//! Inserts new events, and the turns that they open.

use rejoinder_core::{
    ConversationId, ConversationRef, EventId, InboundEvent, SessionId, StoreError, Timestamp, TurnId,
    store::{EarlierMessage, EventSeq, LogEvent, NewEvent, NewLogEntry, NewTurn, Stored, Subject, TurnSeq, rules},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    approvals, daily_use,
    lines::{self, Candidate},
    log,
    rows::{self, Transaction, insert_into},
    runs,
    sessions::{self, Current},
};
use crate::shared::stored::{ObligationColumns, handler, json, thread};

/// Inserts an event that changes no earlier rows, and opens its turn.
pub(super) fn one(transaction: &Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    if new.only_if_known {
        return Ok(known(transaction, &new.event)?.unwrap_or(Stored::Unknown));
    }
    let (turn, content) = match &new.turn {
        Some(turn) => (Some(turn.id), Content::All),
        None => (None, Content::Payload),
    };
    if !insert(transaction, new.id, &new.event, turn, content)? {
        return duplicate(transaction, &new.event);
    }
    match &new.turn {
        Some(turn) => {
            let stored = open(transaction, transaction.connection.last_insert_rowid(), &new.event, turn)?;
            approvals::note_told(transaction, new)?;
            Ok(stored)
        }
        None => Ok(Stored::Kept),
    }
}

/// Inserts only the key of an event.
pub(super) fn key(transaction: &Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    let is_new = insert(transaction, new.id, &new.event, None, Content::None)?;
    if is_new { Ok(Stored::Kept) } else { duplicate(transaction, &new.event) }
}

/// Inserts an event that changes a turn. Returns whether it is new.
pub(super) fn change(transaction: &Transaction<'_>, id: EventId, event: &InboundEvent) -> Result<bool, StoreError> {
    insert(transaction, id, event, None, Content::All)
}

/// What is stored of an event beside its key.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    None,
    Payload,
    All,
}

/// Inserts the row of an event. Returns whether the event is new.
fn insert(
    transaction: &Transaction<'_>,
    id: EventId,
    event: &InboundEvent,
    turn: Option<TurnId>,
    content: Content,
) -> Result<bool, StoreError> {
    let address = &event.conversation;
    let is_whole = content == Content::All;
    let inserted = insert_into!(
        transaction,
        events {
            id: id.as_uuid(),
            channel: address.channel.as_str(),
            chat: if is_whole { &*address.chat } else { "" },
            thread: if is_whole { thread(address) } else { "" },
            external_id: event.external_id,
            revision: event.revision,
            turn_id: turn.map(TurnId::as_uuid),
            text: is_whole.then_some(&event.text),
            details: is_whole.then(|| json(event)),
            raw: Some(&event.raw).filter(|raw| content != Content::None && !raw.is_empty()),
            received_at: event.received_at.as_millis(),
        },
        "on conflict do nothing"
    );
    Ok(inserted? == 1)
}

fn duplicate(transaction: &Transaction<'_>, event: &InboundEvent) -> Result<Stored, StoreError> {
    let known = known(transaction, event)?;
    known.ok_or_else(|| StoreError::Failed("an event was neither inserted nor found".to_owned()))
}

fn known(transaction: &Transaction<'_>, event: &InboundEvent) -> Result<Option<Stored>, StoreError> {
    let values = params![event.conversation.channel.as_str(), event.external_id, event.revision];
    rows::one(transaction, SELECT_DUPLICATE, values, |row| {
        let turn: Option<Uuid> = row.get(0)?;
        let (text, sender, seal_to): (Option<String>, Option<String>, _) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let message = text.zip(sender).map(|(text, sender)| EarlierMessage { text, sender, seal_to });
        Ok(Stored::Duplicate { turn: turn.map(TurnId::from), message })
    })
}

/// A conversation and the session of a turn in it.
struct CurrentSession {
    conversation: ConversationId,
    session: SessionId,
    has_history: bool,
}

/// Finds the conversation of a turn, or creates it, and the session that the turn is in.
fn current_session(
    transaction: &Transaction<'_>,
    address: &ConversationRef,
    turn: &NewTurn,
    at: Timestamp,
) -> Result<CurrentSession, StoreError> {
    let read = |row: &Row<'_>| Ok((row.get::<_, Uuid>(0)?, row.get::<_, bool>(1)?, Current::read(row, 2)?));
    let values = params![address.channel.as_str(), address.chat, thread(address)];
    let found = rows::one(transaction, SELECT_CURRENT_SESSION, values, read)?;
    let (conversation, has_history, current) = if let Some((conversation, has_history, current)) = found {
        (ConversationId::from(conversation), has_history, current)
    } else {
        insert_into!(
            transaction,
            conversations {
                id: turn.conversation.as_uuid(),
                channel: address.channel.as_str(),
                chat: address.chat,
                thread: thread(address),
                created_at: at.as_millis(),
            }
        )?;
        (turn.conversation, false, None)
    };
    let (session, goes_on) = sessions::for_turn(transaction, conversation, current, turn, at)?;
    Ok(CurrentSession { conversation, session, has_history: has_history && goes_on })
}

/// Inserts the turn of the event with the place `event_seq`, and its run if that starts at once.
fn open(
    transaction: &Transaction<'_>,
    event_seq: EventSeq,
    event: &InboundEvent,
    turn: &NewTurn,
) -> Result<Stored, StoreError> {
    let (address, at) = (&event.conversation, event.received_at);
    let CurrentSession { conversation, session, has_history } = current_session(transaction, address, turn, at)?;
    let (agent, command) = handler(&turn.handler);
    let seq = rows::one(transaction, SELECT_NEXT, [], |row| row.get::<_, TurnSeq>(0))?.unwrap_or(1);
    let ObligationColumns { owed, state, work, wake_at, overdue_at, ended, .. } =
        ObligationColumns::of(&turn.obligation);
    let (conversation_id, rank) = (conversation.as_uuid(), rules::rank(seq, owed));
    let is_waiting = turn.obligation.is_waiting();
    let position = if is_waiting {
        let candidate = Candidate { rank, channel: address.channel.as_str(), person: event.person(), owed };
        lines::position_of(transaction, conversation_id, &candidate)?
    } else {
        None
    };
    insert_into!(
        transaction,
        turns {
            seq,
            id: turn.id.as_uuid(),
            conversation_id,
            session_id: session.as_uuid(),
            agent,
            command,
            accepted_at: at.as_millis(),
            channel: address.channel.as_str(),
            rule: turn.rule.as_deref(),
            model: turn.model.as_deref(),
            event: event_seq,
            person: event.person(),
            next_agent: agent.unwrap_or(""),
            rank,
            place: position,
            owed,
            state,
            work,
            wake_at: wake_at.map(Timestamp::as_millis),
            overdue_at: overdue_at.map(Timestamp::as_millis),
            ended_at: ended.then_some(at.as_millis()),
            body: json(&turn.obligation),
            version: 1,
        }
    )?;
    if let Some(day) = turn.day {
        daily_use::count(transaction, &event.identity(), day)?;
    }
    if is_waiting && position.is_none() {
        lines::settle(transaction, conversation_id, None)?;
    }
    let subject =
        Subject { turn_id: Some(turn.id), conversation_id: Some(conversation), channel: Some(address.channel.clone()) };
    let accepted = LogEvent::TurnAccepted { handler: turn.handler.clone(), owed };
    log::add(transaction, &NewLogEntry { at, subject: subject.clone(), event: accepted })?;
    if let Some(detail) = &turn.remark {
        let (turn_id, at) = (turn.id.as_uuid(), at.as_millis());
        insert_into!(transaction, remarks { turn_id, at, kind: "choice_gone", detail })?;
    }
    if let Some(about) = turn.about {
        let (turn_id, conversation_id) = (turn.id.as_uuid(), about.as_uuid());
        insert_into!(transaction, asides { turn_id, conversation_id, sender: event.sender.id })?;
    }
    if let Some(repeated) = &turn.repeats {
        sessions::leave_out(transaction, &repeated.turns)?;
    }
    if let Some(run) = &turn.run {
        runs::start_of(transaction, seq, run)?;
        let started = LogEvent::TurnStarted { handler: run.handler.clone(), run: run.number };
        log::add(transaction, &NewLogEntry { at: run.at, subject, event: started })?;
    }
    Ok(Stored::Turn { seq, conversation, session, has_history })
}

/// The place that the next turn gets. It has it before it is inserted: its rank is made of it.
const SELECT_NEXT: &str = "select coalesce(max(seq), 0) + 1 from turns";

const SELECT_DUPLICATE: &str = "
    select turn_id, coalesce(json_extract(details, '$.said'), text), json_extract(details, '$.sender.id'),
        json_extract(details, '$.seal_to')
    from events
    where channel = ? and external_id = ? and revision = ?";

const SELECT_CURRENT_SESSION: &str = "
    select c.id, exists (select 1 from transcript as t where t.session_id = c.session_id), s.id, s.owner,
        s.name is not null, s.conversation_id = c.id, coalesce(s.used_at, s.created_at), s.agent, s.model
    from conversations as c left join sessions as s on s.id = c.session_id
    where c.channel = ? and c.chat = ? and c.thread = ? and c.succeeded_by is null";
