//! Copies of stores from one database to the other.

mod moving;

use std::{
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use rejoinder_core::{
    SystemClock,
    store::{InboxStore, StoreState},
};
use rejoinder_store::{
    CopyEnd, CopyError, CopyProgress, CopyReport, OpenError, OpenOptions, PostgresOpenError, PostgresOptions,
    SqliteStore, StoreCopy, TestDatabase, TestServer, copied_tables, tables_not_copied,
};
use rusqlite::{Connection, params_from_iter, types::Value};
use sqlx::{Connection as _, Executor, PgConnection};
use tempfile::TempDir;

use crate::{
    common::{new_turn, open},
    server,
};

/// How many rows [`fill`] puts into each table.
const ROWS: i64 = 5;

/// A folder for files, and a database.
struct Ends {
    folder: TempDir,
    database: TestDatabase,
}

impl Ends {
    /// `None` without a server.
    async fn new() -> Option<Self> {
        let database = server::get()?.database().await;
        Some(Self { folder: tempfile::tempdir().expect("a folder is made"), database })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sqlite(&self, name: &str) -> CopyEnd {
        CopyEnd::Sqlite(self.file(name))
    }

    fn postgres(&self) -> CopyEnd {
        postgres(&self.database)
    }

    /// A new file with rows in each table.
    async fn filled(&self, name: &str) -> CopyEnd {
        self.empty(name).await;
        fill(&self.file(name));
        self.sqlite(name)
    }

    /// A new file without rows.
    async fn empty(&self, name: &str) -> CopyEnd {
        let store = SqliteStore::open(OpenOptions::new(self.file(name))).await.expect("the store opens");
        store.close().await;
        self.sqlite(name)
    }

    async fn elsewhere(&self) -> PgConnection {
        PgConnection::connect(&self.database.url()).await.expect("the database is there")
    }
}

fn postgres(database: &TestDatabase) -> CopyEnd {
    CopyEnd::Postgres(PostgresOptions::new(database.url(), Arc::new(SystemClock)))
}

async fn copy(from: &CopyEnd, to: &CopyEnd) -> Result<CopyReport, CopyError> {
    StoreCopy::new(from.clone(), to.clone()).in_pages_of(2).run(|_| ()).await
}

/// Copies until the copy is finished: a server needs a moment to see that connections are closed.
async fn finish(from: &CopyEnd, to: &CopyEnd) -> CopyReport {
    let begun = Instant::now();
    loop {
        match copy(from, to).await {
            Ok(report) if report.is_finished => return report,
            Ok(_) | Err(CopyError::Busy { .. } | CopyError::InUse { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the copy is not finished");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Why a copy is not made. The copy before may need a moment to end.
async fn refusal(from: &CopyEnd, to: &CopyEnd) -> CopyError {
    let begun = Instant::now();
    loop {
        match copy(from, to).await.expect_err("it is refused") {
            CopyError::Busy { .. } if begun.elapsed() < Duration::from_mins(1) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            error => return error,
        }
    }
}

/// Copies until two rows of a table are there, and stops as if the process was killed.
async fn interrupt(from: &CopyEnd, to: &CopyEnd, table: &str) {
    let begun = Instant::now();
    loop {
        let copy = StoreCopy::new(from.clone(), to.clone()).in_pages_of(2);
        let run = copy.run(|CopyProgress { table: at, rows }| assert!(at != table || rows < 2, "interrupted"));
        match AssertUnwindSafe(run).catch_unwind().await {
            Err(_) => return,
            Ok(Err(CopyError::Busy { .. })) => {}
            Ok(other) => panic!("it was not interrupted in {table}: {other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the copy before has not ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("it opens");
    connection.execute_batch("pragma foreign_keys = off").expect("it is set");
    connection
}

/// Puts [`ROWS`] rows into each table.
fn fill(path: &Path) {
    let connection = connect(path);
    for table in copied_tables() {
        let types = types(&connection, table.name);
        for number in 1..=ROWS {
            let values = table.sqlite.iter().map(|column| value(table.name, column, &types, number));
            let marks = vec!["?"; table.sqlite.len()].join(", ");
            let sql = format!("insert into {} ({}) values ({marks})", table.name, table.sqlite.join(", "));
            let inserted = connection.execute(&sql, params_from_iter(values));
            inserted.unwrap_or_else(|error| panic!("{}: {error}", table.name));
        }
    }
}

/// The columns of a table with their types, and whether they may be null.
fn types(connection: &Connection, table: &str) -> Vec<(String, String, bool)> {
    let sql = "select name, type, \"notnull\" = 0 and pk = 0 from pragma_table_info(?)";
    let mut statement = connection.prepare(sql).expect("it is prepared");
    let read = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    read.expect("columns are read").map(|column| column.expect("it is read")).collect()
}

/// A value of the row with this number: all ids of a row are the same, so that it refers to rows that exist.
fn value(table: &str, column: &str, types: &[(String, String, bool)], number: i64) -> Value {
    const FLAGS: [&str; 10] =
        ["is_home", "account", "left_out", "owed", "absent", "is_copy", "parked", "stopped", "free_text", "muted"];
    const JSON: [&str; 6] = ["details", "usage", "author", "forwarded", "action", "message_ids"];
    let (kind, may_be_null) = types
        .iter()
        .find(|(name, ..)| name == column)
        .map_or(("INTEGER", false), |(_, kind, may_be_null)| (kind.as_str(), *may_be_null));
    let byte = u8::try_from(number).expect("it is small");
    let begin = ["a", "Z", "ä", "\u{ffff}", "\u{10000}"][usize::from(byte) - 1];
    match (table, column, kind) {
        // A row has an agent or a command.
        ("turns", "command", _) => Value::Null,
        ("turns", "agent", _) => Value::Text(begin.to_owned()),
        // Not the order of the key.
        ("questions", "rowid", _) => Value::Integer(10 - number),
        // Of a notice that is about no turn.
        ("agent_notices", "turn_id", _) if number == 1 => Value::Blob(Vec::new()),
        _ if may_be_null && number == 3 => Value::Null,
        (_, _, "BLOB") => Value::Blob(vec![byte; 16]),
        (_, _, "INTEGER") if FLAGS.contains(&column) => Value::Integer(number % 2),
        (_, _, "INTEGER") => Value::Integer(number),
        _ if JSON.contains(&column) => Value::Text(format!(r#"{{"a":["{begin}",{number}],"bb":null}}"#)),
        _ => Value::Text(format!("{begin} {column}")),
    }
}

/// The tables of which two files have different rows.
fn differences(one: &Path, other: &Path) -> Vec<&'static str> {
    let connection = connect(one);
    connection.execute("attach ? as other", [other.display().to_string()]).expect("it is attached");
    let differs = |table: &rejoinder_store::TableOfCopy| {
        let (name, columns) = (table.name, table.sqlite.join(", "));
        let more = |one: &str, other: &str| {
            let sql = format!(
                "select count(*) from (select {columns} from {one}.{name} except select {columns} from {other}.{name})"
            );
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).expect("they are compared")
        };
        more("main", "other") + more("other", "main") > 0
    };
    copied_tables().iter().filter(|table| differs(table)).map(|table| table.name).collect()
}

async fn text(connection: &mut PgConnection, sql: &'static str) -> String {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("it is read")
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("it is read")
}

/// All constraints and indexes of a database.
const RULES: &str = r"
    select string_agg(definition, E'\n' order by definition) from (
        select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as definition
        from pg_constraint where connamespace = 'public'::regnamespace
        union all select indexdef from pg_indexes where schemaname = 'public') as rules";

/// Why a database could not be opened.
fn opening<T: std::error::Error + 'static>(error: &CopyError) -> Option<&T> {
    match error {
        CopyError::Open(error) => error.downcast_ref(),
        _ => None,
    }
}

/// A table or column that is not in the list would be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_copied_is_all_that_both_databases_have() {
    let Some(ends) = Ends::new().await else { return };
    let copied = copied_tables();
    ends.empty("a.db").await;
    let (sqlite, mut postgres) = (connect(&ends.file("a.db")), ends.elsewhere().await);

    let sql = "select name from pragma_table_list where schema = 'main' and type in ('table', 'virtual')
        and name not like 'sqlite\\_%' escape '\\'";
    let mut statement = sqlite.prepare(sql).expect("it is prepared");
    let tables = statement.query_map([], |row| row.get(0)).expect("tables are read");
    let in_sqlite: Vec<String> = tables.map(|table| table.expect("it is read")).collect();
    let sql =
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')";
    let in_postgres: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut postgres).await.expect("tables are read");
    for name in in_sqlite.iter().chain(&in_postgres) {
        // Each list of tables has those that are the search's own in SQLite, or are only in one of the two.
        let is_copied = copied.iter().any(|table| table.name == name);
        let is_left_out = tables_not_copied().contains(&name.as_str());
        assert!(is_copied != is_left_out || name.starts_with("search_"), "{name}");
    }

    for table in copied {
        let sorted = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort();
            names
        };
        let mut columns: Vec<String> = types(&sqlite, table.name).into_iter().map(|(name, ..)| name).collect();
        columns.extend(table.sqlite.iter().filter(|name| **name == "rowid").map(|name| (*name).to_owned()));
        columns.sort();
        assert_eq!(columns, sorted(&table.sqlite), "{} in SQLite", table.name);
        let sql = "select column_name::text from information_schema.columns
            where table_schema = 'public' and table_name = $1";
        let columns: Vec<String> =
            sqlx::query_scalar(sql).bind(table.name).fetch_all(&mut postgres).await.expect("columns are read");
        let mut columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        columns.sort_unstable();
        assert_eq!(columns, sorted(&table.postgres), "{} in PostgreSQL", table.name);
        let sql = "select string_agg(a.attname, ', ' order by k.place) from pg_index as i
            cross join unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
            join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
            where i.indrelid = $1::regclass and i.indisprimary";
        let key: String =
            sqlx::query_scalar(sql).bind(table.name).fetch_one(&mut postgres).await.expect("the key is read");
        assert_eq!(key, table.postgres[..table.keys].join(", "), "the key of {}", table.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_and_its_copy_back_have_the_same_rows() {
    let Some(ends) = Ends::new().await else { return };
    let server = server::get().expect("there is a server");
    let (empty, other) = (server.database().await, server.create(TestServer::EMPTY).await);
    let from = ends.filled("a.db").await;

    let there = finish(&from, &ends.postgres()).await;
    let back = finish(&ends.postgres(), &ends.sqlite("b.db")).await;
    let again = finish(&ends.sqlite("b.db"), &postgres(&other)).await;

    assert_eq!(differences(&ends.file("a.db"), &ends.file("b.db")), [""; 0]);
    for ((one, two), three) in there.tables.iter().zip(&back.tables).zip(&again.tables) {
        assert_eq!((one.name, one.digest, one.rows), (two.name, two.digest, two.rows));
        assert_eq!((one.name, one.digest, one.rows), (three.name, three.digest, three.rows));
        let rows = if one.name == "versions" { 8 } else { 5 };
        assert_eq!((one.rows, one.left_out), (rows, 0), "{}", one.name);
    }
    // Both databases are stores, and not known as copies any more.
    open(&ends.database.url()).await.close().await;
    let mut connection = ends.elsewhere().await;
    let mut expected = PgConnection::connect(&empty.url()).await.expect("the database is there");
    assert_eq!(text(&mut connection, RULES).await, text(&mut expected, RULES).await);
    for sql in [
        "select nextval('turn_seq')",
        "select nextval('event_seq')",
        "select nextval('log_seq')",
        "select nextval('claim_seq') << 16",
        "select nextval(pg_get_serial_sequence('questions', 'seq'))",
        "select nextval(pg_get_serial_sequence('log_lines', 'id'))",
        "select nextval(pg_get_serial_sequence('errors', 'id'))",
    ] {
        assert!(number(&mut connection, sql).await > ROWS, "{sql}");
    }
    let store = SqliteStore::open(OpenOptions::new(ends.file("b.db"))).await.expect("it opens");
    store.close().await;
    let left: Vec<_> = ends.folder.path().read_dir().expect("it is read").flatten().map(|it| it.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".copy")), "{left:?}");
}

/// Lines of the log that were removed are not written again under the same id, which pages of the list begin at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ids_of_removed_lines_are_not_used_again() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;
    connect(&ends.file("a.db"))
        .execute_batch(
            "insert into log_lines
            select 900, at, level, target, message, null, null, fields from log_lines where id = 1;
            delete from log_lines where id > 2",
        )
        .expect("lines are removed");

    finish(&from, &ends.postgres()).await;
    finish(&ends.postgres(), &ends.sqlite("b.db")).await;

    let next = "select nextval(pg_get_serial_sequence('log_lines', 'id'))";
    assert_eq!(number(&mut ends.elsewhere().await, next).await, 901);
    let last = "select seq from sqlite_sequence where name = 'log_lines'";
    let last: i64 = connect(&ends.file("b.db")).query_row(last, [], |row| row.get(0)).expect("it is read");
    assert_eq!(last, 900);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_goes_on_wherever_it_was_interrupted() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;
    let copied = copied_tables();

    for (number, table) in copied.iter().enumerate() {
        interrupt(&from, &ends.postgres(), table.name).await;
        if number % 10 == 0 {
            // Neither a gateway nor another copy takes it for a store.
            let options = PostgresOptions::new(ends.database.url(), Arc::new(SystemClock));
            let opened = options.open().await.err();
            assert!(matches!(opened, Some(PostgresOpenError::Unfinished { .. })), "{opened:?}");
            let copied = copy(&ends.postgres(), &ends.sqlite("c.db")).await;
            let copied = copied.expect_err("it is unfinished");
            assert!(matches!(opening(&copied), Some(PostgresOpenError::Unfinished { .. })), "{copied:?}");
        }
    }
    let there = finish(&from, &ends.postgres()).await;
    for (number, table) in copied.iter().enumerate() {
        interrupt(&ends.postgres(), &ends.sqlite("b.db"), table.name).await;
        if number % 10 == 0 {
            assert!(!ends.file("b.db").exists() && ends.file("b.db.copy").exists());
        }
    }
    let back = finish(&ends.postgres(), &ends.sqlite("b.db")).await;

    // What was there is not written again.
    for report in [&there, &back] {
        assert_eq!(report.tables.iter().map(|table| table.written).sum::<usize>(), 3, "{report:?}");
        assert_eq!(report.tables.last().map(|table| table.written), Some(3));
    }
    assert_eq!(differences(&ends.file("a.db"), &ends.file("b.db")), [""; 0]);
}

/// What a gateway does in a source while it is copied comes with the next run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_in_the_source_is_copied_by_the_next_run() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;
    let store = SqliteStore::open(OpenOptions::new(ends.file("a.db"))).await.expect("it opens");
    let begun = copy(&from, &ends.postgres()).await.expect("it is copied");
    assert!(!begun.is_finished);

    store.accept(vec![new_turn("new")], None).await.expect("the event is accepted");
    let later = copy(&from, &ends.postgres()).await.expect("it is copied");
    store.close().await;
    connect(&ends.file("a.db"))
        .execute_batch(
            // Two rows exchange what only one may have.
            "update tokens set hash = x'00' where id = x'01010101010101010101010101010101';
            update tokens set hash = x'01010101010101010101010101010101' where id = x'05050505050505050505050505050505';
            update tokens set hash = x'05050505050505050505050505050505' where id = x'01010101010101010101010101010101';
            update deliveries set action = '{\"a\":1}' where seq = 3;
            delete from log where seq in (1, 2, 5)",
        )
        .expect("it is changed");
    let last = finish(&from, &ends.postgres()).await;
    finish(&ends.postgres(), &ends.sqlite("b.db")).await;

    let of = |report: &CopyReport, name: &str| {
        let table = report.tables.iter().find(|table| table.name == name).expect("it is copied").clone();
        (table.rows, table.written, table.removed)
    };
    assert!(!later.is_finished);
    assert_eq!((of(&later, "turns"), of(&later, "tokens")), ((6, 1, 0), (5, 0, 0)));
    assert_eq!((of(&last, "turns"), of(&last, "tokens"), of(&last, "deliveries")), ((6, 0, 0), (5, 2, 0), (5, 1, 0)));
    assert_eq!(of(&last, "log").2, 3);
    // The new event is JSON with its fields in another order.
    assert_eq!(differences(&ends.file("a.db"), &ends.file("b.db")), ["events"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_store_that_is_open_is_not_finished() {
    let Some(ends) = Ends::new().await else { return };
    let store = open(&ends.database.url()).await;
    store.accept(vec![new_turn("1")], None).await.expect("the event is accepted");

    let begun = copy(&ends.postgres(), &ends.sqlite("a.db")).await.expect("it is copied");
    store.accept(vec![new_turn("2")], None).await.expect("the event is accepted");
    store.close().await;
    let done = finish(&ends.postgres(), &ends.sqlite("a.db")).await;

    let turns = |report: &CopyReport| report.tables.iter().find(|table| table.name == "turns").map(|table| table.rows);
    assert!(!begun.is_finished);
    assert_eq!((turns(&begun), turns(&done)), (Some(1), Some(2)));
}

/// PostgreSQL does not store U+0000, which old rows of SQLite may have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nuls_are_left_out() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;
    let connection = connect(&ends.file("a.db"));
    for (sql, text) in [
        ("update people set name = ? where created_at = 1", "a\0b"),
        ("update conversations set chat = ? where created_at = 1", "a\0b"),
        ("update identities set id = ? where added_at = 1", "a\0b"),
        ("update events set details = ? where seq = 1", r#"{"said":"a\u0000b"}"#),
        ("update log_lines set fields = ? where id = 1", r#"{"said":"a\u0000b"}"#),
    ] {
        assert_eq!(connection.execute(sql, [text]).expect("it is changed"), 1, "{sql}");
    }
    drop(connection);

    let report = finish(&from, &ends.postgres()).await;

    let mut connection = ends.elsewhere().await;
    for (sql, expected) in [
        ("select name from people where created_at = 1", "ab"),
        ("select chat from conversations where created_at = 1", "a\u{fffd}b"),
        ("select details #>> '{said}' from events where seq = 1", "ab"),
        ("select fields::json #>> '{said}' from log_lines where id = 1", "ab"),
        ("select count(*)::text from identities", "4"),
    ] {
        assert_eq!(text(&mut connection, sql).await, expected, "{sql}");
    }
    let left_out = report.tables.iter().filter(|table| table.left_out > 0);
    assert_eq!(left_out.map(|table| (table.name, table.left_out)).collect::<Vec<_>>(), [("identities", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_copied_stays_as_it_is() {
    let Some(ends) = Ends::new().await else { return };
    let server = server::get().expect("there is a server");
    let (from, other) = (ends.filled("a.db").await, ends.empty("other.db").await);

    let used = server.database().await;
    let store = open(&used.url()).await;
    store.probe().await.expect("it writes");
    let in_use = refusal(&from, &postgres(&used)).await;
    assert!(matches!(in_use, CopyError::InUse { .. }), "{in_use:?}");
    store.accept(vec![new_turn("1")], None).await.expect("the event is accepted");
    store.close().await;
    let not_empty = refusal(&from, &postgres(&used)).await;
    assert!(matches!(not_empty, CopyError::NotEmpty { .. }), "{not_empty:?}");
    open(&used.url()).await.close().await;

    interrupt(&from, &ends.postgres(), "turns").await;
    let other_source = refusal(&other, &ends.postgres()).await;
    assert!(matches!(other_source, CopyError::OtherSource { .. }), "{other_source:?}");

    let exists = refusal(&postgres(&used), &other).await;
    assert!(matches!(exists, CopyError::Exists { .. }), "{exists:?}");
    let both = refusal(&from, &ends.sqlite("b.db")).await;
    assert!(matches!(both, CopyError::BothSqlite), "{both:?}");
    let both = refusal(&postgres(&used), &ends.postgres()).await;
    assert!(matches!(both, CopyError::BothPostgres), "{both:?}");
    let missing = refusal(&ends.sqlite("none.db"), &ends.postgres()).await;
    assert!(matches!(opening(&missing), Some(OpenError::Missing { .. })), "{missing:?}");

    let bare = server.create(TestServer::EMPTY).await;
    let no_store = refusal(&postgres(&bare), &ends.sqlite("b.db")).await;
    assert!(matches!(opening(&no_store), Some(PostgresOpenError::Empty { .. })), "{no_store:?}");
    let mut connection = PgConnection::connect(&used.url()).await.expect("the database is there");
    let newer =
        "insert into _sqlx_migrations select 900, 'next', now(), true, checksum, 0 from _sqlx_migrations limit 1";
    connection.execute(newer).await.expect("it is written");
    let newer = refusal(&postgres(&used), &ends.sqlite("b.db")).await;
    assert!(matches!(opening(&newer), Some(PostgresOpenError::Newer { found: 900, .. })), "{newer:?}");
    assert!(!ends.file("b.db").exists() && !ends.file("b.db.copy").exists());
}

/// The process may end when the copy is finished, and before it has said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_copy_is_finished_again_until_a_gateway_opens_it() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;

    let there = [finish(&from, &ends.postgres()).await, finish(&from, &ends.postgres()).await];
    let to_file = ends.sqlite("b.db");
    let back = [finish(&ends.postgres(), &to_file).await, finish(&ends.postgres(), &to_file).await];

    for [first, again] in [there, back] {
        assert_eq!(again.tables.iter().map(|table| table.written + table.removed).sum::<usize>(), 0, "{again:?}");
        let digests = |report: &CopyReport| report.tables.iter().map(|table| table.digest).collect::<Vec<_>>();
        assert_eq!(digests(&first), digests(&again));
    }
    open(&ends.database.url()).await.close().await;
    SqliteStore::open(OpenOptions::new(ends.file("b.db"))).await.expect("it opens").close().await;
    let not_empty = refusal(&from, &ends.postgres()).await;
    assert!(matches!(not_empty, CopyError::NotEmpty { .. }), "{not_empty:?}");
    let exists = refusal(&ends.postgres(), &to_file).await;
    assert!(matches!(exists, CopyError::Exists { .. }), "{exists:?}");
    assert_eq!(differences(&ends.file("a.db"), &ends.file("b.db")), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_made_in_the_place_of_a_copy_is_not_replaced() {
    let Some(ends) = Ends::new().await else { return };
    let place = ends.file("b.db");
    let make_file = |_| std::fs::write(&place, "mine").expect("it is written");

    let copied = StoreCopy::new(ends.postgres(), ends.sqlite("b.db")).run(make_file).await;

    assert!(matches!(copied, Err(CopyError::Exists { .. })), "{copied:?}");
    assert_eq!(std::fs::read(&place).expect("it is read"), b"mine");
    std::fs::remove_file(&place).expect("it is removed");
    finish(&ends.postgres(), &ends.sqlite("b.db")).await;
}

/// A run was killed when it had noted what it copies. A moment before, a gateway had opened the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_opened_while_a_copy_begins_stays_a_store() {
    let Some(ends) = Ends::new().await else { return };
    let (from, mut connection) = (ends.filled("a.db").await, ends.elsewhere().await);
    let store = open(&ends.database.url()).await;
    let rules = text(&mut connection, RULES).await;
    let name = format!("sqlite:{}", ends.file("a.db").canonicalize().expect("it is there").display());
    let begun = "create table begun_copy (position bigint primary key, text text not null)";
    connection.execute(begun).await.expect("it is made");
    let note = sqlx::query("insert into begun_copy values (0, $1)").bind(name);
    note.execute(&mut connection).await.expect("it is noted");

    let in_use = refusal(&from, &ends.postgres()).await;

    assert!(matches!(in_use, CopyError::InUse { .. }), "{in_use:?}");
    assert_eq!(text(&mut connection, RULES).await, rules);
    store.probe().await.expect("it writes");
    store.close().await;
    open(&ends.database.url()).await.close().await;
}

/// A source in which a row refers to none is copied, but no store is made of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_refer_to_nothing_are_reported() {
    let Some(ends) = Ends::new().await else { return };
    let from = ends.filled("a.db").await;
    connect(&ends.file("a.db")).execute_batch("delete from people where created_at = 1").expect("it is removed");

    let copied = copy(&from, &ends.postgres()).await;

    let Err(CopyError::Broken { reason, .. }) = copied else { panic!("{copied:?}") };
    assert!(reason.contains("identities_person_id_fkey"), "{reason}");
}
