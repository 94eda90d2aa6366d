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
async fn move_chat(connection: &mut SqliteConnection, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    let sql = "
        select c.id, n.id as new_id from conversations as c
        left join conversations as n on n.channel = c.channel and n.chat = ? and n.thread = c.thread
        where c.channel = ? and c.chat = ?";
    let query = sqlx::query(sql).bind(to).bind(from.channel.as_str()).bind(&*from.chat);
    for row in query.fetch_all(&mut *connection).await.map_err(store_error)? {
        let id: Uuid = row.try_get("id").map_err(store_error)?;
        let new: Option<Uuid> = row.try_get("new_id").map_err(store_error)?;
        // Something was said under the new id before we heard of it: both are one, which goes on as the older one.
        let both: &[&'static str] = &[
            "update turns set conversation_id = ?1 where conversation_id = ?2",
            // Whoever works on one of them knows it by the id that goes, and reads again.
            "update obligations set conversation_id = ?1, version = version + 1 where conversation_id = ?2",
            "update deliveries set conversation_id = ?1,
                seq = seq + (select coalesce(max(d.seq), 0) from deliveries as d where d.conversation_id = ?1)
            where conversation_id = ?2",
            "update sessions set conversation_id = ?1 where conversation_id = ?2",
            "delete from conversations where id = ?2",
        ];
        let moved = "update conversations set chat = ?3 where id = ?1";
        let events = "
            update events set chat = ?3
            where id in (select event_id from turns where conversation_id = ?1)";
        for sql in both.iter().filter(|_| new.is_some()).chain([&moved, &events]) {
            let query = sqlx::query(*sql).bind(id).bind(new).bind(to);
            query.execute(&mut *connection).await.map_err(store_error)?;
        }
    }
    Ok(())
}
