//! Questions: what is asked, the first pick, and the end of the time for it.

use rejoinder_core::{
    ChannelId, ConversationId, EventKind, Language, StoreError, Timestamp, TurnId,
    store::{AskedQuestion, ClosedQuestion, LogEvent, NewEvent, NewLogEntry, Stored, Subject},
};
use rusqlite::params;
use uuid::Uuid;

use super::{
    insert, log,
    rows::{self, Transaction, json},
};

/// Inserts a question, in place of an earlier one of its turn.
pub(super) fn ask(transaction: &Transaction<'_>, question: &AskedQuestion) -> Result<(), StoreError> {
    let values = params![
        question.turn.as_uuid(),
        question.claim,
        question.conversation.as_uuid(),
        question.place.channel.as_str(),
        question.chooser,
        question.text,
        json(&question.choices),
        question.free_text,
        question.asked_at.as_millis(),
        question.expires_at.map(Timestamp::as_millis),
        question.language.as_ref().map(Language::as_str),
    ];
    rows::change_one(transaction, "questions", WRITE_QUESTION, values)
}

/// The turn whose question an event picks from or closes, if the event would open a turn.
pub(super) fn question(new: &NewEvent) -> Option<TurnId> {
    match new.event.kind {
        EventKind::Choice { turn } | EventKind::Expired { turn } => new.turn.as_ref().map(|_| turn),
        _ => None,
    }
}

/// Accepts an event for which [`question`] returns the turn that was answered with the question.
pub(super) fn accept(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Stored, StoreError> {
    if matches!(new.event.kind, EventKind::Expired { .. }) {
        return close(transaction, new, question);
    }
    // Words are always answered, also if they come too late to be the first pick.
    let refused = if new.event.said.is_some() { None } else { refused(transaction, new, question)? };
    if let Some(refused) = refused {
        let stored = insert::key(transaction, new)?;
        // A duplicate of the first pick is reported as a duplicate.
        return Ok(if stored == Stored::Kept { refused } else { stored });
    }
    let stored = insert::one(transaction, new)?;
    if matches!(stored, Stored::Turn { .. }) {
        let values = params![question.as_uuid(), new.event.text, new.event.received_at.as_millis()];
        let picked = rows::one(transaction, PICK, values, |row| row.get::<_, Uuid>(0))?;
        log_end(transaction, new, question, picked, LogEvent::QuestionPicked)?;
    }
    Ok(stored)
}

/// Why a pick does not count. Picks from an unknown question do.
fn refused(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Option<Stored>, StoreError> {
    let values = params![question.as_uuid(), new.event.sender.id, new.event.received_at.as_millis()];
    let refused = rows::one(transaction, SELECT_QUESTION, values, |row| {
        Ok(match &*row.get::<_, String>("state")? {
            "picked" => Some(Stored::Picked { choice: row.get::<_, Option<String>>("picked")?.unwrap_or_default() }),
            "expired" => Some(Stored::Expired),
            _ if row.get("is_late")? => Some(Stored::Expired),
            _ if row.get("is_anothers")? => Some(Stored::Kept),
            _ => None,
        })
    })?;
    Ok(refused.flatten())
}

/// Closes a question that has expired. The event opens its turn if the person was shown the question, and has not answered it.
fn close(transaction: &Transaction<'_>, new: &NewEvent, question: TurnId) -> Result<Stored, StoreError> {
    let is_told = rows::one(transaction, SELECT_UNANSWERED, [question.as_uuid()], |row| row.get(0))?.unwrap_or(false);
    let closed = rows::one(transaction, CLOSE, [question.as_uuid()], |row| row.get::<_, Uuid>(0))?;
    if closed.is_none() || !is_told {
        log_end(transaction, new, question, closed, LogEvent::QuestionExpired)?;
        return insert::key(transaction, new);
    }
    let stored = insert::one(transaction, new)?;
    log_end(transaction, new, question, closed, LogEvent::QuestionExpired)?;
    Ok(stored)
}

/// Closes a question that nobody needs to answer any more.
pub(super) fn close_pointless(transaction: &Transaction<'_>, closed: &ClosedQuestion) -> Result<(), StoreError> {
    let ended = rows::one(transaction, CLOSE, [closed.turn.as_uuid()], |row| {
        Ok((row.get::<_, Uuid>("conversation_id")?, row.get::<_, String>("channel")?))
    })?;
    let Some((conversation, channel)) = ended else { return Ok(()) };
    let subject = Subject {
        turn_id: Some(closed.turn),
        conversation_id: Some(ConversationId::from(conversation)),
        channel: Some(ChannelId::from_stored(&channel)),
    };
    log::add(transaction, &NewLogEntry { at: closed.at, subject, event: LogEvent::QuestionExpired })
}

/// Logs the end of a question in `conversation`, if it ended.
fn log_end(
    transaction: &Transaction<'_>,
    new: &NewEvent,
    question: TurnId,
    conversation: Option<Uuid>,
    event: LogEvent,
) -> Result<(), StoreError> {
    let Some(conversation) = conversation else { return Ok(()) };
    let subject = Subject {
        turn_id: Some(question),
        conversation_id: Some(ConversationId::from(conversation)),
        channel: Some(new.event.conversation.channel.clone()),
    };
    log::add(transaction, &NewLogEntry { at: new.event.received_at, subject, event })
}

const WRITE_QUESTION: &str = "
    insert into questions
        (turn_id, claim, conversation_id, channel, chooser, text, choices, free_text, asked_at, expires_at, language, state)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open')
    on conflict (turn_id) do update set
        claim = excluded.claim, conversation_id = excluded.conversation_id, channel = excluded.channel,
        chooser = excluded.chooser, text = excluded.text, choices = excluded.choices, free_text = excluded.free_text,
        asked_at = excluded.asked_at, expires_at = excluded.expires_at,
        language = excluded.language, state = 'open', picked = null";

const SELECT_QUESTION: &str = "
    select state, picked, coalesce(chooser <> ?2, 0) as is_anothers, coalesce(expires_at <= ?3, 0) as is_late
    from questions where turn_id = ?1";

const PICK: &str = "
    update questions set state = 'picked', picked = ?2
    where turn_id = ?1 and state = 'open' and coalesce(expires_at > ?3, 1)
    returning conversation_id";

const CLOSE: &str =
    "update questions set state = 'expired' where turn_id = ? and state = 'open' returning conversation_id, channel";

/// Whether a question was shown or will be, and was not answered in the person's own words, if they may do that.
const SELECT_UNANSWERED: &str = "
    select exists (
        select 1 from deliveries as d
        where d.turn_id = q.turn_id and d.claim = q.claim and d.is_copy = 0
            and d.state in ('pending', 'held', 'sending', 'delivered')
    ) and not (q.free_text and exists (
        select 1 from turns as t cross join obligations as o on o.turn_id = t.id cross join events as e on e.id = t.event_id
        where t.conversation_id = q.conversation_id and t.seq > (select seq from turns where id = q.turn_id)
            and t.accepted_at >= q.asked_at and json_extract(e.details, '$.kind') = 'message' and t.command is null and o.owed = 1 and (q.chooser is null or o.person = q.chooser)))
    from questions as q where q.turn_id = ?";
