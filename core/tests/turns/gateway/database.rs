//! The database of a test gateway: a SQLite file, or one on the PostgreSQL server that `REJOINDER_TEST_POSTGRES` names.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use rejoinder_core::{SharedClock, Store};
use rejoinder_store::{OpenOptions, PostgresOptions, SqliteStore, TestDatabase, TestServer};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

/// `None` if the tests run on SQLite.
static SERVER: LazyLock<Option<TestServer>> = LazyLock::new(TestServer::named);

/// The name of the file of SQLite.
const FILE: &str = "rejoinder.db";

/// Whether the tests run on PostgreSQL.
pub(crate) fn is_on_postgres() -> bool {
    SERVER.is_some()
}

/// A database, which is removed when it is dropped.
pub(crate) enum Database {
    Sqlite(TempDir),
    Postgres(TestDatabase),
}

impl Database {
    pub(super) async fn create() -> Self {
        match &*SERVER {
            Some(server) => Self::Postgres(server.database().await),
            None => Self::Sqlite(tempfile::tempdir().expect("a directory")),
        }
    }

    /// Opens it as a gateway does.
    pub(super) async fn open(&self, clock: SharedClock) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(directory) => {
                let options = OpenOptions { clock, ..OpenOptions::new(directory.path().join(FILE)) };
                Arc::new(SqliteStore::open(options).await.expect("the database opens"))
            }
            Self::Postgres(database) => {
                let options = PostgresOptions::new(database.url(), clock);
                Arc::new(options.open().await.expect("the database opens"))
            }
        }
    }

    /// Executes statements, and returns how many rows they changed.
    pub(super) async fn execute(&self, sql: &str) -> u64 {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Sqlite(directory) => {
                let mut connection = sqlite(directory).await;
                let done = connection.execute(sql).await.expect("they are executed");
                connection.close().await.expect("it closes");
                done.rows_affected()
            }
            Self::Postgres(database) => {
                let mut connection = postgres(database).await;
                let done = connection.execute(sql).await.expect("they are executed");
                connection.close().await.expect("it closes");
                done.rows_affected()
            }
        }
    }

    /// Every column of every table, as `table.column`, in which this text is.
    pub(crate) async fn columns_with(&self, text: &str) -> Vec<String> {
        match self {
            Self::Sqlite(directory) => {
                let mut connection = sqlite(directory).await;
                let columns: Vec<(String, String)> =
                    sqlx::query_as(SQLITE_COLUMNS).fetch_all(&mut connection).await.expect("readable");
                let mut found = Vec::new();
                for (table, column) in columns {
                    let sql = format!(
                        "select exists (select 1 from {table} where instr(cast({column} as blob), cast(? as blob)))"
                    );
                    let query = sqlx::query_scalar::<_, bool>(AssertSqlSafe(sql)).bind(text);
                    if query.fetch_one(&mut connection).await.expect("readable") {
                        found.push(format!("{table}.{column}"));
                    }
                }
                connection.close().await.expect("it closes");
                found
            }
            Self::Postgres(database) => {
                let mut connection = postgres(database).await;
                let query = sqlx::query_scalar(POSTGRES_COLUMNS_WITH).bind(text);
                let found: Vec<String> = query.fetch_all(&mut connection).await.expect("readable");
                connection.close().await.expect("it closes");
                found
            }
        }
    }

    /// Where this text is: on SQLite in which files, whose pages can still have removed rows, and on PostgreSQL in which columns.
    pub(crate) async fn places_with(&self, text: &str) -> Vec<String> {
        let Self::Sqlite(directory) = self else { return self.columns_with(text).await };
        let files = std::fs::read_dir(directory.path()).expect("a directory").map(|file| file.expect("a file").path());
        let has_it = |file: &PathBuf| {
            let bytes = std::fs::read(file).expect("readable");
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        };
        files.filter(has_it).map(|file| file.display().to_string()).collect()
    }
}

async fn sqlite(directory: &TempDir) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(directory.path().join(FILE));
    options.connect().await.expect("the database opens once more")
}

async fn postgres(database: &TestDatabase) -> PgConnection {
    PgConnection::connect(&database.url()).await.expect("the database opens once more")
}

/// Without the tables of the full-text index.
const SQLITE_COLUMNS: &str = "
    select m.name, c.name from sqlite_master as m, pragma_table_info(m.name) as c
    where m.type = 'table' and m.name not like 'search%' order by 1, 2";

/// It executes a statement for each column.
const POSTGRES_COLUMNS_WITH: &str = "
    select r.relname || '.' || a.attname from pg_class as r join pg_attribute as a on a.attrelid = r.oid
    where r.relnamespace = 'public'::regnamespace and r.relkind = 'r' and a.attnum > 0 and not a.attisdropped
        and query_to_xml(
            format(
                case a.atttypid
                    when 'bytea'::regtype then 'select 1 from %I where strpos(encode(%I, ''escape''), %L) > 0 limit 1'
                    else 'select 1 from %I where strpos(%I::text, %L) > 0 limit 1'
                end,
                r.relname, a.attname, $1::text),
            false, true, '')::text <> ''
    order by r.relname, a.attname";
