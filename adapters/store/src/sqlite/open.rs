//! Opens a database: its directory, its lock, its schema.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use rejoinder_core::{SharedClock, SystemClock};
use sqlx::{
    ConnectOptions, Connection, SqlSafeStr, SqliteConnection, SqlitePool,
    migrate::{Migration, MigrationType, Migrator},
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    error,
    lock::{Lock, beside, is_in_use},
    store::SqliteStore,
    transcripts::Transcripts,
    writer::{Database, Writer},
};

/// Not `sqlx::migrate!`, which alone would need SQLx's macros: a second SQLx, Tokio and SQLite, for the compiler.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let initial = include_str!("../../../../migrations/sqlite/0001_initial.sql");
    Migrator::with_migrations(vec![Migration::new(
        1,
        "initial".into(),
        MigrationType::Simple,
        initial.into_sql_str(),
        false,
    )])
});

/// How many connections read for turns.
const READERS: u32 = 3;

/// How many connections read for the operator.
const OPERATOR_READERS: u32 = 2;

/// How long a query of the operator may take. While it reads, the log cannot start again from its beginning.
pub(super) const OPERATOR_LIMIT: Duration = Duration::from_secs(3);

/// How many instructions of SQLite's virtual machine pass between two looks at the time.
const LIMIT_CHECK: i32 = 10_000;

/// How long to wait before the second try at the lock: `is_in_use` in another process holds it for a moment.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(50);

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
        if error::is_unreadable(&source) {
            Self::Unreadable { path, reason: source.to_string() }
        } else {
            Self::Database { path, source }
        }
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
            std::fs::create_dir_all(directory)
                .map_err(|source| OpenError::Directory { path: directory.to_owned(), source })?;
        }
        let lock = match Lock::take(&path) {
            Err(OpenError::InUse { .. }) => {
                tokio::time::sleep(LOCK_RETRY_PAUSE).await;
                Lock::take(&path)?
            }
            result => result?,
        };
        let path = lock.path().to_owned();
        let writer = Writer::start(Database::open(lock, busy_timeout).await?).map_err(OpenError::Thread)?;
        let options = reader_options(&path, busy_timeout, false);
        Ok(Self {
            readers: readers(options.clone()),
            operator: operator_readers(options, OPERATOR_READERS, OPERATOR_LIMIT),
            writer: Some(writer),
            clock,
            transcripts: Transcripts::default(),
        })
    }

    /// Opens a database for reading, also while another process has it open for writing.
    ///
    /// # Errors
    /// When it does not exist yet, cannot be read, or has another schema version than this program's.
    pub async fn open_read_only(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        if !path.try_exists().unwrap_or(true) {
            return Err(OpenError::Missing { path: path.to_owned() });
        }
        // With no writer and no log to read, the file is opened as immutable: SQLite then creates no files beside it.
        let is_at_rest = !is_in_use(path).unwrap_or(true) && !beside(path, "-wal").exists();
        let options = reader_options(path, Duration::from_secs(5), is_at_rest);
        let (readers, operator) =
            (readers(options.clone()), operator_readers(options, OPERATOR_READERS, OPERATOR_LIMIT));
        let mut connection = readers.acquire().await.map_err(|source| OpenError::database(path, source))?;
        let found = version(&mut connection).await.map_err(|source| OpenError::database(path, source))?;
        drop(connection);
        match (found, schema_version()) {
            (found, known) if found > known => Err(OpenError::Newer { path: path.to_owned(), found, known }),
            (found, known) if found < known => Err(OpenError::Older { path: path.to_owned(), found, known }),
            _ => Ok(Self {
                readers,
                operator,
                writer: None,
                clock: Arc::new(SystemClock),
                transcripts: Transcripts::default(),
            }),
        }
    }
}

/// Compacts a database: writes it anew, without free pages.
///
/// # Errors
/// When it is in use or cannot be written, for example because the disk is full. It is unchanged then.
pub async fn vacuum(path: &Path) -> Result<(), OpenError> {
    if !path.try_exists().unwrap_or(true) {
        return Err(OpenError::Missing { path: path.to_owned() });
    }
    let lock = Lock::take(path)?;
    let path = lock.path();
    let failed = |source| OpenError::database(path, source);
    let options = writer_options(path, Duration::from_secs(5));
    let mut connection = options.connect().await.map_err(failed)?;
    for sql in ["vacuum", "pragma wal_checkpoint(truncate)"] {
        sqlx::query(sql).execute(&mut connection).await.map_err(failed)?;
    }
    connection.close().await.map_err(failed)?;
    drop(lock);
    Ok(())
}

