//! Maps SQLite's errors to those of the store port, and to the reasons why a database is not opened.

use std::{
    io,
    path::{Path, PathBuf},
};

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
fn is_unreadable(error: &sqlx::Error) -> bool {
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

/// Why a database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot create the directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the database {path} is in use by another process")]
    InUse { path: PathBuf },
    #[error("cannot open and lock the database {path}")]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// SQLite keeps the log beside the name that it is given: under another name, what the log holds is missing.
    #[error(
        "the database {path} has {names} names (hard links), and opened under another one it would be damaged: remove \
         the others"
    )]
    HardLinked { path: PathBuf, names: u64 },
    #[error(
        "the database {path} is mounted as a single file, so that its log would stay outside of the mount and be lost: \
         mount its directory"
    )]
    Mounted { path: PathBuf },
    /// Only when opened for reading.
    #[error("there is no database at {path} yet: the gateway creates it when it first runs")]
    Missing { path: PathBuf },
    #[error("the database {path} has schema version {found}, and this program knows {known}: use a newer version")]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// Only when opened for reading: opening for writing updates the schema.
    #[error("the database {path} has schema version {found}, this program reads {known}: run the gateway to update it")]
    Older { path: PathBuf, found: i64, known: i64 },
    #[error("{path} is not a readable SQLite database: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("the schema of {path} cannot be updated: {reason}")]
    Migration { path: PathBuf, reason: String },
    /// Any other error of SQLite.
    #[error("cannot open the database {path}")]
    Database {
        path: PathBuf,
        #[source]
        source: sqlx::Error,
    },
    #[error("cannot start the writer's thread")]
    Thread(#[source] io::Error),
}

impl OpenError {
    pub(super) fn database(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        if is_unreadable(&source) {
            Self::Unreadable { path, reason: source.to_string() }
        } else {
            Self::Database { path, source }
        }
    }
}
