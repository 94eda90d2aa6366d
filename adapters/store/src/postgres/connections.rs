//! Connections that are opened when they are needed. One whose statement did not end is closed, never used again: what the database
//! does for it is not known.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::StoreError;
use sqlx::{Connection as _, Execute as _, PgConnection, postgres::PgRow};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout, timeout_at},
};

use super::{
    error::{Fault, is_of_statement, late, store_error},
    hosts::Connector,
    values::Statement,
};

/// A connection that was not used for so long is tried before it is used: its server may have frozen, which no error tells.
const TRIAL_AFTER: Duration = Duration::from_secs(5);

/// How long its server has for an answer.
const TRIAL: Duration = Duration::from_secs(1);

/// Connections with the same purpose.
pub(super) struct Connections {
    connector: Connector,
    /// How long a caller may use one, with the time that it waits for it.
    deadline: Duration,
    /// The error of a statement that did not end in time.
    late: StoreError,
    permits: Semaphore,
    /// Each with the time since when it is idle.
    idle: Mutex<Vec<(PgConnection, Instant)>>,
}

impl Connections {
    /// At most `number` connections, for statements that are all quick: one that is late tells that the database is slow.
    pub(super) fn new(connector: Connector, number: usize, deadline: Duration) -> Self {
        Self { connector, deadline, late: late(), permits: Semaphore::new(number), idle: Mutex::default() }
    }

    /// Connections for statements of which some may be too slow.
    pub(super) fn for_slow(connector: Connector, number: usize, deadline: Duration) -> Self {
        Self { late: StoreError::TooSlow, ..Self::new(connector, number, deadline) }
    }

    /// Takes a connection, for several statements of which each may see what was committed before it.
    pub(super) async fn take(&self) -> Result<Taken<'_>, StoreError> {
        let until = Instant::now() + self.deadline;
        let late = |_| StoreError::Unavailable("no connection to the database was free in time".to_owned());
        let permit = timeout_at(until, self.permits.acquire()).await.map_err(late)?;
        let permit = permit.map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))?;
        let idle = self.try_idle().await;
        let is_reused = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect(until).await?,
        };
        Ok(Taken { of: self, connection: Some(connection), is_reused, is_usable: true, until, _permit: permit })
    }

    /// The connection that was used last, if its server still answers.
    async fn try_idle(&self) -> Option<PgConnection> {
        let (mut connection, since) = self.idle().pop()?;
        if since.elapsed() < TRIAL_AFTER || matches!(timeout(TRIAL, connection.ping()).await, Ok(Ok(()))) {
            return Some(connection);
        }
        // The others are most likely to the same server.
        self.idle().clear();
        None
    }

    async fn connect(&self, until: Instant) -> Result<PgConnection, StoreError> {
        timeout_at(until, self.connector.connect()).await.map_err(|_| late())?.map_err(store_error)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(PgConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes them; callers that come later get an error.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for (connection, _) in idle {
            // The database sees the end of the connection in any case.
            let _ = connection.close().await;
        }
    }

    /// Reads the rows that a statement finds.
    pub(super) async fn all<T>(
        &self,
        statement: Statement<'_>,
        read: impl Fn(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.rows(statement).await?.iter().map(read).collect()
    }

    /// The rows that a statement finds, for callers that leave out what cannot be read.
    pub(super) async fn rows(&self, statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        self.take().await?.rows(statement).await
    }

    /// Reads the first row that a statement finds, if there is one.
    pub(super) async fn one<T>(
        &self,
        statement: Statement<'_>,
        read: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.take().await?.one(statement, read).await
    }
}

/// A connection that somebody uses. It goes back when it is dropped, if it can be used again.
pub(super) struct Taken<'a> {
    of: &'a Connections,
    connection: Option<PgConnection>,
    /// Whether it was used before, and no statement has been answered since: it may have been lost meanwhile.
    is_reused: bool,
    is_usable: bool,
    until: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Taken<'_> {
    /// The rows that a statement finds. Such a statement may be executed twice: it only reads, or changes the same again.
    pub(super) async fn rows(&mut self, mut statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        let values = statement.take_arguments().map_err(|error| store_error(sqlx::Error::Encode(error)))?;
        let (sql, values) = (statement.sql(), values.unwrap_or_default());
        let is_reused = std::mem::take(&mut self.is_reused);
        let found = self.fetch(sqlx::query_with(sql.clone(), values.clone())).await?;
        if self.is_usable || !is_reused {
            return found.map_err(store_error);
        }
        // When the server ends, all are lost.
        self.of.idle().clear();
        self.connection = Some(self.of.connect(self.until).await?);
        self.fetch(sqlx::query_with(sql, values)).await?.map_err(store_error)
    }

    /// Executes a statement once. The error outside is that of one that did not end in time.
    async fn fetch(&mut self, statement: Statement<'_>) -> Result<sqlx::Result<Vec<PgRow>>, StoreError> {
        let Some(connection) = &mut self.connection else {
            return Err(StoreError::Unavailable("the connection is closed".to_owned()));
        };
        // Until it is known how the statement ended: the caller may go, too.
        self.is_usable = false;
        let found = timeout_at(self.until, statement.fetch_all(connection)).await;
        let found = found.map_err(|_| self.of.late.clone())?;
        self.is_usable = found.as_ref().err().is_none_or(|error| is_of_statement(error) && Fault::of(error).is_none());
        Ok(found)
    }

    /// Closes it: what it was used for has not ended, such as a transaction.
    pub(super) fn close(mut self) {
        self.is_usable = false;
    }

    pub(super) async fn all<T>(
        &mut self,
        statement: Statement<'_>,
        read: impl Fn(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.rows(statement).await?.iter().map(read).collect()
    }

    pub(super) async fn one<T>(
        &mut self,
        statement: Statement<'_>,
        read: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.rows(statement).await?.first().map(read).transpose()
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| self.is_usable) {
            let mut idle = self.of.idle();
            // While the lock is held: what closes them takes all that are idle then.
            if !self.of.permits.is_closed() {
                idle.push((connection, Instant::now()));
            }
        }
    }
}
