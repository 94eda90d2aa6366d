//! Connections that are opened when they are needed. One whose statement did not end is closed, never used again: what the database
//! does for it is not known.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rejoinder_core::StoreError;
use sqlx::{
    ConnectOptions, PgConnection,
    postgres::{PgConnectOptions, PgRow},
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

use super::{error::store_error, values::Statement};

/// Connections with the same purpose.
#[derive(Debug)]
pub(super) struct Connections {
    options: PgConnectOptions,
    /// How long a caller may use one, with the time that it waits for it.
    deadline: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
}

impl Connections {
    /// At most `number` connections.
    pub(super) fn new(options: PgConnectOptions, number: usize, deadline: Duration) -> Self {
        Self { options, deadline, permits: Semaphore::new(number), idle: Mutex::default() }
    }

    /// Takes a connection, for several statements of which each may see what was committed before it.
    pub(super) async fn take(&self) -> Result<Taken<'_>, StoreError> {
        let until = Instant::now() + self.deadline;
        let late = |_| StoreError::Unavailable("no connection to the database was free in time".to_owned());
        let permit = timeout_at(until, self.permits.acquire()).await.map_err(late)?;
        let permit = permit.map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = if let Some(connection) = idle {
            connection
        } else {
            let late = |_| StoreError::Unavailable("the database did not answer in time".to_owned());
            timeout_at(until, self.options.connect()).await.map_err(late)?.map_err(store_error)?
        };
        Ok(Taken { of: self, connection: Some(connection), is_usable: true, until, _permit: permit })
    }

    /// Closes them; callers that come later get an error.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle {
            // The database sees the end of the connection in any case.
            let _ = sqlx::Connection::close(connection).await;
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

    /// The rows that a statement finds, for those who leave out the ones that cannot be read.
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
#[derive(Debug)]
pub(super) struct Taken<'a> {
    of: &'a Connections,
    connection: Option<PgConnection>,
    is_usable: bool,
    until: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Taken<'_> {
    pub(super) async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        let until = self.until;
        let Some(connection) = &mut self.connection else {
            return Err(StoreError::Unavailable("the connection is closed".to_owned()));
        };
        // Until it is known how the statement ended: the caller may go, too.
        self.is_usable = false;
        let found = timeout_at(until, statement.fetch_all(connection)).await.map_err(|_| StoreError::TooSlow)?;
        // The database has answered, or the connection is gone.
        self.is_usable = found.as_ref().err().is_none_or(|error| error.as_database_error().is_some());
        found.map_err(store_error)
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
            self.of.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
