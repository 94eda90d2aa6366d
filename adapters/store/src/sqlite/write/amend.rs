//! Events that change what was accepted before: edits, the rest of an album, a chat that got another id, a pick.
//!
//! They are few, and looked at one by one.

use std::sync::Arc;

use rejoinder_core::{
    Amends, ConversationRef, EventKind, InboundEvent, StoreError,
    store::{NewEvent, Stored},
};
use sqlx::{Row, SqliteConnection};
use uuid::Uuid;

use super::{insert, pick};
use crate::sqlite::{error::store_error, read};

/// Whether an event changes what was accepted before.
pub(super) fn is_change(new: &NewEvent) -> bool {
    new.event.amends.is_some() || matches!(new.event.kind, EventKind::Moved { .. }) || pick::question(new).is_some()
}

/// Accepts such an event.
pub(super) async fn accept(connection: &mut SqliteConnection, new: &NewEvent) -> Result<Stored, StoreError> {
    if let EventKind::Moved { chat } = &new.event.kind {
        let stored = insert::one(connection, new).await?;
        // Also when it was heard of before: rows of the old id may have come since.
        move_chat(connection, &new.event.conversation, chat).await?;
        return Ok(stored);
    }
    if let Some(question) = pick::question(new) {
        return pick::accept(connection, new, question).await;
    }
    let is_edit = matches!(new.event.amends, Some(Amends::Replaces | Amends::Withdraws));
    let earlier = find(connection, &new.event).await?.filter(|earlier| earlier.event.may_be_amended_by(&new.event));
    // What came with a command is none of the agent's business, whether the command was carried out or not.
    let is_of_a_command = earlier.as_ref().is_some_and(|earlier| earlier.is_command);
    // An edit that comes after a later one says what was said before.
    let changed = earlier.filter(|earlier| {
        earlier.is_waiting && !is_of_a_command && !(is_edit && new.event.revision < earlier.event.revision)
    });
    let Some(earlier) = changed else {
        // An edit of what was never a turn, runs already or has ended opens none. What follows too late for the
        // turn it belongs to is one of its own: it would be lost.
        let turn = new.turn.clone().filter(|_| !is_edit && !is_of_a_command);
        return insert::one(connection, &NewEvent { turn, ..new.clone() }).await;
    };
    let event = Arc::new(earlier.event.amended_by(&new.event));
    let stored = insert::one(connection, &NewEvent { id: new.id, event, turn: None }).await?;
    if stored != Stored::Kept {
        return Ok(stored);
    }
    for sql in [
        "update events set turn_id = ?1 where id = ?2",
        "update turns set event_id = ?2 where id = ?1",
        // Whoever is about to begin it has read the earlier words, and reads again.
        "update obligations set version = version + 1 where turn_id = ?1 and ?2 is not null",
    ] {
        let query = sqlx::query(sql).bind(earlier.turn).bind(new.id.as_uuid());
        query.execute(&mut *connection).await.map_err(store_error)?;
    }
    Ok(Stored::Amended { turn: earlier.turn.into() })
}

/// The latest turn that an earlier revision of an event opened.
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
        order by t.id desc limit 1";
    let query = sqlx::query(sql).bind(event.conversation.channel.as_str()).bind(&*event.external_id);
    let Some(row) = query.fetch_optional(connection).await.map_err(store_error)? else { return Ok(None) };
    Ok(Some(Earlier {
        turn: row.try_get("turn_id").map_err(store_error)?,
        is_command: row.try_get("is_command").map_err(store_error)?,
        is_waiting: row.try_get::<Option<bool>, _>("is_waiting").map_err(store_error)?.unwrap_or(false),
        event: read::turns::event(&row)?,
    }))
}

/// Lets the conversations of a chat, one for each thread, go on under its new id.
///
/// Where something was said under the new id before, there are two conversations in one place. Both end what they have:
/// whoever works on one of them, here or in the process, knows it by its id. The older one is gone on with.
async fn move_chat(connection: &mut SqliteConnection, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    for sql in [
        "update conversations set succeeded_by = (
            select min(c.id) from conversations as c
            where c.channel = ?1 and c.chat in (?2, ?3) and c.thread = conversations.thread and c.succeeded_by is null)
        where channel = ?1 and chat in (?2, ?3) and succeeded_by is null and exists (
            select 1 from conversations as c
            where c.channel = ?1 and c.chat in (?2, ?3) and c.thread = conversations.thread and c.succeeded_by is null
                and c.id < conversations.id)",
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
