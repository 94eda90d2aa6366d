//! Events that change earlier rows: edits, the rest of an album, a chat that got another id, a pick.
//!
//! They are rare, and handled one by one.

use std::sync::Arc;

use rejoinder_core::{
    Amends, ConversationRef, EventKind, InboundEvent, StoreError,
    store::{NewEvent, Stored},
};
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{insert, pick};
use crate::sqlite::{error::store_error, read};

/// Whether an event changes earlier rows.
pub(super) fn is_change(new: &NewEvent) -> bool {
    new.event.amends.is_some() || matches!(new.event.kind, EventKind::Moved { .. }) || pick::question(new).is_some()
}

/// Accepts an event for which [`is_change`] holds.
pub(super) async fn accept(connection: &mut SqliteConnection, new: &NewEvent) -> Result<Stored, StoreError> {
    if let EventKind::Moved { chat } = &new.event.kind {
        let stored = insert::one(connection, new).await?;
        // Also for a duplicate: rows with the old id may have been added since.
        move_chat(connection, &new.event.conversation, chat).await?;
        return Ok(stored);
    }
    if let Some(question) = pick::question(new) {
        return pick::accept(connection, new, question).await;
    }
    let is_edit = matches!(new.event.amends, Some(Amends::Replaces | Amends::Withdraws));
    let earlier = find(connection, &new.event).await?.filter(|earlier| earlier.event.may_be_amended_by(&new.event));
    // Changes of a command never reach the agent, whether the command was executed or not.
    let is_of_a_command = earlier.as_ref().is_some_and(|earlier| earlier.is_command);
    // An edit that is older than the stored revision changes nothing.
    let changed = earlier.filter(|earlier| {
        earlier.is_waiting && !is_of_a_command && !(is_edit && new.event.revision < earlier.event.revision)
    });
    let Some(earlier) = changed else {
        // An edit whose turn does not wait (it never existed, runs already or has ended) opens no turn. An addition
        // that is too late for its turn opens one of its own: it would be lost otherwise.
        return match new.turn.clone().filter(|_| !is_edit && !is_of_a_command) {
            Some(turn) => insert::one(connection, &NewEvent { turn: Some(turn), ..new.clone() }).await,
            None => insert::key(connection, new).await,
        };
    };
    if is_edit && new.turn.is_some() {
        return insert::one(connection, new).await;
    }
    let event = Arc::new(earlier.event.amended_by(&new.event));
    if !insert::change(connection, &NewEvent { id: new.id, event, turn: None, only_if_known: false }).await? {
        return insert::one(connection, new).await;
    }
    for sql in [
        "update events set turn_id = ?1 where id = ?2",
        "update turns set event_id = ?2 where id = ?1",
        // A task that is about to begin the turn has read the old text: the new version makes it read again.
        "update obligations set version = version + 1 where turn_id = ?1 and ?2 is not null",
    ] {
        let query = sqlx::query(sql).bind(earlier.turn).bind(new.id.as_uuid());
        query.execute(&mut *connection).await.map_err(store_error)?;
    }
    Ok(Stored::Amended { turn: earlier.turn.into() })
}

/// The latest turn that an event with the same external id belongs to.
struct Earlier {
    turn: Uuid,
    is_command: bool,
    is_waiting: bool,
    event: InboundEvent,
}

async fn find(connection: &mut SqliteConnection, event: &InboundEvent) -> Result<Option<Earlier>, StoreError> {
    let sql = "
        select t.id as turn_id, t.command is not null as is_command, o.work = 'waiting' and o.ended_at is null as is_waiting,
            e.channel, e.chat, e.thread, e.external_id, e.revision, e.text, e.details, e.raw, e.received_at
        from events as f cross join turns as t on t.id = f.turn_id cross join obligations as o on o.turn_id = t.id
            cross join events as e on e.id = t.event_id
        where f.channel = ? and f.external_id = ? and f.turn_id is not null
        order by t.seq desc limit 1";
    let query = sqlx::query(sql).bind(event.conversation.channel.as_str()).bind(&*event.external_id);
    let Some(row) = query.fetch_optional(connection).await.map_err(store_error)? else { return Ok(None) };
    Ok(Some(Earlier {
        turn: row.try_get("turn_id").map_err(store_error)?,
        is_command: row.try_get("is_command").map_err(store_error)?,
        is_waiting: row.try_get::<Option<bool>, _>("is_waiting").map_err(store_error)?.unwrap_or(false),
        event: read::turns::event(&row)?,
    }))
}

/// Moves the conversations of a chat, one per thread, to the chat's new id.
///
/// If there is a conversation under the new id already, both keep their ids and finish their turns: rows and running
/// tasks refer to them. New events go to the one whose turns began first, which `succeeded_by` of the other one names.
async fn move_chat(connection: &mut SqliteConnection, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    for sql in [
        "with older (thread, id, number) as (
            select c.thread, c.id, row_number() over (
                partition by c.thread order by (select min(t.seq) from turns as t where t.conversation_id = c.id), c.id)
            from conversations as c where c.channel = ?1 and c.chat in (?2, ?3) and c.succeeded_by is null)
        update conversations set succeeded_by = (
            select older.id from older where older.thread = conversations.thread and older.number = 1)
        where id in (select id from older where number > 1)",
        "update events set chat = ?3 where id in (
            select t.event_id from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is null)",
        "update events set chat = ?3 where id in (
            select t.event_id from conversations as c cross join turns as t on t.conversation_id = c.id
            where c.channel = ?1 and c.chat = ?2 and c.succeeded_by is not null)",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is null",
        "update conversations set chat = ?3 where channel = ?1 and chat = ?2 and succeeded_by is not null",
    ] {
        let query = sqlx::query(sql).bind(from.channel.as_str()).bind(&*from.chat).bind(to);
        query.execute(&mut *connection).await.map_err(store_error)?;
    }
    Ok(())
}
