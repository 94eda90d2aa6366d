//! A PostgreSQL database as the source or the target of a copy.

use sqlx::{
    AssertSqlSafe, Connection as _, PgConnection, Postgres,
    postgres::{PgArguments, PgRow},
    query::Query,
};
use uuid::Uuid;

use super::{
    error::PostgresOpenError,
    open::{IS_BEGUN, PostgresOptions, Use},
    schema::{check, migrate},
};
use crate::shared::copying::{
    side::{CopyError, Side},
    tables::{Column, Range, Row, TABLES, Table},
    values::{Kind, Value, value_of},
};

/// A target has no foreign keys and no unique columns but its keys until it is a store: rows are copied table by table, and of a source
/// that is written to each page is of another moment.
pub(crate) struct PostgresSide {
    connection: PgConnection,
    name: String,
}

impl PostgresSide {
    pub(crate) async fn source(options: &PostgresOptions) -> Result<Self, CopyError> {
        let mut side = Self::connect(options, Use::Read).await?;
        if side.is_begun().await? {
            return Err(PostgresOpenError::Unfinished { database: side.name }.into());
        }
        check(&mut side.connection, &side.name).await?;
        Ok(side)
    }

    /// A target of a copy from the database with this name.
    pub(crate) async fn target(options: &PostgresOptions, from: &str) -> Result<Self, CopyError> {
        let mut side = Self::connect(options, Use::Write).await?;
        let is_alone: bool = side.scalar("begun_copy", LOCK).await?;
        if !is_alone {
            return Err(CopyError::Busy { database: side.name });
        }
        match check(&mut side.connection, &side.name).await {
            Err(PostgresOpenError::Empty { .. }) => migrate(&mut side.connection, &side.name).await?,
            checked => checked?,
        }
        // What is lost when the server fails is copied by the next run. The end of the last one is not lost.
        side.execute("begun_copy", "set synchronous_commit = off").await?;
        side.begin(from).await?;
        Ok(side)
    }

    async fn connect(options: &PostgresOptions, purpose: Use) -> Result<Self, CopyError> {
        let (connection, name) = options.connect(purpose).await?;
        Ok(Self { connection, name })
    }

    async fn is_begun(&mut self) -> Result<bool, CopyError> {
        self.scalar("begun_copy", IS_BEGUN).await
    }

    /// The source of a finished copy that no gateway has opened yet.
    async fn finished(&mut self) -> Result<Option<String>, CopyError> {
        if self.scalar("finished_copy", "select to_regclass('finished_copy') is null").await? {
            return Ok(None);
        }
        self.scalar("finished_copy", "select text from finished_copy where position = 0").await.map(Some)
    }

    /// Notes what is copied, and drops the rules that do not hold meanwhile.
    async fn begin(&mut self, from: &str) -> Result<(), CopyError> {
        if !self.is_begun().await? {
            let finished = self.finished().await?;
            // The run that finished it may not have said so.
            let is_again = finished.as_deref() == Some(from);
            self.check_free(is_again).await?;
            if is_again {
                self.execute("finished_copy", "alter table finished_copy rename to begun_copy").await?;
            } else {
                self.note(from, finished.is_some()).await?;
            }
        }
        let other: String = self.scalar("begun_copy", "select text from begun_copy where position = 0").await?;
        if other != from {
            return Err(CopyError::OtherSource { database: self.name.clone(), from: from.to_owned(), other });
        }
        if self.scalar("begun_copy", "select exists (select 1 from begun_copy where position > 0)").await? {
            return Ok(());
        }
        // From now on no gateway opens the database. One that did so a moment before is still there.
        let is_again = self.scalar("begun_copy", "select exists (select 1 from begun_copy where position < 0)").await?;
        if let Err(error) = self.check_free(is_again).await {
            // It is a store.
            self.execute("begun_copy", "drop table begun_copy").await?;
            return Err(error);
        }
        let dropped = self.drop_rules().await;
        dropped.map_err(|error| CopyError::of(&self.name, "begun_copy", error))
    }

    /// Fails if a gateway uses the database, or if it has rows which are not of an earlier copy.
    async fn check_free(&mut self, may_have_rows: bool) -> Result<(), CopyError> {
        // `versions` has a row for each noun from the beginning.
        for table in TABLES.iter().filter(|table| !may_have_rows && table.name != "versions") {
            let sql = AssertSqlSafe(format!("select exists (select 1 from {})", table.name));
            let has_rows: Result<bool, _> = sqlx::query_scalar(sql).fetch_one(&mut self.connection).await;
            if has_rows.map_err(|error| CopyError::of(&self.name, table.name, error))? {
                return Err(CopyError::NotEmpty { database: self.name.clone(), table: table.name });
            }
        }
        self.check_unused().await
    }

