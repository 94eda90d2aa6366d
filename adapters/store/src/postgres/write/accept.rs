//! Accepts events: deduplicates and stores them, and opens their turns.

use rejoinder_core::{
    ConversationRef, StoreError,
    store::{Beside, Commit, CursorMove, NewEvent, Stored, rules::Changes},
};

use super::{
    amend, commit, files, insert, leases, pick, reactions,
    rows::{self, Transaction},
};
use crate::{
    postgres::values::{List, statement},
    shared::stored::thread,
};

/// Accepts events in order, and stores what is beside them. Of [`Stored::Busy`] nothing is kept: the transaction is rolled back.
pub(super) async fn all(
    transaction: &mut Transaction<'_>,
    events: &[NewEvent],
    beside: Option<&Beside<Stored>>,
) -> Result<Vec<Stored>, StoreError> {
    if let Some(fence) = beside.and_then(Beside::fence)
        && !leases::is_held(transaction, fence).await?
    {
        return Err(StoreError::NotOwner);
    }
    lock(transaction, events).await?;
    let mut all = Vec::with_capacity(events.len());
    for new in events {
        let stored = one(transaction, new).await?;
        if stored == Stored::Busy {
            return Ok(vec![Stored::Busy; events.len()]);
        }
        files::add_of_event(transaction, new, &stored).await?;
        all.push(stored);
    }
    match beside {
        Some(Beside::Cursor(CursorMove { channel, name, position, .. })) => {
            rows::change(transaction, statement!(MOVE_CURSOR, channel, name, position)).await?;
        }
        Some(Beside::Operation(follows)) => match commit::apply(transaction, &follows.of(&all)).await? {
            Commit::Done => {}
            Commit::Conflict => return Err(StoreError::Failed("it was changed at the same moment".to_owned())),
            Commit::NotOwner => return Err(StoreError::NotOwner),
        },
        Some(Beside::Lease(_)) | None => {}
    }
    Ok(all)
}

async fn one(transaction: &mut Transaction<'_>, new: &NewEvent) -> Result<Stored, StoreError> {
    match Changes::of(&new.event, new.turn.is_some()) {
        Changes::Nothing => insert::one(transaction, new).await,
        Changes::Earlier => amend::accept(transaction, new).await,
        Changes::Chat(chat) => amend::accept_move(transaction, new, chat).await,
        Changes::Pick(question) => pick::accept(transaction, new, question).await,
        Changes::Expiry(question) => pick::expire(transaction, new, question).await,
        Changes::Reactions { message, emoji, removed } => {
            reactions::accept(transaction, new, message, (emoji, removed)).await
        }
        Changes::AllReactions { message, emoji } => reactions::accept_removal(transaction, new, message, emoji).await,
    }
}

/// Locks the conversations in which events open turns, or change what is there: all at once and in the order of their ids, before
/// any row in them is locked. [`insert`] does it for a single event that only opens its turn.
async fn lock(transaction: &mut Transaction<'_>, events: &[NewEvent]) -> Result<(), StoreError> {
    let is_locked_here = |new: &&NewEvent| {
        let changes = Changes::of(&new.event, new.turn.is_some());
        changes != Changes::Nothing || (new.turn.is_some() && events.len() > 1)
    };
    let addresses: Vec<_> = events.iter().filter(is_locked_here).map(|new| &new.event.conversation).collect();
    if addresses.is_empty() {
        return Ok(());
    }
    let of_all = |part: fn(&ConversationRef) -> &str| {
        List(addresses.iter().map(|at| part(at).to_owned()).collect::<Vec<String>>())
    };
    let (channels, chats, threads) = (of_all(|at| at.channel.as_str()), of_all(|at| &*at.chat), of_all(thread));
    rows::change(transaction, statement!(LOCK, channels, chats, threads)).await.map(drop)
}

const LOCK: &str = "
    select id from conversations
    where (channel, chat, thread) in (select * from unnest($1::text[], $2::text[], $3::text[])) and succeeded_by is null
    order by id for no key update";

const MOVE_CURSOR: &str = "
    insert into channels_cursor (channel, name, position) values ($1, $2, $3)
    on conflict (channel, name) do update set position = excluded.position";
