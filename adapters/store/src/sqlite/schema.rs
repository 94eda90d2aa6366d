//! The schema and its versions.

use std::{path::Path, sync::LazyLock};

use sqlx::{
    Connection, SqlSafeStr, SqliteConnection,
    migrate::{Migration, MigrationType, Migrator},
};

use super::{error::OpenError, lock::beside};

/// Not `sqlx::migrate!`, which alone would need SQLx's macros: a second SQLx, Tokio and SQLite, for the compiler.
pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let all = [
        ("initial", include_str!("../../../../migrations/sqlite/0001_initial.sql")),
        ("questions", include_str!("../../../../migrations/sqlite/0002_questions.sql")),
        ("people", include_str!("../../../../migrations/sqlite/0003_people.sql")),
        ("queues", include_str!("../../../../migrations/sqlite/0004_queues.sql")),
        ("asked", include_str!("../../../../migrations/sqlite/0005_questions.sql")),
        ("languages", include_str!("../../../../migrations/sqlite/0006_languages.sql")),
        ("direct_chats", include_str!("../../../../migrations/sqlite/0007_direct_chats.sql")),
        ("routing", include_str!("../../../../migrations/sqlite/0008_routing.sql")),
        ("sessions", include_str!("../../../../migrations/sqlite/0009_sessions.sql")),
        ("approvals", include_str!("../../../../migrations/sqlite/0010_approvals.sql")),
        ("daily_use", include_str!("../../../../migrations/sqlite/0011_daily_use.sql")),
        ("homes", include_str!("../../../../migrations/sqlite/0012_homes.sql")),
        ("schedules", include_str!("../../../../migrations/sqlite/0013_schedules.sql")),
        ("told_languages", include_str!("../../../../migrations/sqlite/0014_told_languages.sql")),
        ("errors", include_str!("../../../../migrations/sqlite/0015_errors.sql")),
        ("seen_lines", include_str!("../../../../migrations/sqlite/0016_seen_lines.sql")),
        ("links", include_str!("../../../../migrations/sqlite/0017_links.sql")),
        ("sign_ins", include_str!("../../../../migrations/sqlite/0018_sign_ins.sql")),
        ("resends", include_str!("../../../../migrations/sqlite/0019_resends.sql")),
        ("destinations", include_str!("../../../../migrations/sqlite/0020_destinations.sql")),
        ("not_reached", include_str!("../../../../migrations/sqlite/0021_not_reached.sql")),
        ("versions", include_str!("../../../../migrations/sqlite/0022_versions.sql")),
        ("guesses", include_str!("../../../../migrations/sqlite/0023_guesses.sql")),
        ("page_links", include_str!("../../../../migrations/sqlite/0024_page_links.sql")),
        ("unused_indexes", include_str!("../../../../migrations/sqlite/0025_unused_indexes.sql")),
        ("members", include_str!("../../../../migrations/sqlite/0026_members.sql")),
        ("agent_sessions", include_str!("../../../../migrations/sqlite/0027_agent_sessions.sql")),
        ("budgets", include_str!("../../../../migrations/sqlite/0028_budgets.sql")),
        ("estimates", include_str!("../../../../migrations/sqlite/0029_estimates.sql")),
        ("given_approvals", include_str!("../../../../migrations/sqlite/0030_given_approvals.sql")),
        ("session_removals", include_str!("../../../../migrations/sqlite/0031_session_removals.sql")),
        ("files", include_str!("../../../../migrations/sqlite/0032_files.sql")),
        ("run_holders", include_str!("../../../../migrations/sqlite/0033_run_holders.sql")),
        ("session_titles", include_str!("../../../../migrations/sqlite/0034_session_titles.sql")),
        ("asked_people", include_str!("../../../../migrations/sqlite/0035_asked_people.sql")),
        ("reactions", include_str!("../../../../migrations/sqlite/0036_reactions.sql")),
        ("whole_requests", include_str!("../../../../migrations/sqlite/0037_whole_requests.sql")),
        ("approval_options", include_str!("../../../../migrations/sqlite/0038_approval_options.sql")),
        ("one_row", include_str!("../../../../migrations/sqlite/0039_one_row.sql")),
        ("voices", include_str!("../../../../migrations/sqlite/0040_voices.sql")),
        ("spoken", include_str!("../../../../migrations/sqlite/0041_spoken.sql")),
        ("visitors", include_str!("../../../../migrations/sqlite/0042_visitors.sql")),
        ("push_subscriptions", include_str!("../../../../migrations/sqlite/0043_push_subscriptions.sql")),
    ];
    let migration = |(version, (name, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(all).map(migration).collect())
});

