//! The one writer: a thread with the only connection that writes.
//!
//! It takes all waiting requests, writes them in one transaction, commits once, and answers every caller. New
//! requests queue while it commits. A request is written even when its caller is gone.

use std::{
    cell::RefCell,
    io,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rejoinder_core::{
    SharedClock, StoreError,
    store::{LogLine, LogSeq, STORED_LINES, Transition},
};
use rusqlite::Connection;
use sqlx::{ConnectOptions, Connection as _};
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    connections::{LOG_PAGES, OPERATOR_LIMIT, logged_page, open_writer, schema_options},
    error::{self, OpenError, store_error},
    lock::{Lock, beside},
    schema::migrate,
    write,
};
use crate::shared::{
    background::Background,
    known::KnownSettings,
    request::{WriteRequest, WriteResult},
    trouble::Trouble,
};

/// The most requests in one transaction that somebody waits for, so that none waits long.
const BATCH: usize = 256;

/// The length of the writer's queue. When it is full, callers wait for room.
const WAITING: usize = 1024;

/// The fewest requests together that are a crowd. The writer would wait for a few callers as long as they are busy elsewhere.
const CROWD: usize = 17;

/// The fewest requests that wait while others of a crowd are on their way.
const FEW: usize = 4;

/// How long a crowd waits for the others, so that a flush, and the pages that all requests touch, are written for more of them.
const COMPANY: Duration = Duration::from_micros(500);

/// How long after a write the writer looks for background ones.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long the writer is idle before it writes the log back.
const IDLE: Duration = Duration::from_millis(500);

/// How much the log holds, in bytes, when it is written back even though writes do not pause. Its file is about as large
/// from then on: overwriting costs a flush less than growing, which the file system must record.
const LOG_LIMIT: u64 = 16 << 20;

/// How much the log grows, in bytes, until the next try if readers keep it from being written back.
const LOG_STEP: u64 = 4 << 20;

/// How much the log holds, in bytes, when writes wait for readers.
const LOG_FULL: u64 = 40 << 20;

/// How long writes wait for readers before the log is full: longer than a query for a turn takes.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// How long writes wait for readers once the log is full: longer than a query of the operator may take.
const LONG_WAIT: Duration = OPERATOR_LIMIT.saturating_add(Duration::from_secs(1));

/// How long a caller waits for the database to be written anew before it is told that this goes on.
const COMPACTING: Duration = Duration::from_secs(5);

/// How often the writer checks, after a write has failed, whether there is room again.
const RECHECK: Duration = Duration::from_secs(1);

/// How much room there must be again, in bytes: a large message. On a nearly full disk a single page can often be written.
const ROOM: u32 = 1 << 20;

#[derive(Debug)]
enum WriterCommand {
    Write(WriteRequest, oneshot::Sender<Result<WriteResult, StoreError>>),
    /// Writes what waits in the background.
    WriteBackground,
    Compact(oneshot::Sender<Result<(), StoreError>>),
    Close(oneshot::Sender<()>),
}

/// The handle of the writer's thread.
#[derive(Debug)]
pub(super) struct Writer {
    commands: mpsc::Sender<WriterCommand>,
    background: Arc<Background>,
    /// Told when the database is written anew, while it is.
    compacting: Mutex<Option<oneshot::Receiver<Result<(), StoreError>>>>,
    /// Why writes fail now, if they do.
    pub(super) trouble: Trouble,
    /// The place of the last entry in the log.
    pub(super) logged: watch::Receiver<LogSeq>,
    /// Changes when what agents are owed does.
    pub(super) noticed: watch::Receiver<()>,
    /// Cancelled when the thread has panicked.
    pub(super) panicked: CancellationToken,
    /// The lock that the database holds until it is closed.
    #[cfg(feature = "testing")]
    pub(super) lock: std::sync::Weak<Lock>,
}

