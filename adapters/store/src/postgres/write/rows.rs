//! Statements in a transaction.

use rejoinder_core::{
    StoreError,
    store::{LogLine, LogSeq},
};
use sqlx::{PgConnection, postgres::PgRow};

use crate::{
    postgres::{
        error::{Fault, store_error},
        values::Statement,
    },
    shared::known::KnownSettings,
};

/// A connection during one transaction.
pub(in crate::postgres) struct Transaction<'a> {
    pub(super) connection: &'a mut PgConnection,
    /// The place of the last entry that it added to the log.
    pub(in crate::postgres) logged: Option<LogSeq>,
    /// Whether it changes what agents are owed.
    pub(in crate::postgres) noticed: bool,
    /// Lines that it has stored, and that are logged once it is committed.
    pub(in crate::postgres) told: Vec<LogLine>,
    /// Why its connection must be replaced; `None` if no error said so.
    pub(in crate::postgres) fault: Option<Fault>,
    /// The settings of runs that are stored.
    pub(super) settings: &'a mut KnownSettings,
}

impl<'a> Transaction<'a> {
    pub(in crate::postgres) const fn new(connection: &'a mut PgConnection, settings: &'a mut KnownSettings) -> Self {
        Self { connection, logged: None, noticed: false, told: Vec::new(), fault: None, settings }
    }

    /// Makes the store error, and notes whether the connection must be replaced.
    fn failed(&mut self, error: sqlx::Error) -> StoreError {
        self.fault = Fault::of(&error);
        store_error(error)
    }
}

/// Executes a statement, and returns how many rows it changed.
pub(super) async fn change(transaction: &mut Transaction<'_>, statement: Statement<'_>) -> Result<u64, StoreError> {
    let result = statement.execute(&mut *transaction.connection).await;
    result.map(|result| result.rows_affected()).map_err(|error| transaction.failed(error))
}

/// Executes a statement that must change one row of `what`.
pub(super) async fn change_one(
    transaction: &mut Transaction<'_>,
    what: &str,
    statement: Statement<'_>,
) -> Result<(), StoreError> {
    match change(transaction, statement).await? {
        1 => Ok(()),
        changed => Err(StoreError::Failed(format!("a change of {what} matched {changed} rows"))),
    }
}

/// The rows that a statement finds, as `read` reads them.
pub(super) async fn all<T>(
    transaction: &mut Transaction<'_>,
    statement: Statement<'_>,
    read: impl Fn(&PgRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let rows = statement.fetch_all(&mut *transaction.connection).await;
    let rows = rows.map_err(|error| transaction.failed(error))?;
    rows.iter().map(read).collect()
}

/// The first row that a statement finds, if there is one.
pub(super) async fn one<T>(
    transaction: &mut Transaction<'_>,
    statement: Statement<'_>,
    read: impl FnOnce(&PgRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let row = statement.fetch_optional(&mut *transaction.connection).await;
    let row = row.map_err(|error| transaction.failed(error))?;
    row.as_ref().map(read).transpose()
}
