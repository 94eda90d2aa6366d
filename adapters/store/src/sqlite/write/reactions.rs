//! People's reactions to the answers of agents.

use rejoinder_core::{
    Author, ChatKind, InboundEvent, StoreError,
    store::{NewEvent, Stored},
};
use rusqlite::params;
use uuid::Uuid;

use super::{
    insert,
    rows::{self, Transaction, insert_into},
};
use crate::shared::{
    bounds::{REACTED_WITHIN, REACTIONS_KEPT},
    stored::{json, thread},
};

/// Accepts a reaction to our message with the platform's id `message`: `emoji`, or if that is empty, that `removed` was taken back.
/// One that opens a turn is told by it, and takes the place of an earlier one of the person.
pub(super) fn accept(
    transaction: &Transaction<'_>,
    new: &NewEvent,
    message: &str,
    (emoji, removed): (&str, Option<&str>),
) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new)?;
    let is_told = match stored {
        Stored::Kept => false,
        Stored::Turn { .. } => true,
        _ => return Ok(stored),
    };
    let Some(turn) = answered(transaction, &new.event, message)? else { return Ok(stored) };
    let (event, address) = (&new.event, &new.event.conversation);
    if emoji.is_empty() || is_told {
        let removed = removed.filter(|_| emoji.is_empty());
        rows::change(transaction, TAKE_BACK, params![turn, event.person(), removed])?;
        return Ok(stored);
    }
    let author = (event.chat == ChatKind::Group).then(|| json(&Author::from(event.sender.clone())));
    insert_into!(
        transaction,
        reactions {
            turn_id: turn,
            person: event.person(),
            emoji,
            author,
            at: event.received_at.as_millis(),
            channel: address.channel.as_str(),
            external_id: event.external_id,
        },
        "on conflict (turn_id, person) do update set
            emoji = excluded.emoji, author = excluded.author, at = excluded.at, external_id = excluded.external_id"
    )?;
    rows::change(transaction, DELETE_OLDEST, params![turn, REACTIONS_KEPT])?;
    Ok(stored)
}

/// Accepts that everybody's reactions to our message were removed: all, or those with this emoji.
pub(super) fn accept_removal(
    transaction: &Transaction<'_>,
    new: &NewEvent,
    message: &str,
    emoji: Option<&str>,
) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new)?;
    if stored == Stored::Kept
        && let Some(turn) = answered(transaction, &new.event, message)?
    {
        rows::change(transaction, REMOVE, params![turn, emoji])?;
    }
    Ok(stored)
}

/// The turn whose answer by an agent is in the message `message` of an event's conversation.
fn answered(transaction: &Transaction<'_>, event: &InboundEvent, message: &str) -> Result<Option<Uuid>, StoreError> {
    let address = &event.conversation;
    let values = params![address.channel.as_str(), address.chat, thread(address), message, REACTED_WITHIN];
    rows::one(transaction, SELECT_ANSWERED, values, |row| row.get(0))
}

/// Removes the reaction that came with an event of this key, if it is one.
pub(super) fn take_back(transaction: &Transaction<'_>, event: &InboundEvent) -> Result<(), StoreError> {
    let values = params![event.external_id, event.conversation.channel.as_str()];
    rows::change(transaction, DELETE_BY_EVENT, values).map(drop)
}

const SELECT_ANSWERED: &str = r#"
    select t.id
    from conversations as c cross join turns as t on t.seq in (
            select l.seq from turns as l where l.conversation_id = c.id order by l.seq desc limit ?5)
        cross join deliveries as d on d.turn_id = t.id
    where c.channel = ?1 and c.chat = ?2 and c.thread = ?3 and c.succeeded_by is null
        and t.agent is not null and d.claim > 0 and d.is_copy = 0 and d.signal = 'reply'
        and (d.via in ('"answer"', '"agent_send"', '"late_answer"') or d.via ->> '$.fallback.rung.handoff' is not null)
        and exists (select 1 from json_each(d.message_ids) as m where m.value = ?4)
    order by t.seq desc limit 1"#;

const TAKE_BACK: &str = "delete from reactions where turn_id = ?1 and person = ?2 and (?3 is null or emoji = ?3)";

const REMOVE: &str = "delete from reactions where turn_id = ?1 and (?2 is null or emoji = ?2)";

const DELETE_OLDEST: &str = "
    delete from reactions where turn_id = ?1 and person not in (
        select person from reactions where turn_id = ?1 order by at desc, person limit ?2)";

const DELETE_BY_EVENT: &str = "delete from reactions where external_id = ? and channel = ?";