    async fn check_unused(&mut self) -> Result<(), CopyError> {
        let is_in_use: bool = self.scalar("nodes", IN_USE).await?;
        if is_in_use { Err(CopyError::InUse { database: self.name.clone() }) } else { Ok(()) }
    }

    /// `is_finished`: it is a copy of another source, which had no rows.
    async fn note(&mut self, from: &str, is_finished: bool) -> Result<(), CopyError> {
        let noted = async {
            let mut transaction = self.connection.begin().await?;
            if is_finished {
                sqlx::query("drop table finished_copy").execute(&mut *transaction).await?;
            }
            sqlx::query(MAKE_BEGUN).execute(&mut *transaction).await?;
            sqlx::query(NOTE).bind(0_i64).bind(from).execute(&mut *transaction).await?;
            transaction.commit().await
        };
        let noted: Result<(), sqlx::Error> = noted.await;
        noted.map_err(|error| CopyError::of(&self.name, "begun_copy", error))
    }

    async fn drop_rules(&mut self) -> Result<(), sqlx::Error> {
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let mut transaction = self.connection.begin().await?;
        let rules: Vec<(String, String)> =
            sqlx::query_as(SELECT_RULES).bind(&tables).fetch_all(&mut *transaction).await?;
        // In the opposite order they can be made again.
        for (position, (_, made)) in (1_i64..).zip(rules.iter().rev()) {
            sqlx::query(NOTE).bind(position).bind(made.as_str()).execute(&mut *transaction).await?;
        }
        for (dropped, _) in &rules {
            sqlx::query(AssertSqlSafe(dropped.as_str())).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn execute(&mut self, what: &'static str, sql: &'static str) -> Result<(), CopyError> {
        let done = sqlx::query(sql).execute(&mut self.connection).await;
        done.map(drop).map_err(|error| CopyError::of(&self.name, what, error))
    }

    /// The only value that a statement reads.
    async fn scalar<T>(&mut self, what: &'static str, sql: &'static str) -> Result<T, CopyError>
    where
        T: for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres> + Send + Unpin,
    {
        let value = sqlx::query_scalar(sql).fetch_one(&mut self.connection).await;
        value.map_err(|error| CopyError::of(&self.name, what, error))
    }

    /// The database becomes a store.
    async fn make_store(&mut self, last_line: i64) -> Result<(), sqlx::Error> {
        let mut transaction = self.connection.begin().await?;
        sqlx::query("set local synchronous_commit = on").execute(&mut *transaction).await?;
        let rules = sqlx::query_scalar("select text from begun_copy where position > 0 order by position");
        let rules: Vec<String> = rules.fetch_all(&mut *transaction).await?;
        for rule in rules {
            sqlx::query(AssertSqlSafe(rule)).execute(&mut *transaction).await?;
        }
        for (sequence, last, table) in SEQUENCES {
            let sql = format!("select setval('{sequence}', greatest(coalesce(max({last}), 0), 1)) from {table}");
            sqlx::query(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
        }
        for (table, column) in IDENTITIES {
            let sql = format!(
                "select setval(pg_get_serial_sequence('{table}', '{column}'), greatest(coalesce(max({column}), 0), 1))
                from {table}"
            );
            sqlx::query(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
        }
        sqlx::query(SET_LAST_LINE).bind(last_line).execute(&mut *transaction).await?;
        for sql in [INDEX_ANEW, FORGET_RULES, MARK_FINISHED, "alter table begun_copy rename to finished_copy"] {
            sqlx::query(sql).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }
}

impl Side for PostgresSide {
    fn name(&self) -> &str {
        &self.name
    }

    /// Locks what each transaction of a store writes to, as long as nobody uses it.
    async fn hold(&mut self) -> Result<bool, CopyError> {
        let is_in_use: bool = self.scalar("nodes", IN_USE).await?;
        if is_in_use {
            return Ok(false);
        }
        for sql in ["begin", "set local lock_timeout = '5s'", "lock table nodes, writers in share mode"] {
            self.execute("nodes", sql).await?;
        }
        // Until then, one may have come.
        let is_in_use: bool = self.scalar("nodes", IN_USE).await?;
        if is_in_use {
            self.execute("nodes", "rollback").await?;
        }
        Ok(!is_in_use)
    }

    async fn rows(&mut self, table: &'static Table, range: &Range<'_>, limit: usize) -> Result<Vec<Row>, CopyError> {
        let sql = table.select(range, limit, |column| match column.kind {
            Kind::Json => format!("{}::text", column.name),
            _ => column.name.to_owned(),
        });
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (_, value) in range.values() {
            query = bound(query, value);
        }
        let rows = query.fetch_all(&mut self.connection).await;
        let rows = rows.and_then(|rows| rows.iter().map(|row| read(table, row)).collect());
        rows.map_err(|error| CopyError::of(&self.name, table.name, error))
    }

    async fn remove(&mut self, table: &'static Table, rows: &[Row]) -> Result<(), CopyError> {
        let columns = &table.columns[..table.keys];
        let sql = format!(
            "delete from {} where ({}) in (select * from unnest({}))",
            table.name,
            table.key_names(),
            arrays(columns.iter())
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (at, column) in columns.iter().enumerate() {
            query = bound_array(query, column.kind, rows.iter().map(|row| &row[at]));
        }
        let removed = query.execute(&mut self.connection).await;
        removed.map(drop).map_err(|error| CopyError::of(&self.name, table.name, error))
    }

    async fn insert(&mut self, table: &'static Table, rows: &[&Row]) -> Result<(), CopyError> {
        let derived: Vec<Row> = rows.iter().map(|row| table.derive(row)).collect();
        let mut query = sqlx::query(AssertSqlSafe(inserting(table)));
        for (at, column) in table.columns.iter().enumerate() {
            query = bound_array(query, column.kind, rows.iter().map(|row| &row[at]));
        }
        for (at, column) in table.derived().iter().enumerate() {
            query = bound_array(query, column.kind, derived.iter().map(|row| &row[at]));
        }
        let inserted = query.execute(&mut self.connection).await;
        inserted.map(drop).map_err(|error| CopyError::of(&self.name, table.name, error))
    }

    async fn last_line(&mut self) -> Result<i64, CopyError> {
        self.scalar("log_lines", SELECT_LAST_LINE).await
    }

    async fn finish(mut self, last_line: i64) -> Result<(), CopyError> {
        // One that was cut off from the database when the copy was begun may be back.
        self.check_unused().await?;
        self.make_store(last_line).await.map_err(|error| match error.as_database_error() {
            // Rows that a rule does not allow.
            Some(found) if found.is_foreign_key_violation() || found.is_unique_violation() => {
                CopyError::Broken { database: self.name.clone(), reason: error.to_string() }
            }
            _ => CopyError::of(&self.name, "begun_copy", error),
        })?;
        // Otherwise the server does it after a while.
        if let Err(error) = self.execute("statistics", "analyze").await {
            tracing::debug!(%error, "the copied tables were not analysed");
        }
        if let Err(error) = self.close().await {
            tracing::debug!(%error, "the connection was not closed");
        }
        Ok(())
    }

    async fn close(self) -> Result<(), CopyError> {
        let Self { connection, name } = self;
        connection.close().await.map_err(|error| CopyError::of(&name, "the connection", error))
    }
}

/// The type of a column's values, when they are given to a statement.
const fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Id | Kind::RemovedId => "uuid",
        Kind::Number | Kind::RowId => "bigint",
        Kind::Flag => "boolean",
        Kind::Text | Kind::Name | Kind::Json | Kind::JsonText => "text",
        Kind::Bytes => "bytea",
    }
}

/// The statement that inserts rows of a table. Its values are an array for each column.
fn inserting(table: &Table) -> String {
    let all = || table.columns.iter().chain(table.derived());
    let (mut listed, mut given, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
    for (number, column) in (1..).zip(all()) {
        listed.push(column.name);
        given.push(format!("c{number}"));
        inserted.push(format!("c{number}{}", if column.kind == Kind::Json { "::jsonb" } else { "" }));
    }
    format!(
        "insert into {} ({}) overriding system value select {} from unnest({}) as given ({})",
        table.name,
        listed.join(", "),
        inserted.join(", "),
        arrays(all()),
        given.join(", ")
    )
}

/// `$1::uuid[], …`: an array for each column.
fn arrays<'c>(columns: impl Iterator<Item = &'c Column>) -> String {
    let array = |(number, column): (usize, &Column)| format!("${number}::{}[]", type_of(column.kind));
    (1..).zip(columns).map(array).collect::<Vec<_>>().join(", ")
}

fn bound<'q>(query: Query<'q, Postgres, PgArguments>, value: &Value) -> Query<'q, Postgres, PgArguments> {
    match value {
        Value::Id(id) => query.bind(*id),
        Value::Number(number) => query.bind(*number),
        Value::Flag(flag) => query.bind(*flag),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Bytes(bytes) => query.bind(bytes.as_slice()),
        // No column of a key is null.
        Value::Null => query.bind(None::<i64>),
    }
}

/// Binds the values of a column as an array.
fn bound_array<'q, 'v>(
    query: Query<'q, Postgres, PgArguments>,
    kind: Kind,
    values: impl Iterator<Item = &'v Value>,
) -> Query<'q, Postgres, PgArguments> {
    /// The values of which `$value` is the variant; the others are null.
    macro_rules! array {
        ($value:ident($found:ident) as $type:ty => $made:expr) => {{
            let of = |value: &'v Value| match value {
                Value::$value($found) => Some($made),
                _ => None,
            };
            query.bind(values.map(of).collect::<Vec<Option<$type>>>())
        }};
    }
    match kind {
        Kind::Id | Kind::RemovedId => array!(Id(id) as Uuid => *id),
        Kind::Number | Kind::RowId => array!(Number(number) as i64 => *number),
        Kind::Flag => array!(Flag(flag) as bool => *flag),
        Kind::Text | Kind::Name | Kind::Json | Kind::JsonText => array!(Text(text) as &'v str => text.as_str()),
        Kind::Bytes => array!(Bytes(bytes) as &'v [u8] => bytes.as_slice()),
    }
}

fn read(table: &Table, row: &PgRow) -> Result<Row, sqlx::Error> {
    table.columns.iter().enumerate().map(|(at, column)| value_of!(row, at, column.kind)).collect()
}

/// Takes the lock of a copy into the database (`rejo:cpy` in ASCII) for as long as the connection lives. Whether it was free.
const LOCK: &str = "select pg_try_advisory_lock(x'72656a6f3a637079'::bigint)";

/// Whether a node lives, or a process has the store open. By the clock: in `living_nodes`, the last nodes live on after a crash, because
/// time stands still without heartbeats.
const IN_USE: &str = "
    select exists (select 1 from nodes where until > clock_timestamp()) or exists (
        select 1 from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and (
            starts_with(application_name, 'rejoinder/') or starts_with(application_name, 'rejoinder-writer')))";

/// What is copied is at the position 0. After it come the statements with which the rules are made again, once the rules are dropped. The
/// position -1 is there if the copy was finished once. Then the table is called `finished_copy`, until a gateway opens the database, or
/// the copy is begun again.
const MAKE_BEGUN: &str = "create table begun_copy (position bigint primary key, text text not null)";

const FORGET_RULES: &str = "delete from begun_copy where position <> 0";

const MARK_FINISHED: &str = "insert into begun_copy (position, text) values (-1, 'finished')";

const NOTE: &str = "insert into begun_copy (position, text) values ($1, $2)";

/// The statements that drop the rules of tables ($1), and those that make them: first the foreign keys, which need the others.
const SELECT_RULES: &str = "
    select dropped, made from (
        select case contype when 'f' then 0 else 1 end as step,
            format('alter table %s drop constraint %I', conrelid::regclass, conname) as dropped,
            format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
                as made
        from pg_constraint
        where contype in ('f', 'u')
            and (conrelid = any($1::text[]::regclass[]) or confrelid = any($1::text[]::regclass[]))
        union all
        select 2, format('drop index %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
        from pg_index
        where indisunique and not indisprimary and indrelid = any($1::text[]::regclass[])
            and not exists (select 1 from pg_constraint where conindid = indexrelid and contype in ('u', 'x'))
    ) as rules
    order by step, dropped";

/// The sequences, and the last number of each that a table has.
const SEQUENCES: [(&str, &str, &str); 4] = [
    ("turn_seq", "seq", "turns"),
    ("event_seq", "seq", "events"),
    // See the migration.
    ("claim_seq", "seq >> 16", "deliveries"),
    ("log_seq", "seq", "log"),
];

/// The columns that have a sequence of their own, but that of `log_lines`.
const IDENTITIES: [(&str, &str); 6] = [
    ("run_settings", "id"),
    ("remarks", "id"),
    ("questions", "seq"),
    ("approvals", "seq"),
    ("audit", "id"),
    ("errors", "id"),
];

/// Ids up to this one are not used again, also if their lines were removed.
const SET_LAST_LINE: &str = "
    select setval(pg_get_serial_sequence('log_lines', 'id'), greatest((select max(id) from log_lines), $1, 1))";

const SELECT_LAST_LINE: &str = "
    select coalesce(pg_sequence_last_value(pg_get_serial_sequence('log_lines', 'id')::regclass), 0)";

/// The index is made of the rows, from the first turn on.
const INDEX_ANEW: &str = "
    update search_progress set logged = (select coalesce(max(seq), 0) from log), turn = 0, again = false";

impl From<PostgresOpenError> for CopyError {
    fn from(error: PostgresOpenError) -> Self {
        Self::Open(Box::new(error))
    }
}
