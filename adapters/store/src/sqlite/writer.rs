//! The one writer: a thread with the only connection that writes.
//!
//! It takes all waiting requests, writes them in one transaction, commits once, and answers every caller. New
//! requests queue while it commits. A request is written even when its caller is gone.

use std::{
    io,
    time::{Duration, Instant},
};

use rejoinder_core::StoreError;
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::{mpsc, oneshot};

use super::{
    error::{self, store_error},
    lock::Lock,
    request::{WriteRequest, WriteResult},
    write,
};

/// The most requests in one transaction, so that none waits long.
const BATCH: usize = 256;

/// The length of the writer's queue. When it is full, callers wait for room.
const WAITING: usize = 1024;

/// How long the writer is idle before it writes the log back.
const IDLE: Duration = Duration::from_millis(500);

#[derive(Debug)]
enum WriterCommand {
    Write(WriteRequest, Option<oneshot::Sender<Result<WriteResult, StoreError>>>),
    Close(oneshot::Sender<()>),
}

/// The handle of the writer's thread.
#[derive(Debug)]
pub(super) struct Writer(mpsc::Sender<WriterCommand>);

impl Writer {
    /// Starts the thread; `lock` is held until it has closed the database.
    pub(super) fn start(connection: SqliteConnection, options: SqliteConnectOptions, lock: Lock) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let database = Database { connection: Some(connection), options, lock, unsaved: false, must_reopen: false };
            runtime.block_on(run(receiver, database));
        })?;
        Ok(Self(sender))
    }

    /// Writes `request`, in one transaction with other callers' requests.
    pub(super) async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        self.0.send(WriterCommand::Write(request, Some(answer))).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Queues `request` without waiting for it. It is dropped when the queue is full or closed.
    pub(super) fn write_later(&self, request: WriteRequest) {
        let _ = self.0.try_send(WriterCommand::Write(request, None));
    }

    /// Ends the thread after the requests that are queued before; returns when the database is closed.
    pub(super) async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.0.send(WriterCommand::Close(answer)).await.is_ok() {
            // An error means that the thread has ended already.
            let _ = answered.await;
        }
    }
}

async fn run(mut receiver: mpsc::Receiver<WriterCommand>, mut database: Database) {
    let mut commands = Vec::with_capacity(BATCH);
    let mut closing = Vec::new();
    while closing.is_empty() {
        if database.unsaved {
            match tokio::time::timeout(IDLE, receiver.recv()).await {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(_) => {
                    database.checkpoint().await;
                    continue;
                }
            }
        } else {
            match receiver.recv().await {
                Some(command) => commands.push(command),
                None => break,
            }
        }
        while commands.len() < BATCH
            && let Ok(command) = receiver.try_recv()
        {
            commands.push(command);
        }

        let (mut requests, mut answers) = (Vec::with_capacity(commands.len()), Vec::with_capacity(commands.len()));
        for command in commands.drain(..) {
            match command {
                WriterCommand::Write(request, answer) => {
                    requests.push(request);
                    answers.push(answer);
                }
                WriterCommand::Close(answer) => closing.push(answer),
            }
        }
        for (answer, outcome) in answers.into_iter().zip(database.write(&requests).await) {
            match (answer, outcome) {
                // The caller may be gone.
                (Some(answer), outcome) => drop(answer.send(outcome)),
                (None, Ok(_)) => {}
                (None, Err(error)) => tracing::debug!(%error, "a background write failed"),
            }
        }
    }
    // From here on new requests fail. Queued ones fail when the receiver is dropped, after the database is closed.
    receiver.close();
    database.close().await;
    drop(database);
    drop(receiver);
    drop(closing);
}

/// The writing connection. It is reopened after its file failed.
struct Database {
    /// `None` once it is closed.
    connection: Option<SqliteConnection>,
    /// Whether the file failed, so that the connection must be reopened.
    must_reopen: bool,
    options: SqliteConnectOptions,
    /// Released once the connection is closed.
    lock: Lock,
    /// Whether something was written since the last checkpoint.
    unsaved: bool,
}

