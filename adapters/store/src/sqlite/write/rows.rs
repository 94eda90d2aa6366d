//! Statements on many rows at once.

use std::sync::{Arc, OnceLock};

use rejoinder_core::{ConversationRef, StoreError, Timestamp};
use serde::Serialize;
use sqlx::{
    Arguments, AssertSqlSafe, Encode, Sqlite, SqliteConnection, Type,
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

use crate::sqlite::error::store_error;

/// How many sizes a statement is prepared in: for 1, 2, 4, … rows.
const SIZES: usize = 7;

/// The most rows of one execution.
const MOST: usize = 1 << (SIZES - 1);

/// A statement that begins `with r (column, …) as ({rows})`.
///
/// It is prepared once for each power of two of rows, and stays prepared. Unused rows are null: a statement must
/// ignore rows whose first column is null.
pub(super) struct Statement {
    sql: &'static str,
    texts: [OnceLock<Arc<str>>; SIZES],
}

impl Statement {
    pub(super) const fn new(sql: &'static str) -> Self {
        Self { sql, texts: [const { OnceLock::new() }; SIZES] }
    }

    /// The number of names in the first parentheses.
    fn columns(&self) -> usize {
        self.sql.split(')').next().map_or(0, |head| head.matches(',').count() + 1)
    }

    fn text(&self, size: usize) -> Arc<str> {
        let text = self.texts[size].get_or_init(|| {
            let row = format!("({})", vec!["?"; self.columns()].join(","));
            let rows = format!("values {}", vec![row; 1 << size].join(","));
            self.sql.replacen("{rows}", &rows, 1).into()
        });
        Arc::clone(text)
    }

    /// The executions of the statement for `rows`: its text and arguments for up to [`MOST`] rows each.
    fn queries<'a, T>(
        &'a self,
        rows: &'a [T],
        values: impl Fn(&T, &mut Values) + 'a,
    ) -> impl Iterator<Item = (Arc<str>, SqliteArguments)> + 'a {
        rows.chunks(MOST).map(move |rows| {
            let size = rows.len().next_power_of_two().trailing_zeros() as usize;
            let mut bound = Values(SqliteArguments::default());
            bound.0.reserve(rows.len() * self.columns(), 0);
            for row in rows {
                values(row, &mut bound);
            }
            debug_assert_eq!(bound.0.len(), rows.len() * self.columns(), "{}", self.sql);
            (self.text(size), bound.0)
        })
    }

    /// Executes the statement on `rows`, and returns how many database rows it changed.
    pub(super) async fn on<T>(
        &self,
        connection: &mut SqliteConnection,
        rows: &[T],
        values: impl Fn(&T, &mut Values),
    ) -> Result<u64, StoreError> {
        let mut touched = 0;
        for (sql, bound) in self.queries(rows, values) {
            let query = sqlx::query_with(AssertSqlSafe(sql), bound);
            touched += query.execute(&mut *connection).await.map_err(store_error)?.rows_affected();
        }
        Ok(touched)
    }

    /// Executes the statement on `rows`, each of which must change one database row.
    pub(super) async fn on_each<T>(
        &self,
        connection: &mut SqliteConnection,
        what: &str,
        rows: &[T],
        values: impl Fn(&T, &mut Values),
    ) -> Result<(), StoreError> {
        let touched = self.on(connection, rows, values).await?;
        if touched == rows.len() as u64 {
            Ok(())
        } else {
            Err(StoreError::Failed(format!("{touched} of {} changes of {what} matched a row", rows.len())))
        }
    }

    /// Executes the statement on `rows`, and returns its result rows.
    pub(super) async fn answers<T>(
        &self,
        connection: &mut SqliteConnection,
        rows: &[T],
        values: impl Fn(&T, &mut Values),
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let mut answers = Vec::with_capacity(rows.len());
        for (sql, bound) in self.queries(rows, values) {
            let query = sqlx::query_with(AssertSqlSafe(sql), bound);
            answers.extend(query.fetch_all(&mut *connection).await.map_err(store_error)?);
        }
        Ok(answers)
    }
}

/// The values of a row, in the order of its columns.
pub(super) struct Values(SqliteArguments);

impl Values {
    pub(super) fn add<'q, T: Encode<'q, Sqlite> + Type<Sqlite>>(&mut self, value: T) -> &mut Self {
        self.0.add(value).expect("numbers, text and bytes can be bound");
        self
    }

    pub(super) fn id(&mut self, id: Uuid) -> &mut Self {
        self.add(id)
    }

    /// The columns `channel`, `chat` and `thread`.
    pub(super) fn address(&mut self, address: &ConversationRef) -> &mut Self {
        let thread = address.thread.as_deref().unwrap_or("");
        self.add(address.channel.as_str()).add(&*address.chat).add(thread)
    }

    pub(super) fn at(&mut self, at: Timestamp) -> &mut Self {
        self.add(at.as_millis())
    }

    pub(super) fn at_maybe(&mut self, at: Option<Timestamp>) -> &mut Self {
        self.add(at.map(Timestamp::as_millis))
    }

    pub(super) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> &mut Self {
        self.add(serde_json::to_string(value).expect("its map keys are strings"))
    }

    pub(super) fn json_maybe<T: Serialize>(&mut self, value: Option<&T>) -> &mut Self {
        match value {
            Some(value) => self.json(value),
            None => self.add(None::<&str>),
        }
    }

    /// An enum value as its bare serde name.
    pub(super) fn name<T: Serialize>(&mut self, value: T) -> &mut Self {
        match serde_json::to_value(value) {
            Ok(serde_json::Value::String(name)) => self.add(name),
            other => unreachable!("an enum without fields serialises to a name, not {other:?}"),
        }
    }
}
