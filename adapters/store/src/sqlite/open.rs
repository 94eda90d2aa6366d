//! Opens a database: its directory, its lock, its schema.

use std::{
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use rejoinder_core::{SharedClock, SystemClock};
use sqlx::{ConnectOptions, Connection};

use super::{
    connections::{counter, operator_readers, reader_options, readers, schema_options},
    error::OpenError,
    lock::{Lock, beside, is_in_use},
    schema::{schema_version, version},
    store::SqliteStore,
    writer::{Database, Writer},
};
use crate::shared::transcripts::Transcripts;

/// Which database to open, and how.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The database file; it and its directory are created when they do not exist.
    pub path: PathBuf,
    /// The clock for queries that pass no time.
    pub clock: SharedClock,
    /// How long a write waits for another program that has locked the database.
    pub busy_timeout: Duration,
}

impl OpenOptions {
    /// The database at `path`, on the machine's clock.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), clock: Arc::new(SystemClock), busy_timeout: Duration::from_secs(5) }
    }
}

impl SqliteStore {
    /// Opens a database for reading and writing, and updates its schema. Only one process at a time can do so.
    ///
    /// # Errors
    /// When it is in use, cannot be read or written, or was written by a newer version.
    pub async fn open(options: OpenOptions) -> Result<Self, OpenError> {
        let OpenOptions { path, clock, busy_timeout } = options;
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            let mut builder = std::fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|source| OpenError::Directory { path: directory.to_owned(), source })?;
        }
        match check_origin(&path).await {
            Err(OpenError::Missing { .. }) => {}
            checked => checked?,
        }
        let lock = Lock::acquire(&path).await?;
        Self::open_locked(Arc::new(lock), clock, busy_timeout).await
    }

    async fn open_locked(lock: Arc<Lock>, clock: SharedClock, busy_timeout: Duration) -> Result<Self, OpenError> {
        let path = lock.path().to_owned();
        let writer =
            Writer::start(Database::open(lock, Arc::clone(&clock), busy_timeout).await?).map_err(OpenError::Thread)?;
        let options = reader_options(&path, busy_timeout, false);
        Ok(Self {
            readers: readers(options.clone()),
            operator: operator_readers(options.clone()),
            counter: counter(options),
            writer: Some(writer),
            clock,
            transcripts: Transcripts::default(),
            drafts: Mutex::default(),
        })
    }

    /// Opens a database that this process has open a second time, with a writer of its own. What each keeps in memory, lines of
    /// transcripts and settings of runs, does not follow what the other one writes.
    ///
    /// # Errors
    /// When it cannot be read or written.
    ///
    /// # Panics
    /// If `self` is closed, or only reads.
    #[cfg(feature = "testing")]
    pub async fn another(&self) -> Result<Self, OpenError> {
        let lock = self.writer.as_ref().and_then(|writer| writer.lock.upgrade());
        let lock = lock.expect("it is open for writing");
        Self::open_locked(lock, Arc::clone(&self.clock), Duration::from_secs(5)).await
    }

    /// Opens a database for reading, also while another process has it open for writing.
    ///
    /// # Errors
    /// When it does not exist yet, cannot be read, or has another schema version than this program's.
    pub async fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        check_origin(path).await?;
        // With no writer and no log to read, the file is opened as immutable: SQLite then creates no files beside it.
        let is_at_rest = !is_in_use(path).unwrap_or(true) && !beside(path, "-wal").exists();
        let options = reader_options(path, Duration::from_secs(5), is_at_rest);
        let (readers, operator) = (readers(options.clone()), operator_readers(options.clone()));
        let mut connection = readers.acquire().await.map_err(|source| OpenError::database(path, source))?;
        let found = version(&mut connection).await.map_err(|source| OpenError::database(path, source))?;
        drop(connection);
        match (found, schema_version()) {
            (found, known) if found > known => Err(OpenError::Newer { path: path.to_owned(), found, known }),
            (found, known) if found < known => Err(OpenError::Older { path: path.to_owned(), found, known }),
            _ => Ok(Self {
                readers,
                operator,
                counter: counter(options),
                writer: None,
                clock: Arc::new(SystemClock),
                transcripts: Transcripts::default(),
                drafts: Mutex::default(),
            }),
        }
    }
}