/// The schema that all [`MIGRATIONS`] make, in one piece: a new database is made in a fifth of the time.
const LATEST: &str = include_str!("../../../../migrations/sqlite_latest.sql");

/// The latest schema version that this program knows, and the only one that it reads.
#[must_use]
pub fn schema_version() -> i64 {
    latest(&MIGRATIONS)
}

fn latest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
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

/// Updates the schema, in one transaction. An older database is copied before, so that there is a way back to the program that
/// wrote it.
pub(super) async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    migrate_with(&MIGRATIONS, connection, path).await
}

async fn migrate_with(migrator: &Migrator, connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let (found, known) = (version(connection).await.map_err(failed)?, latest(migrator));
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    let not_updated = |reason: String| OpenError::Migration { path: path.to_owned(), reason };
    if (1..known).contains(&found) {
        let copy = beside(path, &format!(".schema-{found}"));
        save(connection, &copy).await.map_err(|error| not_updated(format!("it cannot be copied before: {error}")))?;
        tracing::info!(
            copy = %copy.display(),
            "the database's schema is updated from version {found} to {known}; to go back, put the copy in its place"
        );
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    if found == 0 {
        create(&mut transaction).await.map_err(|error| not_updated(error.to_string()))?;
    }
    // `run` is not used: its future is not `Send`.
    let updated = migrator.run_direct(None, &mut *transaction, false).await;
    updated.map_err(|error| not_updated(error.to_string()))?;
    // From now on it is no copy that a repeated run may replace.
    sqlx::query("drop table if exists finished_copy").execute(&mut *transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Makes the latest schema in an empty database, as if each migration had been run.
async fn create(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LATEST).execute(&mut *connection).await?;
    for migration in MIGRATIONS.iter() {
        let sql = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
            values (?, ?, true, ?, 0)";
        let row = sqlx::query(sql).bind(migration.version).bind(&*migration.description).bind(&*migration.checksum);
        row.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Copies the database, in place of an earlier copy: the way back is to what it is now.
async fn save(connection: &mut SqliteConnection, copy: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let part = beside(copy, ".part");
    if part.exists() {
        std::fs::remove_file(&part)?;
    }
    sqlx::query("vacuum into ?").bind(part.display().to_string()).execute(connection).await?;
    std::fs::File::open(&part)?.sync_all()?;
    Ok(std::fs::rename(part, copy)?)
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, ConnectOptions};

    use super::*;
    use crate::sqlite::{connections::schema_options, lock::Lock};

    const NEXT: &str = "alter table probe add column note text; update probe set note = 'new'";

    /// The versions after the latest.
    fn with(next: &[&'static str]) -> Migrator {
        let next = (schema_version() + 1..).zip(next).map(|(version, sql)| {
            Migration::new(version, "next".into(), MigrationType::Simple, sql.into_sql_str(), false)
        });
        Migrator::with_migrations(MIGRATIONS.iter().cloned().chain(next).collect())
    }

    /// The schema of a database and the rows of its tables, as a script.
    async fn script(connection: &mut SqliteConnection) -> String {
        let shadows = "select name from pragma_table_list where schema = 'main' and type = 'shadow'";
        let made = format!(
            "select sql from sqlite_schema where sql is not null and name not like 'sqlite~_%' escape '~' and name not in ({shadows})
            order by rowid"
        );
        let mut lines: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(made)).fetch_all(&mut *connection).await.expect("it is read");
        let tables = "select name from pragma_table_list
            where schema = 'main' and type = 'table' and name not like 'sqlite~_%' escape '~' and name <> '_sqlx_migrations'
            order by name";
        let tables: Vec<String> =
            sqlx::query_scalar(tables).fetch_all(&mut *connection).await.expect("they are listed");
        for table in tables {
            let values = "select group_concat('quote([' || name || '])', ' || '', '' || ') from pragma_table_info(?)";
            let values: String =
                sqlx::query_scalar(values).bind(&table).fetch_one(&mut *connection).await.expect("it has columns");
            let rows = format!("select 'insert into {table} values (' || {values} || ')' from {table}");
            let rows: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut *connection).await.expect("they are read");
            lines.extend(rows);
        }
        lines.join(";\n\n") + ";\n"
    }

    #[tokio::test]
    async fn the_latest_schema_is_what_all_migrations_make() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/sqlite_latest.sql");
        let mut migrated = SqliteConnection::connect("sqlite::memory:").await.expect("it opens");
        MIGRATIONS.run_direct(None, &mut migrated, false).await.expect("it is made");
        let expected = format!(
            "-- Written by `cargo xtask docs`: what all migrations of SQLite make, for new databases.\n\n{}",
            script(&mut migrated).await
        );
        if std::env::var_os("REJOINDER_WRITE_DOCS").is_some() {
            std::fs::write(path, &expected).expect("it is written");
        }

        assert_eq!(std::fs::read_to_string(path).expect("it is there"), expected, "run `cargo xtask docs`");
        let mut made = SqliteConnection::connect("sqlite::memory:").await.expect("it opens");
        sqlx::raw_sql(AssertSqlSafe(expected)).execute(&mut made).await.expect("it is a script");
        assert_eq!(script(&mut made).await, script(&mut migrated).await);
    }

    #[tokio::test]
    async fn an_update_that_fails_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let path = directory.path().join("rejoinder.db");
        let _lock = Lock::take(&path).expect("it is made");
        let mut connection =
            schema_options(&path, std::time::Duration::ZERO).connect().await.expect("the database opens");
        migrate(&mut connection, &path).await.expect("it is made");

        let failed = migrate_with(&with(&[NEXT, "update nothing set x = 1"]), &mut connection, &path).await;

        assert!(matches!(failed, Err(OpenError::Migration { .. })), "{failed:?}");
        assert_eq!(version(&mut connection).await.expect("readable"), schema_version());
        let added = "select count(*) from pragma_table_info('probe') where name = 'note'";
        let added: i64 = sqlx::query_scalar(added).fetch_one(&mut connection).await.expect("readable");
        assert_eq!(added, 0);
    }

    #[tokio::test]
    async fn an_older_database_is_copied_before_it_is_updated() {
        let directory = tempfile::tempdir().expect("a directory is made");
        let path = directory.path().join("rejoinder.db");
        let _lock = Lock::take(&path).expect("it is made");
        let open = async |path: &Path| {
            schema_options(path, std::time::Duration::ZERO).connect().await.expect("the database opens")
        };
        let mut connection = open(&path).await;
        migrate(&mut connection, &path).await.expect("it is made");
        assert_eq!(
            std::fs::read_dir(directory.path())
                .expect("read")
                .filter(|it| { it.as_ref().is_ok_and(|it| it.file_name().to_string_lossy().contains("schema")) })
                .count(),
            0,
            "a new database has nothing to copy"
        );

        migrate_with(&with(&[NEXT]), &mut connection, &path).await.expect("it is updated");
        migrate_with(&with(&[NEXT]), &mut connection, &path).await.expect("nothing is left to do");

        let known = schema_version();
        assert_eq!(version(&mut connection).await.expect("readable"), known + 1);
        connection.close().await.expect("it closes");
        let mut copy = open(&directory.path().join(format!("rejoinder.db.schema-{known}"))).await;
        assert_eq!(version(&mut copy).await.expect("readable"), known);
        let columns: Vec<String> = sqlx::query_scalar("select name from pragma_table_info('probe')")
            .fetch_all(&mut copy)
            .await
            .expect("readable");
        assert!(!columns.contains(&"note".to_owned()), "{columns:?}");
        let old = migrate(&mut open(&path).await, &path).await;
        assert!(matches!(old, Err(OpenError::Newer { found, .. }) if found == known + 1), "{old:?}");
    }
}
