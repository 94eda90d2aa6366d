//! People's reactions to the answers of agents.

use rejoinder_core::{
    Author, ChatKind, InboundEvent, StoreError, TurnId,
    store::{NewEvent, Stored},
};

use super::{
    insert,
    rows::{self, Transaction},
    sessions,
};
use crate::{
    postgres::values::statement,
    records::columns::Columns,
    shared::{
        bounds::{REACTED_WITHIN, REACTIONS_KEPT},
        stored::{json, thread},
    },
};

/// Accepts a reaction to our message with the platform's id `message`: `emoji`, or if that is empty, that `removed` was taken back.
/// One that opens a turn is told by it, and takes the place of an earlier one of the person.
pub(super) async fn accept(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    message: &str,
    (emoji, removed): (&str, Option<&str>),
) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new).await?;
    let is_told = match stored {
        Stored::Kept => false,
        Stored::Turn { .. } => true,
        _ => return Ok(stored),
    };
    let Some(turn) = answered(transaction, &new.event, message).await? else { return Ok(stored) };
    let (event, address) = (&new.event, &new.event.conversation);
    if emoji.is_empty() || is_told {
        let removed = removed.filter(|_| emoji.is_empty());
        rows::change(transaction, statement!(TAKE_BACK, turn, event.person(), removed)).await?;
        sessions::count_changes(transaction, [], &[turn]).await?;
        return Ok(stored);
    }
    let author = (event.chat == ChatKind::Group).then(|| json(&Author::from(event.sender.clone())));
    let (person, at, channel) = (event.person(), event.received_at, &address.channel);
    let inserted = statement!(INSERT, turn, person, emoji, author, at, channel, event.external_id);
    rows::change(transaction, inserted).await?;
    rows::change(transaction, statement!(DELETE_OLDEST, turn, REACTIONS_KEPT)).await?;
    sessions::count_changes(transaction, [], &[turn]).await?;
    Ok(stored)
}

/// Accepts that everybody's reactions to our message were removed: all, or those with this emoji.
pub(super) async fn accept_removal(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    message: &str,
    emoji: Option<&str>,
) -> Result<Stored, StoreError> {
    let stored = insert::one(transaction, new).await?;
    if stored == Stored::Kept
        && let Some(turn) = answered(transaction, &new.event, message).await?
    {
        rows::change(transaction, statement!(REMOVE, turn, emoji)).await?;
        sessions::count_changes(transaction, [], &[turn]).await?;
    }
    Ok(stored)
}

/// The turn whose answer by an agent is in the message `message` of an event's conversation.
async fn answered(
    transaction: &mut Transaction<'_>,
    event: &InboundEvent,
    message: &str,
) -> Result<Option<TurnId>, StoreError> {
    let address = &event.conversation;
    let found = statement!(SELECT_ANSWERED, address.channel, address.chat, thread(address), message, REACTED_WITHIN);
    rows::one(transaction, found, |row| row.value("id")).await
}

/// Removes the reaction that came with an event of this key, if it is one.
pub(super) async fn take_back(transaction: &mut Transaction<'_>, event: &InboundEvent) -> Result<(), StoreError> {
    let deleted = statement!(DELETE_BY_EVENT, event.external_id, event.conversation.channel);
    let turns = rows::all(transaction, deleted, |row| row.value("turn_id")).await?;
    sessions::count_changes(transaction, [], &turns).await
}

const SELECT_ANSWERED: &str = "
    select t.id
    from conversations as c
        cross join lateral (
            select * from turns as l where l.conversation_id = c.id order by l.seq desc limit $5) as t
        join deliveries as d on d.turn_id = t.id
    where c.channel = $1 and c.chat = $2 and c.thread = $3 and c.succeeded_by is null
        and t.agent is not null and d.claim > 0 and not d.is_copy and d.signal = 'reply' and d.by_agent
        and d.message_ids ? $4
    order by t.seq desc limit 1";

const INSERT: &str = "
    insert into reactions (turn_id, person, emoji, author, at, channel, external_id)
    values ($1, $2, $3, $4::jsonb, $5, $6, $7)
    on conflict (turn_id, person) do update set
        emoji = excluded.emoji, author = excluded.author, at = excluded.at, external_id = excluded.external_id";

const TAKE_BACK: &str = "
    delete from reactions where turn_id = $1 and person = $2 and ($3::text is null or emoji = $3)";

const REMOVE: &str = "delete from reactions where turn_id = $1 and ($2::text is null or emoji = $2)";

const DELETE_OLDEST: &str = "
    delete from reactions where turn_id = $1 and person not in (
        select person from reactions where turn_id = $1 order by at desc, person limit $2)";

const DELETE_BY_EVENT: &str = "delete from reactions where external_id = $1 and channel = $2 returning turn_id";
