//! Maps SQLite's errors to those of the store port, and to the reasons why a database is not opened.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

use rejoinder_core::StoreError;

/// SQLite's primary result codes (<https://www.sqlite.org/rescode.html>).
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NOMEM: i32 = 7;
const READONLY: i32 = 8;
const INTERRUPT: i32 = 9;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const NOTADB: i32 = 26;

/// An error of one of the two libraries that call SQLite.
pub(super) trait SqliteError: Error + Send + Sync + 'static {
    fn origin(&self) -> Origin;
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// SQLite, with its extended result code.
    Code(i32),
    /// There is no connection.
    Connection,
    /// A stored value is not of the expected type.
    Value,
    Other,
}

impl Origin {
    /// SQLite's primary result code.
    fn code(self) -> Option<i32> {
        if let Self::Code(extended) = self { Some(extended & 0xff) } else { None }
    }
}

impl SqliteError for sqlx::Error {
    fn origin(&self) -> Origin {
        let code = || self.as_database_error()?.code()?.parse().ok();
        match self {
            Self::Io(_) | Self::PoolTimedOut | Self::PoolClosed | Self::WorkerCrashed => Origin::Connection,
            Self::ColumnDecode { .. } | Self::Decode(_) => Origin::Value,
            _ => code().map_or(Origin::Other, Origin::Code),
        }
    }
}

impl SqliteError for rusqlite::Error {
    fn origin(&self) -> Origin {
        match self {
            Self::SqliteFailure(error, _) => Origin::Code(error.extended_code),
            Self::FromSqlConversionFailure(..)
            | Self::IntegralValueOutOfRange(..)
            | Self::InvalidColumnType(..)
            | Self::Utf8Error(_) => Origin::Value,
            _ => Origin::Other,
        }
    }
}

/// Whether the statement failed, and not the database file.
pub(super) fn is_plain(error: &impl SqliteError) -> bool {
    error.origin().code() == Some(ERROR)
}

/// The store error for an error of SQLite. Its kind tells the caller what to do next.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(super) fn store_error(error: impl SqliteError) -> StoreError {
    let origin = error.origin();
    match origin.code() {
        Some(BUSY | LOCKED | NOMEM | READONLY | IOERR | FULL | CANTOPEN) => StoreError::Unavailable(error.to_string()),
        Some(CORRUPT | NOTADB) => StoreError::Corrupt(error.to_string()),
        // Only the limit of an operator's query interrupts.
        Some(INTERRUPT) => StoreError::TooSlow,
        _ => match origin {
            Origin::Connection => StoreError::Unavailable(error.to_string()),
            Origin::Value => StoreError::Corrupt(error.to_string()),
            Origin::Code(_) | Origin::Other => StoreError::Failed(error.to_string()),
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
    #[error("cannot open and lock {path}")]
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
    #[error(
        "there is no database at {path}, but its log {log} is there: put the database back beside it. To restore a backup or \
         to begin without any data, move the log away"
    )]
    LogAlone { path: PathBuf, log: PathBuf },
    #[error("the database {path} has schema version {found}, and this program knows {known}: use a newer version")]
    Newer { path: PathBuf, found: i64, known: i64 },
    /// Only when opened for reading: opening for writing updates the schema.
    #[error("the database {path} has schema version {found}, this program reads {known}: run the gateway to update it")]
    Older { path: PathBuf, found: i64, known: i64 },
    #[error("{path} is the database of another program: it has tables, and none of them is the gateway's")]
    Foreign { path: PathBuf },
    #[error("{path} is not a readable SQLite database: {reason}")]
    Unreadable { path: PathBuf, reason: String },
    #[error("the schema of {path} cannot be updated: {reason}")]
    Migration { path: PathBuf, reason: String },
    /// Any other error of SQLite.
    #[error("cannot open the database {path}")]
    Database {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("cannot start the writer's thread")]
    Thread(#[source] io::Error),
}

impl OpenError {
    pub(super) fn database(path: &Path, source: impl SqliteError) -> Self {
        let path = path.to_owned();
        // The file exists and is no database, or a corrupt one.
        if matches!(source.origin().code(), Some(NOTADB | CORRUPT)) {
            Self::Unreadable { path, reason: source.to_string() }
        } else {
            Self::Database { path, source: Box::new(source) }
        }
    }
}
