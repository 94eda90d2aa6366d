//! The settings of runs. Equal ones are stored once.

use rejoinder_core::StoreError;
use rusqlite::params;
use sha2::{Digest, Sha256};

use super::rows::{self, Transaction};
use crate::shared::{bounds::SETTINGS_STEP, known::KnownRow};

/// The id of settings that `run` uses. They are inserted if they are new.
pub(super) fn id(transaction: &Transaction<'_>, body: &str, run: i64) -> Result<i64, StoreError> {
    let known = transaction.settings.borrow_mut().get(body);
    if let Some(known) = known.filter(|known| run <= known.used + SETTINGS_STEP) {
        return Ok(known.id);
    }
    let digest: [u8; 32] = Sha256::digest(body).into();
    let read = |row: &rusqlite::Row<'_>| Ok(KnownRow { id: row.get(0)?, used: row.get(1)? });
    let known = rows::one(transaction, WRITE, params![digest, run, body], read)?;
    let known = known.ok_or_else(|| StoreError::Failed("settings were neither inserted nor found".to_owned()))?;
    transaction.settings.borrow_mut().insert(body, known);
    Ok(known.id)
}

/// Removes the settings of which all runs are removed.
pub(super) fn remove_unused(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    if rows::change(transaction, REMOVE_UNUSED, [SETTINGS_STEP])? > 0 {
        transaction.settings.take();
    }
    Ok(())
}

/// Removes the settings that no run refers to. Reads the contents of all runs.
pub(super) fn remove_unreferenced(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    rows::change(transaction, REMOVE_UNREFERENCED, [])?;
    transaction.settings.take();
    Ok(())
}

const REMOVE_UNREFERENCED: &str = "
    delete from run_settings where id not in (select settings from run_contents where settings is not null)";

const WRITE: &str = "
    insert into run_settings (digest, used, body) values (?, ?, ?)
    on conflict do update set used = max(used, excluded.used)
    returning id, used";

/// All runs that refer to settings come before the end of their step, and all runs that are left come from the first one on.
const REMOVE_UNUSED: &str = "
    delete from run_settings
    where used + ? < coalesce((select min(run) from run_contents), 9223372036854775807)";
