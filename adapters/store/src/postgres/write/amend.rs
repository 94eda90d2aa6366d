//! Edits, deletions, and a chat that got another id.

use rejoinder_core::{
    ConversationRef, InboundEvent, StoreError, TurnId,
    store::{
        NewEvent, Stored,
        rules::{self, Amendment, EarlierTurn, MovedConversation},
    },
};
use sqlx::postgres::PgRow;

use super::{
    insert, pick, reactions,
    rows::{self, Transaction},
    sessions,
};
use crate::{
    postgres::values::statement,
    records::columns::{Columns, record},
    shared::stored::StoredEvent,
};

/// Accepts an event that [changes an earlier one](rules::Changes::Earlier).
pub(super) async fn accept(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    if new.event.is_withdrawn() {
        reactions::take_back(transaction, &new.event).await?;
    }
    let earlier = find(transaction, &new.event).await?;
    let amendment = rules::amendment(earlier.as_ref().map(|(_, earlier)| earlier), &new.event, new.turn.is_some());
    let (turn, event) = match (amendment, earlier) {
        (Amendment::Changes(event), Some((turn, _))) => (turn, event),
        (Amendment::OpensTurn, _) => return insert::one(transaction, new).await,
        (Amendment::Nothing, _) | (_, None) => return insert::key(transaction, new).await,
    };
    let Some(event) = insert::change(transaction, new.id, &event, turn).await? else {
        return insert::one(transaction, new).await;
    };
    rows::change(transaction, statement!(CHANGE_EVENT, turn, event)).await?;
    // A turn that is put before the agent again already has a line with the text of its event.
    sessions::count_changes(transaction, [], &[turn]).await?;
    pick::answer_first(transaction, new).await?;
    Ok(Stored::Amended { turn })
}

/// The latest turn of an event with the same key but for the revision. It is locked, then read: its event may have been changed
/// meanwhile.
async fn find(
    transaction: &mut Transaction<'_>,
    event: &InboundEvent,
) -> Result<Option<(TurnId, EarlierTurn)>, StoreError> {
    let lock = statement!(LOCK_EARLIER, event.conversation.channel, event.external_id);
    let Some(turn) = rows::one(transaction, lock, |row| row.value::<TurnId>("id")).await? else { return Ok(None) };
    Ok(rows::one(transaction, statement!(SELECT_EARLIER, turn), earlier).await?.map(|earlier| (turn, earlier)))
}

fn earlier(row: &PgRow) -> Result<EarlierTurn, StoreError> {
    let stored = record!(row => StoredEvent {
        channel, chat, thread, external_id, revision, text, raw, received_at;
        details: row.json("details")?,
    });
    Ok(record!(row => EarlierTurn { is_command, is_waiting, is_put_off; event: stored.event()? }))
}

/// Accepts an event that gives its chat another id, `chat`.
pub(super) async fn accept_move(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    chat: &str,
) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new).await?;
    // Also for a duplicate: rows with the old id may have been added since.
    move_chat(transaction, &new.event.conversation, chat).await?;
    Ok(stored)
}

/// Moves the conversations of a chat, one per thread, to the chat's new id.
///
/// If there is a conversation under the new id already, both keep their ids and finish their turns: rows and running
/// tasks refer to them. New events go to the one that `succeeded_by` of the other one names.
async fn move_chat(transaction: &mut Transaction<'_>, from: &ConversationRef, to: &str) -> Result<(), StoreError> {
    rows::change(transaction, statement!(LOCK_MOVED, from.channel, from.chat, to)).await?;
    let moved = |row: &PgRow| Ok(record!(row => MovedConversation { id, thread, first_turn }));
    let conversations = rows::all(transaction, statement!(SELECT_MOVED, from.channel, from.chat, to), moved).await?;
    for (conversation, successor) in rules::successors(conversations) {
        rows::change(transaction, statement!(SUCCEED, conversation, successor)).await?;
    }
    for sql in COUNT_WAITING {
        rows::change(transaction, statement!(sql, from.channel, from.chat)).await?;
    }
    for sql in MOVE {
        rows::change(transaction, statement!(sql, from.channel, from.chat, to)).await?;
    }
    Ok(())
}

const LOCK_EARLIER: &str = "
    select t.id from events as f join turns as t on t.id = f.turn_id
    where f.channel = $1 and f.external_id = $2 and f.turn_id is not null
    order by t.seq desc limit 1
    for no key update of t";

const SELECT_EARLIER: &str = "
    select t.command is not null as is_command,
        t.work is not distinct from 'waiting' and t.ended_at is null as is_waiting,
        (t.work is null and t.wake_at is not null and t.state in ('deferred', 'claimed'))
            or (t.work is not distinct from 'running' and t.suspended) as is_put_off,
        e.channel, e.chat, e.thread, e.external_id, e.revision, e.text, e.details, e.raw, e.received_at
    from turns as t join events as e on e.seq = t.event
    where t.id = $1";

/// A task that is about to begin the turn has read the old text: the new version makes it read again.
const CHANGE_EVENT: &str = "update turns set event = $2, version = version + 1 where id = $1";

const LOCK_MOVED: &str = "
    select id from conversations
    where channel = $1 and chat in ($2, $3) and succeeded_by is null
    order by id for no key update";

/// The conversations of the chat with the old id and of the one with the new id.
const SELECT_MOVED: &str = "
    select c.id, c.thread, (select min(t.seq) from turns as t where t.conversation_id = c.id) as first_turn
    from conversations as c where c.channel = $1 and c.chat in ($2, $3) and c.succeeded_by is null";

const SUCCEED: &str = "update conversations set succeeded_by = $2 where id = $1";

/// A task that is about to begin a turn has read the old chat.
const COUNT_WAITING: [&str; 2] = [
    "update turns set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
        select id from conversations where channel = $1 and chat = $2 and succeeded_by is null)",
    "update turns set version = version + 1 where work = 'waiting' and ended_at is null and conversation_id in (
        select id from conversations where channel = $1 and chat = $2 and succeeded_by is not null)",
];

const MOVE: [&str; 4] = [
    "update events set chat = $3 where seq in (
        select t.event from conversations as c join turns as t on t.conversation_id = c.id
        where c.channel = $1 and c.chat = $2 and c.succeeded_by is null)",
    "update events set chat = $3 where seq in (
        select t.event from conversations as c join turns as t on t.conversation_id = c.id
        where c.channel = $1 and c.chat = $2 and c.succeeded_by is not null)",
    "update conversations set chat = $3 where channel = $1 and chat = $2 and succeeded_by is null",
    "update conversations set chat = $3 where channel = $1 and chat = $2 and succeeded_by is not null",
];