impl Writer {
    pub(super) fn start(database: Database) -> io::Result<Self> {
        let (commands, receiver) = mpsc::channel(WAITING);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let panicked = CancellationToken::new();
        let (trouble, logged) = (database.trouble.clone(), database.logged.subscribe());
        let noticed = database.noticed.subscribe();
        let background = Arc::<Background>::default();
        let writer = Self {
            commands,
            background: Arc::clone(&background),
            compacting: Mutex::default(),
            trouble,
            logged,
            noticed,
            panicked: panicked.clone(),
            #[cfg(feature = "testing")]
            lock: Arc::downgrade(&database.lock),
        };
        std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let run = AssertUnwindSafe(|| runtime.block_on(run(receiver, &background, database)));
            if std::panic::catch_unwind(run).is_err() {
                panicked.cancel();
            }
        })?;
        Ok(writer)
    }

    /// Writes `request`, in one transaction with other callers' requests.
    pub(super) async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        self.commands.send(WriterCommand::Write(request, answer)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Queues `request` without waiting for it: it is written with the next request that somebody waits for, or soon. It is
    /// dropped when too many wait, or the writer is closed.
    pub(super) fn write_later(&self, request: WriteRequest) {
        if self.background.add(request) {
            // If the queue is full, the writer is awake, and looks after its next write.
            let _ = self.commands.try_send(WriterCommand::WriteBackground);
        }
    }

    /// Writes the database anew, without what deleted rows left in it. `false` if that still goes on after a while: call it
    /// again.
    pub(super) async fn compact(&self) -> Result<bool, StoreError> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let mut compacting = self.compacting.lock().await;
        if compacting.is_none() {
            let (answer, answered) = oneshot::channel();
            self.commands.send(WriterCommand::Compact(answer)).await.map_err(|_| closed())?;
            *compacting = Some(answered);
        }
        let Some(answered) = &mut *compacting else { return Ok(true) };
        let Ok(compacted) = timeout(COMPACTING, answered).await else { return Ok(false) };
        *compacting = None;
        compacted.map_err(|_| closed())?.map(|()| true)
    }

    pub(super) async fn is_compacting(&self) -> bool {
        self.compacting.lock().await.is_some()
    }

    /// Ends the thread after the requests that are queued before; returns when the database is closed.
    pub(super) async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.commands.send(WriterCommand::Close(answer)).await.is_ok() {
            // An error means that the thread has ended already.
            let _ = answered.await;
        }
    }
}

async fn run(mut receiver: mpsc::Receiver<WriterCommand>, background: &Background, mut database: Database) {
    let mut commands = Vec::with_capacity(BATCH);
    let (mut closing, mut compacting) = (Vec::new(), Vec::new());
    // How many commands came together last.
    let mut last = 0;
    // When to look for background requests.
    let mut look_at: Option<Instant> = None;
    while closing.is_empty() {
        let upkeep_at = database.upkeep_at();
        if upkeep_at.is_some_and(|at| at <= Instant::now()) {
            database.keep_up();
            continue;
        }
        let next = match upkeep_at.into_iter().chain(look_at).min() {
            Some(at) => timeout_at(at, receiver.recv()).await,
            None => Ok(receiver.recv().await),
        };
        let is_closed = matches!(next, Ok(None));
        match next {
            Ok(command) => commands.extend(command),
            Err(_) if look_at.is_none_or(|at| at > Instant::now()) => continue,
            Err(_) => {}
        }
        take(&mut receiver, &mut commands);
        if last >= CROWD && (FEW..last).contains(&commands.len()) {
            // Not a timer of the runtime: that is exact to a millisecond, and would wake the thread for each request.
            std::thread::sleep(COMPANY);
            take(&mut receiver, &mut commands);
        }
        last = commands.len();
        let is_idle = commands.is_empty();
        let (mut requests, mut answers) = (Vec::with_capacity(commands.len()), Vec::with_capacity(commands.len()));
        for command in commands.drain(..) {
            match command {
                WriterCommand::Write(request, answer) => {
                    requests.push(request);
                    answers.push(answer);
                }
                WriterCommand::WriteBackground => {}
                WriterCommand::Compact(answer) => compacting.push(answer),
                WriterCommand::Close(answer) => closing.push(answer),
            }
        }
        // Background requests come last: they may be about what the others write.
        if !background.take(is_idle, &mut requests) && is_idle {
            if is_closed {
                break;
            }
            look_at = None;
            continue;
        }
        let mut outcomes = database.write(&requests).into_iter();
        // `zip` asks the answers first: at their end it takes no outcome of a background request.
        for (answer, outcome) in answers.into_iter().zip(&mut outcomes) {
            // The caller may be gone.
            let _ = answer.send(outcome);
        }
        for error in outcomes.filter_map(Result::err) {
            tracing::debug!(%error, "a background write failed");
        }
        look_at = Some(Instant::now() + PATIENCE);
        database.limit_log();
        if !compacting.is_empty() {
            let compacted = database.compact();
            for answer in compacting.drain(..) {
                let _ = answer.send(compacted.clone());
            }
        }
    }
    // From here on new requests fail. Queued ones fail when the receiver is dropped, after the database is closed.
    receiver.close();
    database.close();
    drop(database);
    drop(receiver);
    drop(closing);
}

