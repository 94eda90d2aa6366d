//! Events that change earlier rows: edits, deletions, a chat that got another id, a pick.
//!
//! They are rare, and handled one by one.

use rejoinder_core::{
    ConversationRef, EventKind, InboundEvent, StoreError,
    store::{NewEvent, Stored},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    insert, pick,
    rows::{self, Transaction},
};
use crate::sqlite::stored::{StoredEvent, event_columns};

/// Whether an event changes earlier rows.
pub(super) fn is_change(new: &NewEvent) -> bool {
    new.event.amends.is_some() || matches!(new.event.kind, EventKind::Moved { .. }) || pick::question(new).is_some()
}

/// Accepts an event for which [`is_change`] holds.
pub(super) fn accept(transaction: &Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    if let EventKind::Moved { chat } = &new.event.kind {
        let stored = insert::one(transaction, new)?;
        // Also for a duplicate: rows with the old id may have been added since.
        move_chat(transaction, &new.event.conversation, chat)?;
        return Ok(stored);
    }
    if let Some(question) = pick::question(new) {
        return pick::accept(transaction, new, question);
    }
    let earlier = find(transaction, &new.event)?.filter(|earlier| earlier.event.may_be_amended_by(&new.event));
    // Changes of a command never reach the agent, whether the command was executed or not.
    let is_of_a_command = earlier.as_ref().is_some_and(|earlier| earlier.is_command);
    // An edit that is older than the stored revision changes nothing, and neither does one of words that were a pick.
    let changed = earlier.filter(|earlier| {
        let is_of_a_pick = matches!(earlier.event.kind, EventKind::Choice { .. }) && !new.event.is_withdrawn();
        let is_later = new.event.revision >= earlier.event.revision;
        let is_still_owed = earlier.is_waiting || (earlier.is_put_off && new.event.is_withdrawn());
        is_still_owed && !is_of_a_command && !is_of_a_pick && is_later
    });
    // An edit whose turn does not wait (it never existed, runs already or has ended) opens no turn.
    let Some(earlier) = changed else { return insert::key(transaction, new) };
    if new.turn.is_some() {
        return insert::one(transaction, new);
    }
    if !insert::change(transaction, new.id, &earlier.event.amended_by(&new.event))? {
        return insert::one(transaction, new);
    }
    for sql in [
        "update events set turn_id = ?1 where id = ?2",
        "update turns set event_id = ?2 where id = ?1",
        // A task that is about to begin the turn has read the old text: the new version makes it read again.
        "update obligations set version = version + 1 where turn_id = ?1 and ?2 is not null",
    ] {
        rows::change(transaction, sql, params![earlier.turn, new.id.as_uuid()])?;
    }
    Ok(Stored::Amended { turn: earlier.turn.into() })
}

/// The latest turn that an event with the same external id belongs to.
struct Earlier {
    turn: Uuid,
    is_command: bool,
    is_waiting: bool,
    /// See [`Obligation::is_put_off`](rejoinder_core::Obligation::is_put_off).
    is_put_off: bool,
    event: InboundEvent,
}

fn find(transaction: &Transaction<'_>, event: &InboundEvent) -> Result<Option<Earlier>, StoreError> {
    let sql = concat!(
        "select t.id as turn_id, t.command is not null as is_command,
            o.work is 'waiting' and o.ended_at is null as is_waiting,
            o.work is null and o.wake_at is not null and o.state in ('deferred', 'claimed') as is_put_off, ",
        event_columns!(),
        " from events as f cross join turns as t on t.id = f.turn_id cross join obligations as o on o.turn_id = t.id
            cross join events as e on e.id = t.event_id
        where f.channel = ? and f.external_id = ? and f.turn_id is not null
        order by t.seq desc limit 1"
    );
    let read = |row: &Row<'_>| {
        let (is_waiting, is_put_off) = (row.get("is_waiting")?, row.get("is_put_off")?);
        Ok((row.get("turn_id")?, row.get("is_command")?, is_waiting, is_put_off, stored(row)?))
    };
    let found = rows::one(transaction, sql, params![event.conversation.channel.as_str(), event.external_id], read)?;
    let Some((turn, is_command, is_waiting, is_put_off, stored)) = found else { return Ok(None) };
    Ok(Some(Earlier { turn, is_command, is_waiting, is_put_off, event: stored.event()? }))
}

/// An event from the columns of `event_columns!`.
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

/// Moves the conversations of a chat, one per thread, to the chat's new id.
///
/// If there is a conversation under the new id already, both keep their ids and finish their turns: rows and running
/// tasks refer to them. New events go to the one whose turns began first, which `succeeded_by` of the other one names.
fn move_chat(transaction: &Transaction<'_>, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    for sql in [
        "with older (thread, id, number) as (
            select c.thread, c.id, row_number() over (
                partition by c.thread order by (select min(t.seq) from turns as t where t.conversation_id = c.id), c.id)
            from conversations as c where c.channel = ?1 and c.chat in (?2, ?3) and c.succeeded_by is null)
        update conversations set succeeded_by = (
            select older.id from older where older.thread = conversations.thread and older.number = 1)
        where id in (select id from older where number > 1)",
        // A task that is about to begin a turn has read the old chat.
        "update obligations set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
            select id from conversations
            where channel = ?1 and chat = ?2 and ?3 is not null and succeeded_by is null)",
        "update obligations set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
            select id from conversations
            where channel = ?1 and chat = ?2 and ?3 is not null and succeeded_by is not null)",
        "update events set chat = ?3 where id in (
            select t.event_id from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is null)",
        "update events set chat = ?3 where id in (
            select t.event_id from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is not null)",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is null",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is not null",
    ] {
        rows::change(transaction, sql, params![from.channel.as_str(), from.chat, to])?;
    }
    Ok(())
}
