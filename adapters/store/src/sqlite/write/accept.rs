//! Accepts events: deduplicates and stores them, and opens their turns.

use rejoinder_core::{
    StoreError,
    store::{Beside, Commit, CursorMove, NewEvent, Stored, rules::Changes},
};
use rusqlite::params;

use super::{
    amend, commit, files, insert, pick, reactions,
    rows::{self, Transaction},
};

/// Accepts events in order, and stores what is beside them.
pub(super) fn all(
    transaction: &Transaction<'_>,
    events: &[NewEvent],
    beside: Option<&Beside<Stored>>,
) -> Result<Vec<Stored>, StoreError> {
    let accept = |new: &NewEvent| {
        let stored = match Changes::of(&new.event, new.turn.is_some()) {
            Changes::Nothing => insert::one(transaction, new),
            Changes::Earlier => amend::accept(transaction, new),
            Changes::Chat(chat) => amend::accept_move(transaction, new, chat),
            Changes::Pick(question) => pick::accept(transaction, new, question),
            Changes::Expiry(question) => pick::expire(transaction, new, question),
            Changes::Reactions { message, emoji, removed } => {
                reactions::accept(transaction, new, message, (emoji, removed))
            }
            Changes::AllReactions { message, emoji } => reactions::accept_removal(transaction, new, message, emoji),
        }?;
        files::add_of_event(transaction, new, &stored)?;
        Ok(stored)
    };
    let stored = events.iter().map(accept).collect::<Result<Vec<_>, StoreError>>()?;
    match beside {
        Some(Beside::Cursor(CursorMove { channel, name, position, .. })) => {
            rows::change(transaction, MOVE_CURSOR, params![channel.as_str(), name, position])?;
        }
        Some(Beside::Operation(follows)) => match commit::apply(transaction, &follows.of(&stored))? {
            Commit::Done => {}
            Commit::Conflict => return Err(StoreError::Failed("it was changed at the same moment".to_owned())),
            Commit::NotOwner => return Err(StoreError::NotOwner),
        },
        // No other process has leases.
        Some(Beside::Lease(_)) | None => {}
    }
    Ok(stored)
}

const MOVE_CURSOR: &str = "
    insert into channels_cursor (channel, name, position) values (?, ?, ?)
    on conflict do update set position = excluded.position";
