//! Accepts events: deduplicates and stores them, and opens their turns.

use rejoinder_core::{
    StoreError,
    store::{CursorMove, NewEvent, Stored, rules::Changes},
};
use rusqlite::params;

use super::{
    amend, insert, pick,
    rows::{self, Transaction},
};

/// Accepts events in order, and moves the cursor that covers them.
pub(super) fn all(
    transaction: &Transaction<'_>,
    events: &[NewEvent],
    cursor: Option<&CursorMove>,
) -> Result<Vec<Stored>, StoreError> {
    let accept = |new: &NewEvent| match Changes::of(&new.event, new.turn.is_some()) {
        Changes::Nothing => insert::one(transaction, new),
        Changes::Earlier => amend::accept(transaction, new),
        Changes::Chat(chat) => amend::accept_move(transaction, new, chat),
        Changes::Pick(question) => pick::accept(transaction, new, question),
        Changes::Expiry(question) => pick::expire(transaction, new, question),
    };
    let stored = events.iter().map(accept).collect::<Result<_, _>>()?;
    if let Some(CursorMove { channel, name, position }) = cursor {
        rows::change(transaction, MOVE_CURSOR, params![channel.as_str(), name, position])?;
    }
    Ok(stored)
}

const MOVE_CURSOR: &str = "
    insert into channels_cursor (channel, name, position) values (?, ?, ?)
    on conflict do update set position = excluded.position";
