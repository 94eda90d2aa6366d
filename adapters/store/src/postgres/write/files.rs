//! Files, and which turns have rows that refer to them.

use rejoinder_core::{
    StoreError, TurnId,
    store::{NewEvent, NewFile, Stored},
};

use super::rows::{self, Transaction};
use crate::postgres::values::{Bytes, insert_into, statement};

/// Stores a file for a turn, unless the store has it.
pub(super) async fn add(transaction: &mut Transaction<'_>, turn: TurnId, new: &NewFile) -> Result<(), StoreError> {
    let digest = new.file.digest.as_bytes();
    if let Some(bytes) = &new.bytes {
        let (size, content) = (new.file.size, Bytes(&bytes[..]));
        // A row that a removal is about to delete is waited for, and inserted anew.
        let inserted =
            insert_into!(files { digest, size, content }, "on conflict (digest) do update set size = excluded.size");
        rows::change(transaction, inserted).await?;
    }
    rows::change(transaction, statement!(USE, turn, digest, new.spoken_at)).await.map(drop)
}

/// Stores the files of an event for the turn that it opens or changes.
pub(super) async fn add_of_event(
    transaction: &mut Transaction<'_>,
    new: &NewEvent,
    stored: &Stored,
) -> Result<(), StoreError> {
    let turn = match stored {
        Stored::Turn { .. } => new.turn.as_ref().map(|turn| turn.id),
        Stored::Amended { turn } => Some(*turn),
        _ => None,
    };
    let Some(turn) = turn else { return Ok(()) };
    for file in &new.files {
        add(transaction, turn, file).await?;
    }
    Ok(())
}

/// Of a file that is gone there is nothing to keep. One that is about to be removed is looked at again then, with this use.
const USE: &str = "
    insert into file_uses (turn_id, digest, spoken_at) select $1, digest, $3 from files where digest = $2 for key share
    on conflict (turn_id, digest) do nothing";
