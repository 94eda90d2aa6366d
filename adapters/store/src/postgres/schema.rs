//! The schema and its versions.

use std::{cmp::Ordering, sync::LazyLock};

use sqlx::{
    Connection as _, PgConnection, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};

use super::error::PostgresOpenError;

/// Not `sqlx::migrate!`, for the reason that the schema of SQLite has.
pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let all = [("initial", include_str!("../../../../migrations/postgres/0001_initial.sql"))];
    let migration = |(version, (name, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let mut migrator = Migrator::with_migrations((1..).zip(all).map(migration).collect());
    // It would release its lock before the commit: see `migrate`.
    migrator.set_locking(false);
    migrator
});

/// The latest schema version that this program knows, and the only one that it uses.
#[must_use]
pub fn latest() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The schema version of a database; 0 when it has none.
async fn version(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let table = "select to_regclass('_sqlx_migrations') is not null";
    let is_there: bool = sqlx::query_scalar(table).fetch_one(&mut *connection).await?;
    if !is_there {
        return Ok(0);
    }
    sqlx::query_scalar("select coalesce(max(version), 0) from _sqlx_migrations").fetch_one(connection).await
}

/// Checks that a database that is only read has the schema of this program.
pub(super) async fn check(connection: &mut PgConnection, database: &str) -> Result<(), PostgresOpenError> {
    let found = version(connection).await.map_err(|source| PostgresOpenError::connection(database, source))?;
    let (database, known) = (database.to_owned(), latest());
    match found.cmp(&known) {
        Ordering::Equal => Ok(()),
        Ordering::Less if found == 0 => Err(PostgresOpenError::Empty { database }),
        Ordering::Less => Err(PostgresOpenError::Older { database, found, known }),
        Ordering::Greater => Err(PostgresOpenError::Newer { database, found, known }),
    }
}

/// Makes or updates the schema, in one transaction. `database` is its name in errors.
pub(super) async fn migrate(connection: &mut PgConnection, database: &str) -> Result<(), PostgresOpenError> {
    let failed = |source| PostgresOpenError::connection(database, source);
    // Seldom anything is left to do: without a lock, and also on a server on which nothing can be written now.
    if version(connection).await.map_err(failed)? == latest() {
        return Ok(());
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    sqlx::query("set local statement_timeout = 0").execute(&mut *transaction).await.map_err(failed)?;
    // Other processes that open the database wait here. The lock ends with the transaction.
    sqlx::query("select pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await.map_err(failed)?;
    let (found, known) = (version(&mut transaction).await.map_err(failed)?, latest());
    if found > known {
        return Err(PostgresOpenError::Newer { database: database.to_owned(), found, known });
    }
    if (1..known).contains(&found) {
        tracing::info!(%database, "the database's schema is updated from version {found} to {known}");
    }
    let not_updated = |reason: String| PostgresOpenError::Migration { database: database.to_owned(), reason };
    // `run` is not used: its future is not `Send`.
    let updated = MIGRATIONS.run_direct(None, &mut *transaction, false).await;
    updated.map_err(|error| not_updated(error.to_string()))?;
    transaction.commit().await.map_err(failed)
}

/// The lock of an update of the schema: `rejoinde` in ASCII.
const LOCK: i64 = 0x7265_6a6f_696e_6465;