impl Database {
    /// Writes all of `requests` in one transaction. If that fails although the database is available, writes each
    /// in its own. The outcomes are in the order of the requests.
    async fn write(&mut self, requests: &[WriteRequest]) -> Vec<Result<WriteResult, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let started = Instant::now();
        let outcomes = match self.transaction(requests).await {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(error @ StoreError::Unavailable(_)) => requests.iter().map(|_| Err(error.clone())).collect(),
            Err(error) if requests.len() == 1 => vec![Err(error)],
            Err(error) => {
                tracing::warn!(%error, requests = requests.len(), "a batch failed, writing its requests one by one");
                let mut outcomes = Vec::with_capacity(requests.len());
                for request in requests {
                    outcomes.push(self.write_one(request).await);
                }
                outcomes
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        metrics::histogram!("rejoinder_store_batch_requests").record(requests.len() as f64);
        metrics::histogram!("rejoinder_store_batch_seconds").record(started.elapsed());
        outcomes
    }

    async fn write_one(&mut self, request: &WriteRequest) -> Result<WriteResult, StoreError> {
        let outcomes = self.transaction(std::slice::from_ref(request)).await?;
        outcomes.into_iter().next().ok_or_else(|| StoreError::Failed("a request had no outcome".to_owned()))
    }

    async fn transaction(&mut self, requests: &[WriteRequest]) -> Result<Vec<WriteResult>, StoreError> {
        if self.must_reopen {
            self.reopen().await?;
        }
        let Some(connection) = &mut self.connection else {
            return Err(StoreError::Unavailable("the store is closed".to_owned()));
        };
        match committed(connection, requests).await {
            Ok(outcomes) => {
                self.unsaved = true;
                Ok(outcomes)
            }
            Err(error) => {
                self.must_reopen = matches!(error, StoreError::Unavailable(_));
                // It is a plain error when SQLite has already rolled back by itself.
                if let Err(failed) = execute(connection, "rollback").await {
                    self.must_reopen |= !error::is_plain(&failed);
                }
                Err(error)
            }
        }
    }

    /// Replaces a connection whose file failed. The old one is closed after the new one is open: the last
    /// connection to close removes the index of the log, which readers need.
    async fn reopen(&mut self) -> Result<(), StoreError> {
        let connection = self.options.connect().await.map_err(store_error)?;
        tracing::debug!(path = %self.lock.path().display(), "database reopened");
        if let Some(old) = self.connection.replace(connection) {
            // Its errors are expected: they are why it is replaced.
            let _ = old.close().await;
        }
        self.must_reopen = false;
        Ok(())
    }

    /// Writes the log back into the database, as far as readers allow. No other connection does so: SQLite before
    /// 3.51.3 has a bug when two connections checkpoint at once.
    async fn checkpoint(&mut self) {
        self.unsaved = false;
        if let Some(connection) = &mut self.connection
            && let Err(error) = execute(connection, "pragma wal_checkpoint(passive)").await
        {
            tracing::debug!(%error, "checkpoint failed");
        }
    }

    async fn close(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            if let Err(error) = execute(&mut connection, "pragma wal_checkpoint(truncate)").await {
                tracing::debug!(%error, "checkpoint failed");
            }
            if let Err(error) = connection.close().await {
                tracing::warn!(%error, "closing the database failed");
            }
        }
    }
}

async fn committed(
    connection: &mut SqliteConnection,
    requests: &[WriteRequest],
) -> Result<Vec<WriteResult>, StoreError> {
    execute(connection, "begin immediate").await.map_err(store_error)?;
    let outcomes = write::all(connection, requests).await?;
    execute(connection, "commit").await.map_err(store_error)?;
    Ok(outcomes)
}

async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(sql).execute(connection).await.map(drop)
}
