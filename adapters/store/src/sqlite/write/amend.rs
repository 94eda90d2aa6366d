//! Edits, deletions, and a chat that got another id.

use rejoinder_core::{
    ConversationRef, InboundEvent, StoreError,
    store::{
        NewEvent, Stored,
        rules::{self, Amendment, EarlierTurn, MovedConversation},
    },
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    insert, pick, reactions,
    rows::{self, Transaction},
};
use crate::{shared::stored::StoredEvent, sqlite::sql::event_columns};

/// Accepts an event that [changes an earlier one](rules::Changes::Earlier).
pub(super) fn accept(transaction: &Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    if new.event.is_withdrawn() {
        reactions::take_back(transaction, &new.event)?;
    }
    let earlier = find(transaction, &new.event)?;
    let amendment = rules::amendment(earlier.as_ref().map(|(_, earlier)| earlier), &new.event, new.turn.is_some());
    let (turn, event) = match (amendment, earlier) {
        (Amendment::Changes(event), Some((turn, _))) => (turn, event),
        (Amendment::OpensTurn, _) => return insert::one(transaction, new),
        (Amendment::Nothing, _) | (_, None) => return insert::key(transaction, new),
    };
    if !insert::change(transaction, new.id, &event)? {
        return insert::one(transaction, new);
    }
    let event = transaction.connection.last_insert_rowid();
    for sql in [
        "update events set turn_id = ?1 where seq = ?2",
        // A task that is about to begin the turn has read the old text: the new version makes it read again.
        "update turns set event = ?2, version = version + 1 where id = ?1",
    ] {
        rows::change(transaction, sql, params![turn, event])?;
    }
    pick::answer_first(transaction, new)?;
    Ok(Stored::Amended { turn: turn.into() })
}

/// The latest turn of an event with the same key but for the revision.
fn find(transaction: &Transaction<'_>, event: &InboundEvent) -> Result<Option<(Uuid, EarlierTurn)>, StoreError> {
    let sql = concat!(
        "select t.id as turn_id, t.command is not null as is_command,
            t.work is 'waiting' and t.ended_at is null as is_waiting,
            (t.work is null and t.wake_at is not null and t.state in ('deferred', 'claimed'))
                or (t.work is 'running' and coalesce(
                    json_extract(t.body, '$.work.suspended'), json_extract(t.body, '$.work.resuming')) is not null) as is_put_off, ",
        event_columns!(),
        " from events as f cross join turns as t on t.id = f.turn_id
            cross join events as e on e.seq = t.event
        where f.channel = ? and f.external_id = ? and f.turn_id is not null
        order by t.seq desc limit 1"
    );
    let read = |row: &Row<'_>| {
        let (is_waiting, is_put_off) = (row.get("is_waiting")?, row.get("is_put_off")?);
        Ok((row.get("turn_id")?, row.get("is_command")?, is_waiting, is_put_off, stored(row)?))
    };
    let found = rows::one(transaction, sql, params![event.conversation.channel.as_str(), event.external_id], read)?;
    let Some((turn, is_command, is_waiting, is_put_off, stored)) = found else { return Ok(None) };
    Ok(Some((turn, EarlierTurn { event: stored.event()?, is_command, is_waiting, is_put_off })))
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        channel: row.get("channel")?,
        chat: row.get("chat")?,
        thread: row.get("thread")?,
        external_id: row.get("external_id")?,
        revision: row.get("revision")?,
        text: row.get("text")?,
        details: row.get("details")?,
        raw: row.get("raw")?,
        received_at: row.get("received_at")?,
    })
}

/// Accepts an event that gives its chat another id, `chat`.
pub(super) fn accept_move(transaction: &Transaction<'_>, new: &NewEvent, chat: &str) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new)?;
    // Also for a duplicate: rows with the old id may have been added since.
    move_chat(transaction, &new.event.conversation, chat)?;
    Ok(stored)
}

/// Moves the conversations of a chat, one per thread, to the chat's new id.
///
/// If there is a conversation under the new id already, both keep their ids and finish their turns: rows and running
/// tasks refer to them. New events go to the one that `succeeded_by` of the other one names.
fn move_chat(transaction: &Transaction<'_>, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    let moved = |row: &Row<'_>| {
        let id: Uuid = row.get(0)?;
        Ok(MovedConversation { id: id.into(), thread: row.get(1)?, first_turn: row.get(2)? })
    };
    let conversations = rows::all(transaction, SELECT_MOVED, params![from.channel.as_str(), from.chat, to], moved)?;
    for (conversation, successor) in rules::successors(conversations) {
        rows::change(transaction, SUCCEED, params![conversation.as_uuid(), successor.as_uuid()])?;
    }
    for sql in [
        // A task that is about to begin a turn has read the old chat.
        "update turns set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
            select id from conversations
            where channel = ?1 and chat = ?2 and ?3 is not null and succeeded_by is null)",
        "update turns set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
            select id from conversations
            where channel = ?1 and chat = ?2 and ?3 is not null and succeeded_by is not null)",
        "update events set chat = ?3 where seq in (
            select t.event from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is null)",
        "update events set chat = ?3 where seq in (
            select t.event from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is not null)",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is null",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is not null",
    ] {
        rows::change(transaction, sql, params![from.channel.as_str(), from.chat, to])?;
    }
    Ok(())
}

/// The conversations of the chat with the old id and of the one with the new id.
const SELECT_MOVED: &str = "
    select c.id, c.thread, (select min(t.seq) from turns as t where t.conversation_id = c.id)
    from conversations as c where c.channel = ?1 and c.chat in (?2, ?3) and c.succeeded_by is null";

const SUCCEED: &str = "update conversations set succeeded_by = ?2 where id = ?1";
