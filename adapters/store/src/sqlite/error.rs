//! Maps SQLite's errors to those of the store port.

use rejoinder_core::StoreError;

/// SQLite's primary result codes (<https://www.sqlite.org/rescode.html>).
const ERROR: u32 = 1;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const NOMEM: u32 = 7;
const READONLY: u32 = 8;
const INTERRUPT: u32 = 9;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// The primary result code of a database error.
fn code(error: &sqlx::Error) -> Option<u32> {
    let extended: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Whether the statement failed, and not the database file.
pub(super) fn is_plain(error: &sqlx::Error) -> bool {
    code(error) == Some(ERROR)
}

/// Whether the file exists and is no database, or a corrupt one.
pub(super) fn is_unreadable(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(NOTADB | CORRUPT))
}

/// The store error for an sqlx error. Its kind tells the caller what to do next.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    match code(&error) {
        Some(BUSY | LOCKED | NOMEM | READONLY | IOERR | FULL | CANTOPEN) => StoreError::Unavailable(error.to_string()),
        Some(CORRUPT | NOTADB) => StoreError::Corrupt(error.to_string()),
        // Only the limit of an operator's query interrupts.
        Some(INTERRUPT) => StoreError::TooSlow,
        Some(_) => StoreError::Failed(error.to_string()),
        None => match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                StoreError::Unavailable(error.to_string())
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Failed(error.to_string()),
        },
    }
}
