//! The connections to a database: one that writes, some that read for turns, some that read for the operator.

use std::{
    cell::Cell,
    path::Path,
    time::{Duration, Instant},
};

use rejoinder_core::folded;
use rusqlite::{Connection, OpenFlags};
use sqlx::{
    ConnectOptions, SqliteConnection, SqlitePool,
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// How many connections read for turns.
const READERS: u32 = 3;

const OPERATOR_READERS: u32 = 2;

/// How long a query of the operator may take. While it reads, the log cannot start again from its beginning.
pub(super) const OPERATOR_LIMIT: Duration = Duration::from_secs(3);

/// How long one count of all rows may take, when the operator asks for the size of the store.
const COUNT_LIMIT: Duration = Duration::from_mins(10);

/// How many instructions of SQLite's virtual machine pass between two looks at the time.
const LIMIT_CHECK: i32 = 10_000;

/// How many statements of the writer stay prepared: more than there are.
const STATEMENTS: usize = 200;

/// The size of a page of a new database, in bytes. A turn changes some thirty pages, and little in each: all of them are written
/// to the log.
pub(super) const PAGE: u32 = 2048;

/// The size of a page's header in the log, in bytes.
const PAGE_HEADER: u64 = 24;

thread_local! {
    /// How many pages the log holds, as of the last commit of this thread's connection.
    pub(super) static LOG_PAGES: Cell<u64> = const { Cell::new(0) };
}

/// The options of a connection that makes or changes the schema, or compacts.
pub(super) fn schema_options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        // The lock is on the file that exists. If it is missing later, an empty database would forget what is owed.
        .create_if_missing(false)
        .page_size(PAGE)
        // Only has an effect on a database without tables: free pages can be given back one by one.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(busy_timeout)
        .thread_name(|_| "store-schema".to_owned())
        .disable_statement_logging()
}

/// Opens the connection that writes. The file must exist; see [`schema_options`].
pub(super) fn open_writer(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch(
        // The log is written back by `Database::checkpoint` and `Database::limit_log`. The cache has 8 MB.
        "pragma journal_mode = wal;
        pragma synchronous = full;
        pragma foreign_keys = on;
        pragma wal_autocheckpoint = 0;
        pragma cache_size = -8000;
        pragma temp_store = memory;",
    )?;
    connection.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(u64::try_from(pages).unwrap_or(0));
        Ok(())
    }));
    Ok(connection)
}

/// Opens a connection for one reading that SQLx cannot do.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// The size of a page in the log, in bytes: with its header. An older database has larger pages.
pub(super) fn logged_page(connection: &Connection) -> rusqlite::Result<u64> {
    let page: u32 = connection.query_row("pragma page_size", [], |row| row.get(0))?;
    Ok(u64::from(page) + PAGE_HEADER)
}

/// The options of the connections that read. `is_at_rest`: no process writes to the database.
pub(super) fn reader_options(path: &Path, busy_timeout: Duration, is_at_rest: bool) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(is_at_rest)
        .busy_timeout(busy_timeout)
        .pragma("wal_autocheckpoint", "0")
        .pragma("cache_size", "-1000")
        .collation("folded", |one, other| folded(one).cmp(&folded(other)))
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

pub(super) fn readers(options: SqliteConnectOptions) -> SqlitePool {
    pool(READERS).connect_lazy_with(options)
}

pub(super) fn operator_readers(options: SqliteConnectOptions) -> SqlitePool {
    limited_readers(options, OPERATOR_READERS, OPERATOR_LIMIT)
}

pub(super) fn counter(options: SqliteConnectOptions) -> SqlitePool {
    limited_readers(options, 1, COUNT_LIMIT)
}

/// Connections that read, and each query for `limit` at most.
pub(super) fn limited_readers(options: SqliteConnectOptions, connections: u32, limit: Duration) -> SqlitePool {
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
