//! The settings of runs. Equal ones are stored once.

use rejoinder_core::StoreError;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{List, Statement, statement},
    records::columns::{Columns, record},
    shared::{
        bounds::SETTINGS_STEP,
        known::{KnownRow, KnownSettings},
    },
};

/// The id of settings that `run` uses. They are inserted if they are new.
pub(super) async fn id(transaction: &mut Transaction<'_>, body: &str, run: i64) -> Result<i64, StoreError> {
    let known = transaction.settings.get(body).filter(|known| run <= known.used + SETTINGS_STEP);
    if let Some(known) = known {
        // Another connection may have removed them, or may be about to.
        let kept = rows::one(transaction, statement!(LOCK, known.id), |row| row.value("id")).await?;
        if let Some(id) = kept {
            return Ok(id);
        }
    }
    let digest: [u8; 32] = Sha256::digest(body).into();
    let read = |row: &PgRow| Ok(record!(row => KnownRow { id, used }));
    let known = rows::one(transaction, statement!(WRITE, digest, run, body), read).await?;
    let known = known.ok_or_else(|| StoreError::Failed("settings were neither inserted nor found".to_owned()))?;
    transaction.settings.insert(body, known);
    Ok(known.id)
}

/// Removes the settings of which all runs are removed.
pub(super) async fn remove_unused(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    let unused = lock(transaction, statement!(LOCK_UNUSED, SETTINGS_STEP)).await?;
    if !unused.0.is_empty() {
        rows::change(transaction, statement!(REMOVE_UNUSED, unused, SETTINGS_STEP)).await?;
        *transaction.settings = KnownSettings::default();
    }
    Ok(())
}

/// Removes the settings that no run refers to. Reads the contents of all runs.
pub(super) async fn remove_unreferenced(transaction: &mut Transaction<'_>) -> Result<(), StoreError> {
    let unreferenced = lock(transaction, statement!(LOCK_UNREFERENCED)).await?;
    rows::change(transaction, statement!(REMOVE_UNREFERENCED, unreferenced)).await?;
    *transaction.settings = KnownSettings::default();
    Ok(())
}

/// Locks settings that may be removed, and returns their ids. Runs that began to use them meanwhile are seen by the next statement.
async fn lock(transaction: &mut Transaction<'_>, statement: Statement<'_>) -> Result<List<i64>, StoreError> {
    rows::all(transaction, statement, |row| row.value("id")).await.map(List)
}

const LOCK: &str = "select id from run_settings where id = $1 for key share";

const WRITE: &str = "
    insert into run_settings (digest, used, body) values ($1, $2, $3)
    on conflict (digest) do update set used = greatest(run_settings.used, excluded.used)
    returning id, used";

/// All runs that refer to settings come before the end of their step, and all runs that are left come from the first one on.
const LOCK_UNUSED: &str = "
    select id from run_settings
    where used + $1 < coalesce((select min(run) from run_contents), 9223372036854775807)
    order by id for update";

const REMOVE_UNUSED: &str = "
    delete from run_settings
    where id = any($1) and used + $2 < coalesce((select min(run) from run_contents), 9223372036854775807)";

const LOCK_UNREFERENCED: &str = "
    select id from run_settings as s
    where not exists (select 1 from run_contents as c where c.settings = s.id) order by id for update";

const REMOVE_UNREFERENCED: &str = "
    delete from run_settings as s
    where id = any($1) and not exists (select 1 from run_contents as c where c.settings = s.id)";
