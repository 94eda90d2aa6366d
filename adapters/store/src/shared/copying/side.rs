//! What each database does in a copy, and why it may fail.

use std::{error::Error, path::PathBuf};

use super::tables::{Range, Row, Table};
/// Why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("both are SQLite databases: make a backup of the one, and restore it as the other")]
    BothSqlite,
    #[error("both are PostgreSQL databases: use pg_dump and pg_restore")]
    BothPostgres,
    /// It cannot be opened.
    #[error(transparent)]
    Open(Box<dyn Error + Send + Sync>),
    #[error("{path} exists: name a file that does not, as the copy is a new database")]
    Exists { path: PathBuf },
    #[error("the database {database} has rows in {table}: name an empty one, as the copy replaces all that is in it")]
    NotEmpty { database: String, table: &'static str },
    #[error(
        "the database {database} is an unfinished copy of {other}, and not of {from}: name another one, or remove it"
    )]
    OtherSource { database: String, from: String, other: String },
    #[error("a gateway uses the database {database}: stop it. One that was killed counts for 15 s more")]
    InUse { database: String },
    #[error("another process copies into the database {database} at this moment")]
    Busy { database: String },
    #[error("a row of {table} in {database} cannot be copied: {reason}")]
    Row { database: String, table: &'static str, reason: String },
    #[error("{table} in {database} has other rows than were written to it: does somebody else write there?")]
    Differs { database: String, table: &'static str },
    #[error("in {database}, {reason}")]
    Broken { database: String, reason: String },
    #[error("cannot read or write {what} in {database}")]
    Database {
        database: String,
        what: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl CopyError {
    /// The error of a statement about `what`.
    pub(crate) fn of(database: &str, what: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Database { database: database.to_owned(), what, source: source.into() }
    }
}

/// A database during a copy, as its source or its target.
pub(crate) trait Side: Sized {
    /// How reports and errors name it.
    fn name(&self) -> &str;

    /// Keeps others from writing to it until it is closed. Returns whether that was possible: a gateway may use it.
    async fn hold(&mut self) -> Result<bool, CopyError>;

    /// At most `limit` rows of a range, in the order of their keys.
    async fn rows(&mut self, table: &'static Table, range: &Range<'_>, limit: usize) -> Result<Vec<Row>, CopyError>;

    /// Removes rows, each of which has the key of one of these.
    async fn remove(&mut self, table: &'static Table, rows: &[Row]) -> Result<(), CopyError>;

    /// Inserts rows whose keys it does not have.
    async fn insert(&mut self, table: &'static Table, rows: &[&Row]) -> Result<(), CopyError>;

    /// The highest id that a line of the gateway's own log has had. That line may be gone: ids are never used again.
    async fn last_line(&mut self) -> Result<i64, CopyError>;

    /// Makes a store of the target when all rows are there, and closes it. `last_line` is that of the source.
    async fn finish(self, last_line: i64) -> Result<(), CopyError>;

    async fn close(self) -> Result<(), CopyError>;
}
