//! The schema and its versions.

use std::{path::Path, sync::LazyLock};

use sqlx::{
    SqlSafeStr, SqliteConnection,
    migrate::{Migration, MigrationType, Migrator},
};

use super::error::OpenError;

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

/// The latest schema version that this program knows, and the only one that it reads.
#[must_use]
pub fn schema_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The schema version of a database; 0 when it has none.
pub(super) async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
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
