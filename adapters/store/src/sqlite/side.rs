//! A SQLite database as the source or the target of a copy.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow, SqliteSynchronous},
};
use uuid::Uuid;

use super::{
    connections::{reader_options, schema_options},
    error::OpenError,
    lock::{Lock, beside, is_in_use},
    open::check_origin,
    schema::{migrate, schema_version, version},
};
use crate::shared::copying::{
    side::{CopyError, Side},
    tables::{Column, Range, Row, Table, marks, names},
    values::{Kind, Value, value_of},
};

/// How long a statement waits for another program that has locked the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A target is made beside its place, and moved there when it is a store.
#[derive(Debug)]
pub(crate) struct SqliteSide {
    connection: SqliteConnection,
    /// `None` if a gateway has it. It is released after the connection is closed.
    lock: Option<Lock>,
    name: String,
    /// Where a target will be.
    place: Option<PathBuf>,
}

impl SqliteSide {
    pub(crate) async fn source(path: &Path) -> Result<Self, CopyError> {
        check_origin(path).await?;
        let lock = match Lock::take(path) {
            Ok(lock) => Some(lock),
            Err(OpenError::InUse { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let path = path.canonicalize().map_err(|source| OpenError::Lock { path: path.to_owned(), source })?;
        let failed = |source| OpenError::database(&path, source);
        // Without a writer and a log to read, SQLite creates no files beside it.
        let is_at_rest = lock.is_some() && !beside(&path, "-wal").exists();
        let mut connection = reader_options(&path, BUSY_TIMEOUT, is_at_rest).connect().await.map_err(failed)?;
        match (version(&mut connection).await.map_err(failed)?, schema_version()) {
            (found, known) if found > known => return Err(OpenError::Newer { path, found, known }.into()),
            (found, known) if found < known => return Err(OpenError::Older { path, found, known }.into()),
            _ => {}
        }
        Ok(Self { connection, lock, name: format!("sqlite:{}", path.display()), place: None })
    }

    /// A target of a copy from the database with this name.
    pub(crate) async fn target(path: &Path, from: &str) -> Result<Self, CopyError> {
        let (part, name) = (beside(path, ".copy"), format!("sqlite:{}", path.display()));
        if is_taken(path) && !take_back(path, &part, from).await? {
            return Err(CopyError::Exists { path: path.to_owned() });
        }
        let lock = match Lock::take(&part) {
            Err(OpenError::InUse { .. }) => return Err(CopyError::Busy { database: name }),
            lock => lock?,
        };
        let failed = |source| OpenError::database(&part, source);
        // What is lost when the machine fails is copied by the next run. The last one has all written before its end.
        let options = schema_options(&part, BUSY_TIMEOUT).foreign_keys(false).synchronous(SqliteSynchronous::Normal);
        let mut connection = options.connect().await.map_err(failed)?;
        match (version(&mut connection).await.map_err(failed)?, schema_version()) {
            (0, _) => migrate(&mut connection, &part).await?,
            (found, known) if found != known => {
                let reason = format!("the copy was begun by another version: remove {}", part.display());
                return Err(CopyError::Broken { database: name, reason });
            }
            _ => {}
        }
        let mut side = Self { connection, lock: Some(lock), name, place: Some(path.to_owned()) };
        side.begin(from).await?;
        Ok(side)
    }

    /// Notes what is copied, or finds that it is the same.
    async fn begin(&mut self, from: &str) -> Result<(), CopyError> {
        let finished = sqlx::query_scalar("select count(*) from sqlite_master where name = 'finished_copy'");
        let finished: Result<i64, _> = finished.fetch_one(&mut self.connection).await;
        let make = match finished.map_err(|error| CopyError::of(&self.name, "begun_copy", error))? {
            0 => "create table if not exists begun_copy (position integer primary key, text text not null)",
            _ => "alter table finished_copy rename to begun_copy",
        };
        self.execute("begun_copy", make).await?;
        let noted = sqlx::query("insert into begun_copy (position, text) values (0, ?) on conflict do nothing");
        let noted = noted.bind(from).execute(&mut self.connection).await;
        noted.map_err(|error| CopyError::of(&self.name, "begun_copy", error))?;
        let other = sqlx::query_scalar("select text from begun_copy where position = 0");
        let other: Result<String, _> = other.fetch_one(&mut self.connection).await;
        let other = other.map_err(|error| CopyError::of(&self.name, "begun_copy", error))?;
        if other != from {
            // The file that would have to be removed.
            let database = self.lock.as_ref().map_or_else(String::new, |lock| lock.path().display().to_string());
            return Err(CopyError::OtherSource { database, from: from.to_owned(), other });
        }
        Ok(())
    }

    async fn execute(&mut self, what: &'static str, sql: &'static str) -> Result<(), CopyError> {
        let done = sqlx::query(sql).execute(&mut self.connection).await;
        done.map(drop).map_err(|error| CopyError::of(&self.name, what, error))
    }

    /// Fails if a row refers to one that is missing.
    async fn check_references(&mut self) -> Result<(), CopyError> {
        let sql = "select distinct \"table\", parent from pragma_foreign_key_check";
        let missing: Option<(String, String)> = sqlx::query_as(sql)
            .fetch_optional(&mut self.connection)
            .await
            .map_err(|error| CopyError::of(&self.name, "references", error))?;
        let Some((table, parent)) = missing else { return Ok(()) };
        let reason = format!("a row of {table} refers to a missing row of {parent}");
        Err(CopyError::Broken { database: self.name.clone(), reason })
    }
}

impl Side for SqliteSide {
    fn name(&self) -> &str {
        &self.name
    }

    async fn hold(&mut self) -> Result<bool, CopyError> {
        Ok(self.lock.is_some())
    }

    async fn rows(&mut self, table: &'static Table, range: &Range<'_>, limit: usize) -> Result<Vec<Row>, CopyError> {
        let sql = table.select(range, limit, |column| column.in_sqlite().to_owned());
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (at, value) in range.values() {
            query = bound(query, &table.columns[at], value);
        }
        let rows = query.fetch_all(&mut self.connection).await;
        let rows = rows.and_then(|rows| rows.iter().map(|row| read(table, row)).collect());
        rows.map_err(|error| CopyError::of(&self.name, table.name, error))
    }

    async fn remove(&mut self, table: &'static Table, rows: &[Row]) -> Result<(), CopyError> {
        let (name, key) = (table.name, table.key_names());
        let sql = format!("delete from {name} where ({key}) = ({})", marks(1, table.keys));
        let keys: Vec<&[Value]> = rows.iter().map(|row| table.key(row)).collect();
        self.execute_each(table, &sql, &table.columns[..table.keys], &keys).await
    }

    /// In place of any row with the same unique values: one that comes later has what this one has now.
    async fn insert(&mut self, table: &'static Table, rows: &[&Row]) -> Result<(), CopyError> {
        let columns = names(table.columns, |column| column.in_sqlite().to_owned());
        let marks = marks(1, table.columns.len());
        let sql = format!("insert or replace into {} ({columns}) values ({marks})", table.name);
        let rows: Vec<&[Value]> = rows.iter().map(|row| row.as_slice()).collect();
        self.execute_each(table, &sql, table.columns, &rows).await
    }

    async fn last_line(&mut self) -> Result<i64, CopyError> {
        let last = sqlx::query_scalar("select coalesce(max(seq), 0) from sqlite_sequence where name = 'log_lines'");
        last.fetch_one(&mut self.connection).await.map_err(|error| CopyError::of(&self.name, "log_lines", error))
    }

    async fn finish(mut self, last_line: i64) -> Result<(), CopyError> {
        if let Some(path) = self.place.as_ref().filter(|place| is_taken(place)) {
            return Err(CopyError::Exists { path: path.clone() });
        }
        self.check_references().await?;
        self.execute("log_lines", "delete from sqlite_sequence where name = 'log_lines'").await?;
        let line = sqlx::query("insert into sqlite_sequence (name, seq) values ('log_lines', ?)").bind(last_line);
        let line = line.execute(&mut self.connection).await;
        line.map_err(|error| CopyError::of(&self.name, "log_lines", error))?;
        self.execute("search_progress", INDEX_ANEW).await?;
        self.execute("begun_copy", "alter table begun_copy rename to finished_copy").await?;
        self.execute("the log", "pragma wal_checkpoint(truncate)").await?;
        let Self { connection, lock, name, place } = self;
        connection.close().await.map_err(|error| CopyError::of(&name, "the file", error))?;
        if let (Some(lock), Some(place)) = (&lock, place) {
            put_in_place(lock.path(), &place).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => CopyError::Exists { path: place },
                _ => CopyError::of(&name, "the file", error),
            })?;
        }
        drop(lock);
        Ok(())
    }

    async fn close(self) -> Result<(), CopyError> {
        let Self { connection, lock, name, place: _ } = self;
        let closed = connection.close().await;
        drop(lock);
        closed.map_err(|error| CopyError::of(&name, "the file", error))
    }
}

impl SqliteSide {
    /// Executes a statement with each of these lists of values of columns, all or none.
    async fn execute_each(
        &mut self,
        table: &'static Table,
        sql: &str,
        columns: &[Column],
        rows: &[&[Value]],
    ) -> Result<(), CopyError> {
        let done = async {
            let mut transaction = self.connection.begin().await?;
            for row in rows {
                let mut query = sqlx::query(AssertSqlSafe(sql.to_owned()));
                for (column, value) in columns.iter().zip(*row) {
                    query = bound(query, column, value);
                }
                query.execute(&mut *transaction).await?;
            }
            transaction.commit().await
        };
        let done: Result<(), sqlx::Error> = done.await;
        done.map_err(|error| CopyError::of(&self.name, table.name, error))
    }
}

fn bound<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    column: &Column,
    value: &Value,
) -> Query<'q, Sqlite, SqliteArguments> {
    match value {
        Value::Id(id) if column.kind == Kind::RemovedId && id.is_nil() => query.bind(Vec::<u8>::new()),
        Value::Id(id) => query.bind(*id),
        Value::Number(number) => query.bind(*number),
        Value::Flag(flag) => query.bind(*flag),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Bytes(bytes) => query.bind(bytes.as_slice()),
        Value::Null => query.bind(None::<i64>),
    }
}