/// Takes the requests that wait, as far as they fit into a transaction.
fn take(receiver: &mut mpsc::Receiver<WriterCommand>, commands: &mut Vec<WriterCommand>) {
    while commands.len() < BATCH
        && let Ok(command) = receiver.try_recv()
    {
        commands.push(command);
    }
}

/// The writing connection. It is reopened after its file failed.
pub(super) struct Database {
    /// `None` once it is closed.
    connection: Option<Connection>,
    /// Whether the file failed, so that the connection must be reopened.
    must_reopen: bool,
    open: fn(&Path, Duration) -> rusqlite::Result<Connection>,
    /// Released once the connection is closed.
    lock: Arc<Lock>,
    trouble: Trouble,
    /// The clock of what the store logs itself.
    clock: SharedClock,
    /// The place of the last entry in the log of events, as of the last commit.
    logged: watch::Sender<LogSeq>,
    noticed: watch::Sender<()>,
    /// The settings of runs that are stored, as of the last commit.
    settings: RefCell<KnownSettings>,
    /// When the log is written back, unless something is written before; `None` if nothing was written since.
    checkpoint_at: Option<Instant>,
    log: PathBuf,
    /// The size of a page in the log, in bytes.
    logged_page: u64,
    /// How much the log holds, in bytes, when it is written back next.
    log_limit: u64,
    /// How long a write waits for another program that has locked the database.
    busy_timeout: Duration,
    /// While writes fail: when to check whether there is room again.
    recheck_at: Option<Instant>,
}

impl Database {
    /// Connects to the locked database and updates its schema.
    pub(super) async fn open(lock: Arc<Lock>, clock: SharedClock, busy_timeout: Duration) -> Result<Self, OpenError> {
        let (path, log) = (lock.path(), beside(lock.path(), "-wal"));
        let failed = |source| OpenError::database(path, source);
        let mut schema = schema_options(path, busy_timeout).connect().await.map_err(failed)?;
        let migrated = migrate(&mut schema, path).await;
        // The error of the migration is the one to report.
        let closed = schema.close().await;
        migrated?;
        closed.map_err(failed)?;
        let failed = |source| OpenError::database(path, source);
        let connection = open_writer(path, busy_timeout).map_err(failed)?;
        let logged_page = logged_page(&connection).map_err(failed)?;
        let last =
            connection.query_row("select coalesce(max(seq), 0) from log", [], |row| row.get(0)).map_err(failed)?;
        Ok(Self {
            connection: Some(connection),
            must_reopen: false,
            open: open_writer,
            lock,
            trouble: Trouble::default(),
            clock,
            logged: watch::Sender::new(last),
            noticed: watch::Sender::new(()),
            settings: RefCell::default(),
            log,
            logged_page,
            log_limit: LOG_LIMIT,
            busy_timeout,
            checkpoint_at: None,
            recheck_at: None,
        })
    }

    /// Writes all of `requests` in one transaction. If that fails although the database is available, writes each
    /// in its own. The outcomes are in the order of the requests.
    fn write(&mut self, requests: &[WriteRequest]) -> Vec<Result<WriteResult, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        #[cfg(feature = "crash-points")]
        if requests.iter().any(|request| matches!(request, WriteRequest::Accept { events, .. } if !events.is_empty())) {
            assert!(!rejoinder_core::crash_point_is_reached("writing_events"), "a crash point of a test");
        }
        let started = Instant::now();
        let outcomes = match self.transaction(requests) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(error @ StoreError::Unavailable(_)) => requests.iter().map(|_| Err(error.clone())).collect(),
            Err(error) if requests.len() == 1 => vec![Err(error)],
            Err(error) => {
                tracing::warn!(%error, requests = requests.len(), "a batch failed, writing its requests one by one");
                let mut outcomes = Vec::with_capacity(requests.len());
                for request in requests {
                    outcomes.push(self.write_one(request));
                }
                outcomes
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        metrics::histogram!("rejoinder_store_batch_requests").record(requests.len() as f64);
        metrics::histogram!("rejoinder_store_batch_seconds").record(started.elapsed());
        outcomes
    }

