//! Reads a database of another program, and writes nothing: neither into it nor beside it.

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, types::ValueRef};

use super::lock::beside;

/// How long the query may take. The schema is the other program's: a view may have no end.
const LIMIT: Duration = Duration::from_secs(5);

/// How many instructions of SQLite's virtual machine pass between two looks at the time.
const LIMIT_CHECK: i32 = 10_000;

const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A row: its columns as text. `None`: null, or neither text nor a whole number.
pub type ForeignRow = Vec<Option<String>>;

/// Why a database of another program was not read.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("it is not a file")]
    NotAFile,
    #[error("another program writes to it, or was stopped while it did")]
    Locked,
    /// SQLite reads a log only with its index (`-shm`), and would write a new one.
    #[error("its newest changes are in a log that only its own program can read")]
    LogWithoutIndex,
    #[error("it is damaged, or no database")]
    Damaged,
    #[error("its tables are not as expected")]
    UnknownTables,
    #[error("it holds more than {max_bytes} bytes of what is read")]
    TooLarge { max_bytes: usize },
    #[error("to read it takes too long")]
    TooSlow,
    #[error("it cannot be opened")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<rusqlite::Error> for ForeignError {
    fn from(error: rusqlite::Error) -> Self {
        let code = match &error {
            rusqlite::Error::SqlInputError { error, .. } => Some(error.code),
            _ => error.sqlite_error_code(),
        };
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            Some(ErrorCode::OperationInterrupted) => Self::TooSlow,
            // What SQLite says of a table or a column that is missing.
            Some(ErrorCode::Unknown) => Self::UnknownTables,
            _ => Self::Unreadable(error.into()),
        }
    }
}

/// The rows that `sql` selects from the database at `path`, also while its program writes to it. `max_bytes` bounds all of them
/// together. A single large value should be left out by `sql`: SQLite reads the whole value before it is counted.
///
/// # Errors
/// When it cannot be read.
pub fn read_foreign(path: &Path, sql: &'static str, max_bytes: usize) -> Result<Vec<ForeignRow>, ForeignError> {
    let connection = open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch("pragma trusted_schema = off")?;
    let begun = Instant::now();
    connection.progress_handler(LIMIT_CHECK, Some(move || begun.elapsed() > LIMIT));
    rows(&connection, sql, max_bytes)
}

/// Opens it so that SQLite creates and changes no file.
fn open(path: &Path) -> Result<Connection, ForeignError> {
    let unreadable = |error: io::Error| ForeignError::Unreadable(error.into());
    // The log is beside the file itself, not beside a link to it.
    let path = fs::canonicalize(path).map_err(unreadable)?;
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(ForeignError::NotAFile);
    }
    if beside(&path, "-journal").exists() {
        return Err(ForeignError::Locked);
    }
    let log = match fs::metadata(beside(&path, "-wal")) {
        Ok(log) => Some(log.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(error)),
    };
    let how = if log.is_some() && beside(&path, "-shm").exists() {
        // The index is read as it is: unixOpenSharedMemory in <https://www.sqlite.org/src/file/src/os_unix.c>.
        "readonly_shm=1"
    } else if log.unwrap_or(0) == 0 {
        // Nobody writes, so that no lock is needed and no file beside it.
        "immutable=1"
    } else {
        return Err(ForeignError::LogWithoutIndex);
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(format!("file:{}?mode=ro&{how}", escaped(&path)), flags)?)
}

/// A path inside a URI (<https://www.sqlite.org/uri.html>).
fn escaped(path: &Path) -> String {
    let mut escaped = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/.-_".contains(byte) {
            escaped.push(char::from(*byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn rows(connection: &Connection, sql: &str, max_bytes: usize) -> Result<Vec<ForeignRow>, ForeignError> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let (mut rows, mut found, mut bytes) = (statement.query([])?, Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get_ref(column).map(text));
        let values = values.collect::<rusqlite::Result<ForeignRow>>()?;
        bytes += size_of_val(values.as_slice()) + values.iter().flatten().map(String::len).sum::<usize>();
        if bytes > max_bytes {
            return Err(ForeignError::TooLarge { max_bytes });
        }
        found.push(values);
    }
    Ok(found)
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const SQL: &str = "select id, name from jobs order by id";

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory is made")
    }

    /// A database with two rows, and a connection to it.
    fn made(path: &Path, journal: &str) -> Connection {
        let connection = Connection::open(path).expect("it opens");
        let sql = "create table jobs (id integer, name text);
            insert into jobs values (1, 'one'), (2, null);";
        connection.execute_batch(&format!("pragma journal_mode = {journal}; {sql}")).expect("it is written");
        connection
    }

    /// The files in a folder, and what they hold. The connections of one process share the index of a log, and write to it.
    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(folder).expect("it is read").map(|entry| entry.expect("it is read").path());
        let content =
            |file: &PathBuf| if file.to_string_lossy().ends_with("-shm") { Ok(Vec::new()) } else { fs::read(file) };
        let mut files: Vec<_> = entries.map(|file| (file.clone(), content(&file).expect("it is read"))).collect();
        files.sort();
        files
    }

    #[test]
    fn what_is_in_the_log_of_a_running_program_is_read_and_nothing_is_written() {
        let folder = folder();
        let path = folder.path().join("a b?#%.sqlite");
        let expected = vec![vec![Some("1".to_owned()), Some("one".to_owned())], vec![Some("2".to_owned()), None]];

        let running = made(&path, "wal");
        let before = files(folder.path());
        let read = read_foreign(&path, SQL, 1000).expect("it is read");

        assert_eq!(read, expected);
        assert_eq!(before.len(), 3, "there is a log with its index");
        assert_eq!(files(folder.path()), before);

        drop(running);
        let before = files(folder.path());
        let read = read_foreign(&path, SQL, 1000).expect("it is read");

        assert_eq!(read, expected);
        assert_eq!(before.len(), 1);
        assert_eq!(files(folder.path()), before);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_stays_as_it_is() {
        let folder = folder();
        let file = |name: &str| folder.path().join(name);
        let running = made(&file("log"), "wal");
        fs::copy(file("log"), file("copy")).expect("it is copied");
        fs::copy(file("log-wal"), file("copy-wal")).expect("it is copied");
        drop(running);
        drop(made(&file("good"), "delete"));
        drop(made(&file("busy"), "delete"));
        fs::write(file("busy-journal"), "x").expect("it is written");
        fs::write(file("text"), "no database".repeat(1000)).expect("it is written");
        fs::write(file("empty"), "").expect("it is written");
        let before = files(folder.path());

        let endless = "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n";
        let read = |name: &str, sql, max_bytes| read_foreign(&file(name), sql, max_bytes).expect_err("it is not read");

        assert!(matches!(read("copy", SQL, 1000), ForeignError::LogWithoutIndex));
        assert!(matches!(read("busy", SQL, 1000), ForeignError::Locked));
        assert!(matches!(read("text", SQL, 1000), ForeignError::Damaged));
        assert!(matches!(read("empty", SQL, 1000), ForeignError::UnknownTables));
        assert!(matches!(read("good", "select other from jobs", 1000), ForeignError::UnknownTables));
        assert!(matches!(read("good", SQL, 10), ForeignError::TooLarge { max_bytes: 10 }));
        assert!(matches!(read("good", endless, 1000), ForeignError::TooLarge { .. }));
        assert!(matches!(read("missing", SQL, 1000), ForeignError::Unreadable(_)));
        assert!(matches!(read_foreign(folder.path(), SQL, 1000), Err(ForeignError::NotAFile)));
        assert_eq!(files(folder.path()), before);
    }
}