fn read(table: &Table, row: &SqliteRow) -> Result<Row, sqlx::Error> {
    let value = |(at, column): (usize, &Column)| match column.kind {
        Kind::RemovedId => {
            let id: Vec<u8> = row.try_get(at)?;
            let id = if id.is_empty() { Ok(Uuid::nil()) } else { Uuid::from_slice(&id) };
            id.map(Value::Id).map_err(|error| sqlx::Error::Decode(error.into()))
        }
        kind => value_of!(row, at, kind),
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// Whether there is a file, or the log of a database.
fn is_taken(place: &Path) -> bool {
    place.symlink_metadata().is_ok() || beside(place, "-wal").exists()
}

/// Moves a finished copy of this source back, if no gateway has opened it yet: the run that finished it may not have said so. Returns
/// whether it was one.
async fn take_back(place: &Path, part: &Path, from: &str) -> Result<bool, CopyError> {
    let is_free = !is_in_use(place).unwrap_or(true) && place.symlink_metadata().is_ok_and(|file| file.is_file());
    if !is_free || finished(place).await.as_deref() != Some(from) {
        return Ok(false);
    }
    let _lock = Lock::take(place)?;
    // One may have come and gone meanwhile.
    Ok(finished(place).await.as_deref() == Some(from) && rename(place, part).is_ok())
}

/// The source of a finished copy that no gateway has opened yet, or that no gateway uses.
async fn finished(place: &Path) -> Option<String> {
    if beside(place, "-wal").exists() {
        return None;
    }
    let mut connection = reader_options(place, Duration::ZERO, true).connect().await.ok()?;
    let source = sqlx::query_scalar("select text from finished_copy where position = 0").fetch_one(&mut connection);
    let source = source.await.ok();
    connection.close().await.ok()?;
    source
}

/// Moves a database that is closed, and that the disk has.
fn put_in_place(part: &Path, place: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    // What the log of another database holds would be applied to this one.
    if is_taken(place) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    rename(part, place)?;
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Renames a file, and never replaces another one.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

/// The index is made of the rows, from the first turn on.
const INDEX_ANEW: &str = "
    update search_progress set logged = (select coalesce(max(seq), 0) from log), turn = 0";

impl From<OpenError> for CopyError {
    fn from(error: OpenError) -> Self {
        Self::Open(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_moved_replaces_nothing() {
        let folder = tempfile::tempdir().expect("a folder is made");
        let [part, place] = ["a.db.copy", "a.db"].map(|name| folder.path().join(name));
        fs::write(&part, "copy").expect("it is written");

        for other in [place.clone(), beside(&place, "-wal")] {
            fs::write(&other, "mine").expect("it is written");
            let refused = put_in_place(&part, &place).expect_err("something is there");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{refused}");
            assert_eq!(fs::read(&other).expect("it is read"), b"mine");
            fs::remove_file(&other).expect("it is removed");
        }
        fs::write(&place, "mine").expect("it is written");
        let refused = rename(&part, &place).expect_err("something is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{refused}");
        fs::remove_file(&place).expect("it is removed");

        put_in_place(&part, &place).expect("it is moved");
        assert!(!part.exists() && fs::read(&place).expect("it is read") == b"copy");
    }
}