    fn write_one(&mut self, request: &WriteRequest) -> Result<WriteResult, StoreError> {
        let outcomes = self.transaction(std::slice::from_ref(request))?;
        outcomes.into_iter().next().ok_or_else(|| StoreError::Failed("a request had no outcome".to_owned()))
    }

    fn transaction(&mut self, requests: &[WriteRequest]) -> Result<Vec<WriteResult>, StoreError> {
        let is_file_gone = !self.lock.is_in_place();
        let result = if is_file_gone {
            let path = self.lock.path().display();
            let what = "was deleted, moved or replaced while the gateway runs; what it wrote now would be lost";
            Err(StoreError::Unavailable(format!("the database {path} {what}")))
        } else {
            self.transact(requests)
        };
        match &result {
            Ok(_) => self.checkpoint_at = Some(Instant::now() + IDLE),
            Err(error @ StoreError::Unavailable(_)) => {
                self.trouble.begin(error, is_file_gone, self.clock.now());
                self.recheck_at.get_or_insert_with(|| Instant::now() + RECHECK);
            }
            Err(_) => {}
        }
        result
    }

    fn transact(&mut self, requests: &[WriteRequest]) -> Result<Vec<WriteResult>, StoreError> {
        if self.must_reopen {
            self.reopen()?;
        }
        let Some(connection) = &self.connection else {
            return Err(StoreError::Unavailable("the store is closed".to_owned()));
        };
        let result = committed(connection, &self.settings, requests);
        if let Ok(written) = &result {
            if let Some(last) = written.logged {
                self.logged.send_replace(last);
            }
            if written.noticed {
                self.noticed.send_replace(());
            }
            for LogLine { message, fields, .. } in &written.told {
                tracing::error!(target: STORED_LINES, fields = %serde_json::Value::from(fields.clone()), "{message}");
            }
        }
        if let Err(error) = &result {
            self.settings.take();
            self.must_reopen = matches!(error, StoreError::Unavailable(_));
            // It is a plain error when SQLite has already rolled back by itself.
            if let Err(failed) = execute(connection, "rollback") {
                self.must_reopen |= !error::is_plain(&failed);
            }
        }
        result.map(|written| written.outcomes)
    }

    /// When [`keep_up`](Self::keep_up) has something to do.
    fn upkeep_at(&self) -> Option<Instant> {
        [self.checkpoint_at, self.recheck_at].into_iter().flatten().min()
    }

    /// Does what is due: a checkpoint, or a check whether there is room again.
    fn keep_up(&mut self) {
        let now = Instant::now();
        if self.checkpoint_at.take_if(|at| *at <= now).is_some() {
            self.checkpoint();
        }
        if self.recheck_at.is_some_and(|at| at <= now) {
            self.recheck_at = Some(now + RECHECK);
            let log = self.trouble.logged(self.clock.now());
            let outage = WriteRequest::Commit(Box::new(Transition { log, ..Transition::default() }));
            if self.transaction(&[WriteRequest::Probe { room: ROOM }, outage]).is_ok() {
                self.recheck_at = None;
                self.trouble.end();
            }
        }
    }

    /// Replaces a connection whose file failed. The old one is closed after the new one is open: the last
    /// connection to close removes the index of the log, which readers need.
    fn reopen(&mut self) -> Result<(), StoreError> {
        let connection = (self.open)(self.lock.path(), self.busy_timeout).map_err(store_error)?;
        tracing::debug!(path = %self.lock.path().display(), "database reopened");
        if let Some(old) = self.connection.replace(connection) {
            // Its errors are expected: they are why it is replaced.
            let _ = old.close();
        }
        self.must_reopen = false;
        Ok(())
    }

