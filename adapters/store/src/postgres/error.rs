//! Maps PostgreSQL's errors to those of the store port, and to the reasons why a database is not opened.

use std::{borrow::Cow, error::Error, io::ErrorKind};

use rejoinder_core::StoreError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

pub(super) fn late() -> StoreError {
    StoreError::Unavailable("the database did not answer in time".to_owned())
}

/// The error of a server on which nothing can be written. One in recovery may show less than what was committed.
pub(super) fn standby() -> StoreError {
    StoreError::Unavailable("the server of the database is a standby, still recovers, or can only be read".to_owned())
}

fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}

/// Whether a server lets this user in nowhere, or not to this database. Others of the database do not either.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| ["28", "3D"].iter().any(|class| code.starts_with(class)))
}

/// Why a connection must be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Its prepared statements can no longer be used. A new connection may execute the statement.
    Stale,
    /// Its server is read-only. A new connection may find another server.
    ReadOnly,
}

impl Fault {
    /// `None`: the connection can be kept after this error.
    pub(super) fn of(error: &sqlx::Error) -> Option<Self> {
        match &*code(error)? {
            READ_ONLY => Some(Self::ReadOnly),
            code if STALE_CODES.contains(&code) => Some(Self::Stale),
            _ => None,
        }
    }
}

/// The codes for a prepared statement that no longer fits its tables (another version has changed them), or does not exist.
const STALE_CODES: [&str; 3] = ["0A000", "26000", "42P05"];

/// The code of a change on a standby, or where `default_transaction_read_only` is on.
const READ_ONLY: &str = "25006";

/// The store error for an error of SQLx. Its kind tells the caller what to do next. The codes:
/// <https://www.postgresql.org/docs/15/errcodes-appendix.html>.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
pub(super) fn store_error(error: sqlx::Error) -> StoreError {
    let Some(code) = code(&error) else {
        return match error {
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
            sqlx::Error::ColumnNotFound(_) | sqlx::Error::Encode(_) => StoreError::Failed(error.to_string()),
            // There is no connection, or it broke.
            _ => StoreError::Unavailable(error.to_string()),
        };
    };
    match &*code {
        READ_ONLY => standby(),
        // A statement that took too long.
        "57014" => StoreError::TooSlow,
        code if STALE_CODES.contains(&code) => {
            StoreError::Unavailable(format!("what the connection has prepared cannot be used any more: {error}"))
        }
        // Other transactions were in the way.
        "40001" | "40P01" | LOCKED | "25P03" => StoreError::Unavailable(error.to_string()),
        "XX001" | "XX002" => StoreError::Corrupt(error.to_string()),
        code if code != OF_VALUES && NOT_OF_VALUES.iter().any(|begin| code.starts_with(begin)) => {
            StoreError::Unavailable(error.to_string())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}

/// The begins of codes for which what is written is not to blame, and must not be refused: connections, a column that only another version
/// fills, who is let in, missing databases and schemas, tables or rights that do not fit the statement (another version changes them, or a
/// dump is restored), resources, the operator, the system.
const NOT_OF_VALUES: [&str; 9] = ["08", "23502", "28", "3D", "3F", "42", "53", "57", "58"];

/// The code of a value that does not have the form of its type, such as `tsvector`.
const OF_VALUES: &str = "42601";

/// The code of a statement that has waited too long for a lock.
const LOCKED: &str = "55P03";

pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == LOCKED)
}

/// Whether a statement failed, and not the connection: its transaction is not committed.
pub(super) fn is_of_statement(error: &sqlx::Error) -> bool {
    let error = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// Why a database was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    #[error("the URL of the database cannot be used: {reason}")]
    Url { reason: String },
    #[error("cannot use the database {database}")]
    Connection {
        database: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("the server of the database {database} does not answer")]
    Late { database: String },
    /// A copy reads it, another process updates its schema, or something else uses a table that this one has to change.
    #[error("the database {database} is locked: is it copied or dumped, or its schema updated?")]
    Locked { database: String },
    #[error("the server of the database {database} refuses this user: {reason}")]
    User { database: String, reason: String },
    #[error("there is no database {database}: create it, or name another one")]
    NoDatabase { database: String },
    #[error("the database {database} is of PostgreSQL {found}, and 15 or newer is needed: update the server")]
    TooOld { database: String, found: String },
    #[error("the server of the database {database} is a standby, or still recovers: nothing can be written there")]
    Standby { database: String },
    #[error(
        "nothing can be written to the database {database}: it is read-only (default_transaction_read_only), as that of \
         a server which another one has replaced"
    )]
    ReadOnly { database: String },
    #[error(
        "the server of the database {database} is a pooler that gives each transaction another connection: use its session mode \
         (`pool_mode = session` of pgbouncer), or the address of PostgreSQL"
    )]
    Pooler { database: String },
    #[error("the database {database} has the encoding {found}: create it with the encoding UTF8")]
    Encoding { database: String, found: String },
    #[error("the database {database} has schema version {found}, and this program knows {known}: use a newer version")]
    Newer { database: String, found: i64, known: i64 },
    /// Only when opened for reading.
    #[error("the database {database} has no tables of the gateway yet: it makes them when it first runs")]
    Empty { database: String },
    /// Only when opened for reading.
    #[error(
        "the database {database} has schema version {found}, this program reads {known}: run the gateway to update it"
    )]
    Older { database: String, found: i64, known: i64 },
    #[error("the schema of the database {database} cannot be updated: {reason}")]
    Migration { database: String, reason: String },
    #[error(
        "the copy of a store into the database {database} is not finished: repeat `rejoinder store copy`, or use another \
         database"
    )]
    Unfinished { database: String },
    #[error("the log in the database {database} cannot be read")]
    Log {
        database: String,
        #[source]
        source: StoreError,
    },
}

impl PostgresOpenError {
    pub(super) fn connection(database: &str, source: sqlx::Error) -> Self {
        let database = database.to_owned();
        let refusal = source.as_database_error();
        let refusal = refusal.map(|error| (error.code().unwrap_or_default().into_owned(), error.message().to_owned()));
        match refusal {
            Some((code, reason)) if matches!(&*code, "28000" | "28P01") => Self::User { database, reason },
            Some((code, _)) if code == "3D000" => Self::NoDatabase { database },
            Some((code, _)) if code == LOCKED => Self::Locked { database },
            Some((code, _)) if code == "57014" => Self::Late { database },
            _ => Self::Connection { database, source: Box::new(source) },
        }
    }

    /// Whether others in the database are in the way. A try may hold up all who use it, for a second: the next one is to come later.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }

    /// Whether the server is away or starts, a standby takes over, or the database is locked: it may be there a moment later.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match self {
            Self::Late { .. } | Self::Locked { .. } | Self::Standby { .. } => true,
            Self::Connection { source, .. } => source.downcast_ref::<sqlx::Error>().is_some_and(is_away),
            Self::Log { source, .. } => matches!(source, StoreError::Unavailable(_)),
            _ => false,
        }
    }
}

/// Not if the name of a host is unknown, which no wait changes.
fn is_away(error: &sqlx::Error) -> bool {
    if let sqlx::Error::Io(error) = error {
        return matches!(
            error.kind(),
            // There is no Unix socket.
            ErrorKind::NotFound
                | ErrorKind::BrokenPipe
                | ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::TimedOut
                | ErrorKind::UnexpectedEof
        );
    }
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    // It starts or ends, or has no connection left.
    code.is_some_and(|code| matches!(&*code, "57P01" | "57P02" | "57P03" | "53300"))
}
