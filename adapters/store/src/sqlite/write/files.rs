//! Files, and which turns have rows that refer to them.

use rejoinder_core::{
    StoreError, Timestamp, TurnId,
    store::{NewEvent, NewFile, Stored},
};
use rusqlite::params;

use super::rows::{self, Transaction, insert_into};

/// Stores a file for a turn, unless the store has it.
pub(super) fn add(transaction: &Transaction<'_>, turn: TurnId, new: &NewFile) -> Result<(), StoreError> {
    let digest = new.file.digest.as_bytes();
    if let Some(bytes) = &new.bytes {
        let (size, content) = (new.file.size, &bytes[..]);
        insert_into!(transaction, files { digest, size, content }, "on conflict do nothing")?;
    }
    rows::change(transaction, USE, params![turn.as_uuid(), digest, new.spoken_at.map(Timestamp::as_millis)]).map(drop)
}

/// Stores the files of an event for the turn that it opens or changes.
pub(super) fn add_of_event(transaction: &Transaction<'_>, new: &NewEvent, stored: &Stored) -> Result<(), StoreError> {
    let turn = match stored {
        Stored::Turn { .. } => new.turn.as_ref().map(|turn| turn.id),
        Stored::Amended { turn } => Some(*turn),
        _ => None,
    };
    for (turn, file) in turn.iter().flat_map(|turn| new.files.iter().map(move |file| (*turn, file))) {
        add(transaction, turn, file)?;
    }
    Ok(())
}

/// Of a file that is gone there is nothing to keep.
const USE: &str = "
    insert into file_uses (turn_id, digest, spoken_at) select ?1, ?2, ?3 where exists (select 1 from files where digest = ?2)
    on conflict do nothing";