    /// Writes the log back into the database, as far as readers allow. No other connection does so: SQLite before
    /// 3.51.3 has a bug when two connections checkpoint at once.
    fn checkpoint(&mut self) {
        // Its file has grown while somebody read for long.
        let is_large = self.log.metadata().is_ok_and(|file| file.len() >= LOG_LIMIT + LOG_STEP);
        let checkpointed = if is_large {
            self.write_back("pragma wal_checkpoint(truncate)", SHORT_WAIT)
        } else if let Some(connection) = &self.connection {
            checkpoint(connection, "pragma wal_checkpoint(passive)")
        } else {
            return;
        };
        match checkpointed {
            Ok(true) if is_large => self.log_limit = LOG_LIMIT,
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "checkpoint failed"),
        }
    }

    /// Writes back a log that has grown large although writes do not pause, so that it starts again from its beginning.
    /// For that, every reader must have ended that began before. The writer waits only briefly, and longer once the log
    /// is full.
    fn limit_log(&mut self) {
        let size = LOG_PAGES.get() * self.logged_page;
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        metrics::gauge!("rejoinder_store_log_bytes").set(size as f64);
        if size < self.log_limit {
            return;
        }
        let is_full = size >= LOG_FULL;
        match self.write_back("pragma wal_checkpoint(restart)", if is_full { LONG_WAIT } else { SHORT_WAIT }) {
            Ok(true) => (self.log_limit, self.checkpoint_at) = (LOG_LIMIT, None),
            Ok(false) if is_full => {
                tracing::warn!(
                    bytes = size,
                    "the database's log grows: something reads for long, perhaps another program"
                );
                self.log_limit = size * 2;
            }
            Ok(false) => self.log_limit = size + LOG_STEP,
            Err(error) => {
                tracing::debug!(%error, "checkpoint failed");
                self.log_limit = size + LOG_STEP;
            }
        }
    }

    /// Writes the whole log back; `false` if a reader did not end in time.
    fn write_back(&mut self, pragma: &'static str, wait: Duration) -> rusqlite::Result<bool> {
        let Some(connection) = &self.connection else { return Ok(false) };
        connection.busy_timeout(wait)?;
        let is_complete = checkpoint(connection, pragma);
        if let Err(error) = connection.busy_timeout(self.busy_timeout) {
            self.must_reopen = true;
            return Err(error);
        }
        if matches!(is_complete, Ok(true)) {
            LOG_PAGES.set(0);
        }
        is_complete
    }

    /// Writes the database anew, and empties the log: nothing is left of deleted rows.
    fn compact(&mut self) -> Result<(), StoreError> {
        if self.must_reopen {
            self.reopen()?;
        }
        let Some(connection) = &self.connection else {
            return Err(StoreError::Unavailable("the store is closed".to_owned()));
        };
        // The copy is as large as the database: not in memory.
        let compacted = connection
            .execute_batch("pragma temp_store = file; vacuum;")
            .and_then(|()| connection.execute_batch("pragma temp_store = memory"));
        compacted.map_err(store_error)?;
        if self.write_back("pragma wal_checkpoint(truncate)", LONG_WAIT).map_err(store_error)? {
            Ok(())
        } else {
            Err(StoreError::Failed("another program reads the database: try again".to_owned()))
        }
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            if let Err(error) = checkpoint(&connection, "pragma wal_checkpoint(truncate)") {
                tracing::debug!(%error, "checkpoint failed");
            }
            if let Err((_, error)) = connection.close() {
                tracing::warn!(%error, "closing the database failed");
            }
        }
    }
}

/// What requests have written.
struct Written {
    outcomes: Vec<WriteResult>,
    /// The place of the last entry that they added to the log of events.
    logged: Option<LogSeq>,
    /// Whether what agents are owed has changed.
    noticed: bool,
    /// Lines that they have stored, for standard error.
    told: Vec<LogLine>,
}

fn committed(
    connection: &Connection,
    settings: &RefCell<KnownSettings>,
    requests: &[WriteRequest],
) -> Result<Written, StoreError> {
    execute(connection, "begin immediate").map_err(store_error)?;
    let transaction = write::Transaction::new(connection, settings);
    let outcomes = requests.iter().map(|request| write::request(&transaction, request)).collect::<Result<_, _>>()?;
    let (logged, noticed, told) = (transaction.logged(), transaction.noticed(), transaction.told());
    drop(transaction);
    execute(connection, "commit").map_err(store_error)?;
    Ok(Written { outcomes, logged, noticed, told })
}