/// The connection options of the writer.
pub(super) fn writer_options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        // The lock is on the file that exists. If it is missing later, an empty database would forget what is owed.
        .create_if_missing(false)
        // Only has an effect on a database without tables: free pages can be given back one by one.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(busy_timeout)
        // See `Database::limit_log`.
        .pragma("wal_autocheckpoint", "0")
        // In KiB.
        .pragma("cache_size", "-8000")
        .pragma("temp_store", "memory")
        .statement_cache_capacity(200)
        .row_buffer_size(256)
        .thread_name(|_| "store-sqlite".to_owned())
        .disable_statement_logging()
}

/// The options of the connections that read. `is_at_rest`: no process writes to the database.
fn reader_options(path: &Path, busy_timeout: Duration, is_at_rest: bool) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(is_at_rest)
        .busy_timeout(busy_timeout)
        .pragma("wal_autocheckpoint", "0")
        .pragma("cache_size", "-1000")
        .thread_name(|number| format!("store-read-{number}"))
        .disable_statement_logging()
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .min_connections(0)
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// The connections that read for turns.
fn readers(options: SqliteConnectOptions) -> SqlitePool {
    pool(READERS).connect_lazy_with(options)
}

/// The connections that read for the operator, and how long each query may take.
fn operator_readers(options: SqliteConnectOptions, connections: u32, limit: Duration) -> SqlitePool {
    pool(connections)
        .after_connect(move |connection, _| Box::pin(limit_time(connection, limit)))
        .before_acquire(move |connection, _| {
            Box::pin(async move { limit_time(connection, limit).await.map(|()| true) })
        })
        .connect_lazy_with(options)
}

/// Interrupts what the connection does after `limit` from now.
async fn limit_time(connection: &mut SqliteConnection, limit: Duration) -> Result<(), sqlx::Error> {
    let begun = Instant::now();
    connection.lock_handle().await?.set_progress_handler(LIMIT_CHECK, move || begun.elapsed() < limit);
    Ok(())
}

/// The latest schema version that this program knows, and the only one that it reads.
#[must_use]
pub fn schema_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The schema version of a database; 0 when it has none.
async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let table = "select count(*) from sqlite_master where type = 'table' and name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(table).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query_scalar("select coalesce(max(version), 0) from _sqlx_migrations").fetch_one(connection).await
}

pub(super) async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    let found = version(connection).await.map_err(|source| OpenError::database(path, source))?;
    if found > schema_version() {
        return Err(OpenError::Newer { path: path.to_owned(), found, known: schema_version() });
    }
    // `run` is not used: its future is not `Send`.
    MIGRATIONS
        .run_direct(None, connection, false)
        .await
        .map_err(|error| OpenError::Migration { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::join_all};
    use rejoinder_core::{
        StoreError, TurnId,
        store::{Operator, Turns},
    };

    use super::*;

    /// A query that ends only when it is interrupted.
    const ENDLESS: &str = "with recursive n (i) as (select 1 union all select i + 1 from n) select max(i) from n";

    async fn store() -> (SqliteStore, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory is made");
        let options = OpenOptions::new(directory.path().join("rejoinder.db"));
        (SqliteStore::open(options).await.expect("the store opens"), directory)
    }

    async fn endless(pool: &SqlitePool) -> StoreError {
        let query = sqlx::query_scalar::<_, i64>(ENDLESS).fetch_one(pool);
        error::store_error(query.await.expect_err("the query has no end"))
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
        let limited = SqliteStore { operator: operator_readers(options, 1, Duration::from_millis(20)), ..store };

        for _ in 0..2 {
            let error = endless(&limited.operator).await;
            assert!(matches!(error, StoreError::TooSlow), "{error:?}");
        }
        limited.backlog().await.expect("the backlog is read in time");
    }
}
