//! The schema and its versions.

use std::{cmp::Ordering, sync::LazyLock};

use sqlx::{
    Connection as _, PgConnection, SqlSafeStr,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use super::error::{PostgresOpenError, is_locked};

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
    // While it waits for a table that somebody uses, all others wait behind it: so not for long. The caller tries again.
    sqlx::query("set local lock_timeout = '1s'").execute(&mut *transaction).await.map_err(failed)?;
    // `run` is not used: its future is not `Send`.
    let updated = MIGRATIONS.run_direct(None, &mut *transaction, false).await;
    updated.map_err(|error| match error {
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) if is_locked(&source) => {
            failed(source)
        }
        error => PostgresOpenError::Migration { database: database.to_owned(), reason: error.to_string() },
    })?;
    transaction.commit().await.map_err(failed)
}

/// The lock of an update of the schema: `rejoinde` in ASCII.
const LOCK: i64 = 0x7265_6a6f_696e_6465;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::MIGRATIONS;

    /// What a migration does that may take something from nodes of the version before; indexes do not count.
    fn contraction(sql: &str) -> Option<String> {
        let code = |line: &str| line.split_once("--").map_or(line, |(code, _)| code).to_lowercase();
        let sql = sql.lines().map(code).collect::<Vec<_>>().join(" ");
        let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut depth = 0_u32;
        let is_end = |char: char| {
            match char {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            char == ';' || (char == ',' && depth == 0)
        };
        sql.split(is_end).map(words).find(|part| {
            let has = |text: &str| part.contains(text);
            let takes = [
                "drop ",
                "rename ",
                "truncate ",
                "set not null",
                "add constraint ",
                "add check ",
                "add unique ",
                "add foreign key ",
                "add primary key ",
            ];
            let takes = takes.into_iter().any(has) && !part.starts_with("drop index ");
            takes || has("alter ") && has(" type ") || has("add ") && has(" not null") && !has(" default ")
        })
    }

    /// As [`contraction`]; `None` also if the migration names the version that does not use it any more, and `version` is a later one.
    fn refused(sql: &str, version: &str) -> Option<String> {
        let number =
            |version: &str| version.split(['.', '-']).map_while(|part| part.parse().ok()).collect::<Vec<u32>>();
        let since = sql.lines().find_map(|line| line.strip_prefix("-- unused since ")?.split_once(':'));
        let is_unused = since.is_some_and(|(since, _)| number(since) < number(version));
        contraction(sql).filter(|_| !is_unused)
    }

    /// See "Updates" in docs/decisions/postgres.md.
    #[test]
    fn nodes_of_the_version_before_work_with_each_migration() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
        let files = fs::read_dir(folder).expect("the folder is read");
        let mut files: Vec<_> = files.map(|file| file.expect("the folder is read").path()).collect();
        files.sort();
        assert_eq!(files.len(), MIGRATIONS.iter().count());
        for file in files.iter().skip(1) {
            let sql = fs::read_to_string(file).expect("a migration is read");
            assert_eq!(refused(&sql, env!("CARGO_PKG_VERSION")), None, "{}", file.display());
        }
    }

    #[test]
    fn what_is_still_used_cannot_be_taken_away() {
        let fit = [
            "-- drop table x\nalter table x add column y bigint",
            "alter table x add column y bigint not null default 0, add column z text",
            "create table y (a bigint not null, type text)",
            "drop index x_of_y",
            "-- unused since 0.2.0: that one reads y\nalter table x drop column z",
        ];
        let unfit = [
            "alter table x\n  drop   column y",
            "alter table x alter y drop not null",
            "ALTER TABLE x RENAME y TO z",
            "alter table x alter column y type text",
            "alter table x alter y set not null",
            "alter table x add column y bigint default 0, add column z bigint not null",
            "alter table x add check (y > 0)",
            "alter table x add column y numeric(10, 2) not null",
            "alter table x add foreign key (y) references z",
            "truncate x",
            "-- unused since 0.3.0: this one reads y\nalter table x drop column z",
        ];

        assert_eq!(fit.map(|sql| refused(sql, "0.3.0").is_some()), [false; 5]);
        assert_eq!(unfit.map(|sql| refused(sql, "0.3.0").is_some()), [true; 11]);
    }
}