/// Fails if there is no database, only its log, or one that another program made. Changes nothing, and creates no file.
pub(super) async fn check_origin(path: &Path) -> Result<(), OpenError> {
    let missing = || OpenError::Missing { path: path.to_owned() };
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && beside(path, "-wal").exists() => {
            return Err(OpenError::LogAlone { path: path.to_owned(), log: beside(path, "-wal") });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
        Ok(file) if file.len() == 0 && !beside(path, "-wal").exists() => return Err(missing()),
        _ => {}
    }
    // A database that is in use was checked by the process that uses it.
    if is_in_use(path).unwrap_or(true) || beside(path, "-wal").exists() {
        return Ok(());
    }
    let failed = |source| OpenError::database(path, source);
    let mut connection = reader_options(path, Duration::ZERO, true).connect().await.map_err(failed)?;
    let sql = "select count(*) from sqlite_master where name not like 'sqlite_%' and name <> '_sqlx_migrations'";
    let found = async {
        let tables: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
        Ok((version(&mut connection).await?, tables))
    };
    let found = found.await;
    connection.close().await.map_err(failed)?;
    match found.map_err(failed)? {
        (0, 0) => Err(missing()),
        (0, _) => Err(OpenError::Foreign { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Compacts a database: writes it anew, without free pages.
///
/// # Errors
/// When it is in use or cannot be written, for example because the disk is full. It is unchanged then.
pub async fn vacuum(path: &Path) -> Result<(), OpenError> {
    check_origin(path).await?;
    let lock = Lock::take(path)?;
    let path = lock.path();
    let failed = |source| OpenError::database(path, source);
    let options = schema_options(path, Duration::from_secs(5));
    let mut connection = options.connect().await.map_err(failed)?;
    for sql in ["vacuum", "pragma wal_checkpoint(truncate)"] {
        sqlx::query(sql).execute(&mut connection).await.map_err(failed)?;
    }
    connection.close().await.map_err(failed)?;
    drop(lock);
    Ok(())
}

/// Copies any SQLite database into the new file `to`, as it is at one moment, also while another process writes to it. The copy
/// has no free pages and no log.
///
/// # Errors
/// When it cannot be read, or the copy cannot be written.
pub async fn copy(from: &Path, to: &Path) -> Result<(), OpenError> {
    if !from.try_exists().unwrap_or(true) {
        return Err(OpenError::Missing { path: from.to_owned() });
    }
    let failed = |source| OpenError::database(from, source);
    let options = reader_options(from, Duration::from_secs(5), false);
    let mut connection = options.connect().await.map_err(failed)?;
    let copied = sqlx::query("vacuum into ?").bind(to.display().to_string()).execute(&mut connection).await;
    connection.close().await.map_err(failed)?;
    copied.map(drop).map_err(failed)
}

/// Checks a database that no process has open: its pages and indexes, and the references between its rows. Returns what is
/// wrong, at most a few lines.
///
/// # Errors
/// When it cannot be read at all.
pub async fn faults(path: &Path) -> Result<Vec<String>, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let options = reader_options(path, Duration::ZERO, true);
    let mut connection = options.connect().await.map_err(failed)?;
    let found = async {
        let mut faults: Vec<String> =
            sqlx::query_scalar("pragma integrity_check(5)").fetch_all(&mut connection).await?;
        faults.retain(|fault| fault != "ok");
        let sql = "select distinct \"table\", parent from pragma_foreign_key_check";
        for (table, parent) in sqlx::query_as::<_, (String, String)>(sql).fetch_all(&mut connection).await? {
            faults.push(format!("a row of {table} refers to a missing row of {parent}"));
        }
        Ok(faults)
    };
    let found = found.await;
    connection.close().await.map_err(failed)?;
    found.map_err(failed)
}

/// Ends all sessions of the operator's page and of chat pages, and the links that open one, in a database that no process has open.
///
/// # Errors
/// When it cannot be written.
pub async fn end_sign_ins(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    // Whatever its journal is, it stays so.
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.map_err(failed)?;
    let ended = async {
        let sql = "select count(*) from sqlite_master where type = 'table' and name = ?";
        let tables = [
            ("sign_ins", "delete from sign_ins"),
            ("sign_in_links", "delete from sign_in_links"),
            ("visits", "delete from visits"),
            ("invitations", "delete from invitations"),
        ];
        for (table, remove) in tables {
            // Older versions had none.
            if sqlx::query_scalar::<_, i64>(sql).bind(table).fetch_one(&mut connection).await? > 0 {
                sqlx::query(remove).execute(&mut connection).await?;
            }
        }
        Ok(())
    };
    let ended = ended.await;
    connection.close().await.map_err(failed)?;
    ended.map_err(failed)
}

/// The schema version of the database at `path`, which no process has open.
///
/// # Errors
/// When it cannot be read.
pub async fn schema_version_of(path: &Path) -> Result<i64, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let mut connection = reader_options(path, Duration::ZERO, true).connect().await.map_err(failed)?;
    let found = version(&mut connection).await;
    connection.close().await.map_err(failed)?;
    found.map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{FutureExt, future::join_all};
    use rejoinder_core::{
        ChannelId, Lifetimes, StoreError, Timestamp, TurnId,
        store::{Cutoffs, HousekeepingStore, OperatorStore, StoreState, TurnFilter, TurnListState, TurnStore},
    };
    use sqlx::{ConnectOptions, SqlitePool, sqlite::SqlitePoolOptions};

    use super::*;
    use crate::sqlite::{
        connections::{limited_readers, schema_options},
        error::store_error,
        read,
    };

    /// A database of another program stays as it is, whichever command opens it.
    #[tokio::test]
    async fn what_another_program_stores_is_not_touched() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let path = directory.path().join("photos.db");
        rusqlite::Connection::open(&path)
            .and_then(|it| it.execute_batch("create table turns (x)"))
            .expect("it is made");
        let before = std::fs::read(&path).expect("it is read");

        let opened = SqliteStore::open(OpenOptions::new(&path)).await.err();
        let read = SqliteStore::open_read_only(&path).await.err();
        let compacted = vacuum(&path).await.err();

        for error in [opened, read, compacted] {
            assert!(matches!(error, Some(OpenError::Foreign { .. })), "{error:?}");
        }
        assert_eq!(std::fs::read(&path).expect("it is read"), before);
        assert_eq!(std::fs::read_dir(directory.path()).expect("it is read").count(), 1);
    }

    /// What the log holds would be lost, or mixed into another database.
    #[tokio::test]
    async fn without_its_database_a_log_is_left_alone() {
        let (store, directory) = store().await;
        store.close().await;
        let path = directory.path().join("rejoinder.db");
        std::fs::rename(&path, directory.path().join("rejoinder.db-wal")).expect("it is moved");

        let opened = SqliteStore::open(OpenOptions::new(&path)).await.err();
        let read = SqliteStore::open_read_only(&path).await.err();

        for error in [opened, read] {
            assert!(matches!(error, Some(OpenError::LogAlone { .. })), "{error:?}");
        }
        assert!(!path.exists());
    }

    /// A query that ends only when it is interrupted.
    const ENDLESS: &str = "with recursive n (i) as (select 1 union all select i + 1 from n) select max(i) from n";

    async fn store() -> (SqliteStore, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory is made");
        let options = OpenOptions::new(directory.path().join("rejoinder.db"));
        (SqliteStore::open(options).await.expect("the store opens"), directory)
    }

    async fn endless(pool: &SqlitePool) -> StoreError {
        let query = sqlx::query_scalar::<_, i64>(ENDLESS).fetch_one(pool);
        store_error(query.await.expect_err("the query has no end"))
    }

    #[tokio::test]
    async fn an_operator_whose_queries_have_no_end_holds_up_no_turn() {
        let (store, _directory) = store().await;
        let mut queries = join_all((0..8).map(|_| endless(&store.operator))).boxed();
        let turn = TurnId::new(store.clock.now());

        let read = tokio::select! {
            biased;
            errors = &mut queries => panic!("the turn waited: {errors:?}"),
            read = store.turn(turn) => read,
        };

        assert!(matches!(read, Ok(None)), "{read:?}");
    }

    #[tokio::test]
    async fn a_query_of_the_operator_that_takes_too_long_ends_and_the_next_one_has_its_own_time() {
        let (store, _directory) = store().await;
        let options = (*store.operator.connect_options()).clone();
        let limited = SqliteStore { operator: limited_readers(options, 1, Duration::from_millis(20)), ..store };

        for _ in 0..2 {
            let error = endless(&limited.operator).await;
            assert!(matches!(error, StoreError::TooSlow), "{error:?}");
        }
        limited.backlog().await.expect("the backlog is read in time");
    }

    #[tokio::test]
    async fn counting_all_rows_may_take_longer_than_any_other_query_of_the_operator() {
        let (store, directory) = store().await;
        let options = schema_options(&directory.path().join("rejoinder.db"), Duration::from_secs(5));
        let mut connection = options.connect().await.expect("it opens");
        let events = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000)
            insert into events (id, channel, chat, thread, external_id, revision, raw, received_at)
            select cast(printf('%016d', i) as blob), 'test.main', '', '', i, 1, 'raw', 0 from n";
        sqlx::query(events).execute(&mut connection).await.expect("it is written");
        let options = (*store.operator.connect_options()).clone();
        let limited = SqliteStore { operator: limited_readers(options, 1, Duration::ZERO), ..store };
        let lifetimes = Lifetimes { payloads: Some(Duration::ZERO), ..Lifetimes::default() };
        let cutoffs = Cutoffs::at(limited.clock.now(), &lifetimes);

        let stats = limited.stats(&cutoffs).await.expect("there is time");

        assert_eq!((stats.rows["events"], stats.expired.payloads), (20_000, 20_000));
    }

    /// Counts how many hundred instructions SQLite needs for a list.
    async fn cost(store: &SqliteStore, filter: TurnFilter) -> usize {
        let (cost, counted) = (Arc::new(AtomicUsize::new(0)), store.operator.connect_options());
        let options = SqlitePoolOptions::new().after_connect({
            let cost = Arc::clone(&cost);
            move |connection, _| {
                let cost = Arc::clone(&cost);
                Box::pin(async move {
                    connection.lock_handle().await?.set_progress_handler(100, move || {
                        cost.fetch_add(1, Ordering::Relaxed);
                        true
                    });
                    Ok(())
                })
            }
        });
        let pool = options.connect_lazy_with((*counted).clone());
        let filter = TurnFilter { limit: 50, ..filter };
        let found = read::list(&pool, &filter, Timestamp::from_millis(0)).await.expect("turns are listed");
        assert!(found.is_empty(), "{found:?}");
        cost.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn in_a_long_history_a_channel_and_a_time_are_found_without_reading_all_of_it() {
        let (store, directory) = store().await;
        let options =
            schema_options(&directory.path().join("rejoinder.db"), Duration::from_secs(5)).foreign_keys(false);
        let mut connection = options.connect().await.expect("it opens");
        // The ids are of the year 3647, by their first bytes.
        for sql in [
            "insert into conversations (id, channel, chat, thread, created_at) values (x'01', 'test.main', 'a', '', 0)",
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000)
            insert into turns (id, seq, conversation_id, session_id, agent, accepted_at, channel, owed, state, ended_at)
            select cast(printf('%016d', i) as blob), i, x'01', x'01', 'main', 1000, 'test.main', 1, 'settled', 1 from n",
        ] {
            sqlx::query(sql).execute(&mut connection).await.expect("it is written");
        }

        let all = TurnFilter { until: Some(Timestamp::from_millis(0)), ..TurnFilter::default() };
        let channels = Some(vec![ChannelId::new("test", "other")]);
        let of_another = TurnFilter { channels, state: Some(TurnListState::Settled), ..TurnFilter::default() };
        let later = TurnFilter { since: Some(Timestamp::from_millis(60_000_000_000_000)), ..TurnFilter::default() };
        let costs = (cost(&store, all).await, cost(&store, of_another).await, cost(&store, later).await);

        assert!(costs.0 > 30 && costs.1 < 3 && costs.2 < 3, "{costs:?}");
    }
}