/// Writes the log back; `false` if not all of it, because of a reader.
fn checkpoint(connection: &Connection, pragma: &'static str) -> rusqlite::Result<bool> {
    // The first column: 1 if it could not complete.
    connection.query_row(pragma, [], |row| row.get::<_, bool>(0)).map(|was_busy| !was_busy)
}

fn execute(connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use rejoinder_core::SystemClock;

    use super::*;

    /// Waits for nothing: the check is due now.
    fn recheck(database: &mut Database) {
        database.recheck_at = database.recheck_at.map(|_| Instant::now());
        database.keep_up();
    }

    /// The topics in the log of events.
    fn logged(database: &Database) -> Vec<String> {
        let connection = database.connection.as_ref().expect("it is open");
        let mut topics = connection.prepare("select topic from log order by seq").expect("it is read");
        let topics = topics.query_map([], |row| row.get(0)).expect("it is read");
        topics.collect::<Result<_, _>>().expect("it is read")
    }

    #[tokio::test]
    async fn trouble_lasts_until_there_is_room_for_more_than_a_page() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let lock = Lock::take(&directory.path().join("rejoinder.db")).expect("it is locked");
        let mut database =
            Database::open(Arc::new(lock), Arc::new(SystemClock), Duration::ZERO).await.expect("it opens");
        let write = |database: &mut Database, room| database.write_one(&WriteRequest::Probe { room });
        database.open = |path, busy_timeout| {
            let connection = open_writer(path, busy_timeout)?;
            // The schema has less than half of them.
            connection.query_row("pragma max_page_count = 300", [], |_| Ok(()))?;
            Ok(connection)
        };
        database.must_reopen = true;

        let large = write(&mut database, 4 << 20);
        assert!(matches!(large, Err(StoreError::Unavailable(_))), "{large:?}");
        write(&mut database, 0).expect("there is room for a page");
        recheck(&mut database);
        assert!(database.trouble.error().is_some());

        database.open = open_writer;
        database.must_reopen = true;
        recheck(&mut database);
        assert!(database.trouble.error().is_none());
        assert!(database.recheck_at.is_none());
        assert_eq!(logged(&database), ["store.down", "store.up"]);
        write(&mut database, 4 << 20).expect("there is room again");
    }

    /// What another program read for long is no reason to keep a large log for ever.
    #[tokio::test]
    async fn a_log_that_a_reader_kept_is_empty_after_the_next_pause() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let lock = Lock::take(&directory.path().join("rejoinder.db")).expect("it is locked");
        let mut database =
            Database::open(Arc::new(lock), Arc::new(SystemClock), Duration::ZERO).await.expect("it opens");
        let reader = open_writer(database.lock.path(), Duration::ZERO).expect("it opens");
        reader.execute_batch("begin; select * from probe").expect("it reads");

        database.write_one(&WriteRequest::Probe { room: 21 << 20 }).expect("it writes");
        database.limit_log();
        let size = |database: &Database| database.log.metadata().expect("there is a log").len();
        let kept = size(&database);
        reader.execute_batch("commit").expect("it ends");
        database.checkpoint();

        assert!(kept > LOG_LIMIT && size(&database) == 0, "{kept}, {}", size(&database));
        assert_eq!(database.log_limit, LOG_LIMIT);
    }

    /// The file system records how a file grows: that costs more than a flush.
    #[tokio::test]
    async fn a_log_that_reached_its_limit_is_overwritten_and_not_grown_again() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let lock = Lock::take(&directory.path().join("rejoinder.db")).expect("it is locked");
        let mut database =
            Database::open(Arc::new(lock), Arc::new(SystemClock), Duration::ZERO).await.expect("it opens");
        let mut write = |number: u32| {
            // Pages that stay the same would not be written.
            database.write_one(&WriteRequest::Probe { room: (3 << 20) + number }).expect("it writes");
            database.limit_log();
            database.log.metadata().expect("there is a log").len()
        };

        let sizes: Vec<u64> = (0..20).map(&mut write).collect();

        assert!(sizes.is_sorted(), "{sizes:?}");
        assert!(sizes[19] >= LOG_LIMIT && sizes[19] < LOG_LIMIT + LOG_STEP, "{sizes:?}");
    }
}
