//! Statements on the writing connection. Each is prepared once, and then executed for one row after another.

use std::cell::{Cell, RefCell};

use rejoinder_core::{
    StoreError,
    store::{LogLine, LogSeq},
};
use rusqlite::{CachedStatement, Connection, Params, Row, Statement};

use crate::{shared::known::KnownSettings, sqlite::error::store_error};

/// The writing connection during one transaction, with the statements that it has used.
pub(in crate::sqlite) struct Transaction<'a> {
    pub(super) connection: &'a Connection,
    /// With their texts, which are compared by address. A text with two addresses is only prepared twice.
    statements: RefCell<Vec<(&'static str, CachedStatement<'a>)>>,
    /// The place of the last entry that it added to the log.
    pub(super) logged: Cell<Option<LogSeq>>,
    /// Whether it changes what agents are owed.
    pub(super) noticed: Cell<bool>,
    /// Lines that it has stored, and that are logged once it is committed.
    pub(super) told: RefCell<Vec<LogLine>>,
    /// The settings of runs that are stored.
    pub(super) settings: &'a RefCell<KnownSettings>,
}

impl<'a> Transaction<'a> {
    pub(in crate::sqlite) fn new(connection: &'a Connection, settings: &'a RefCell<KnownSettings>) -> Self {
        let (logged, noticed, told) = (Cell::new(None), Cell::new(false), RefCell::new(Vec::new()));
        Self { connection, statements: RefCell::new(Vec::new()), logged, noticed, told, settings }
    }

    /// The place of the last entry that it added to the log; `None` if it added none.
    pub(in crate::sqlite) const fn logged(&self) -> Option<LogSeq> {
        self.logged.get()
    }

    /// The lines that are logged once it is committed.
    pub(in crate::sqlite) fn told(&self) -> Vec<LogLine> {
        self.told.take()
    }

    /// Whether it changes what agents are owed.
    pub(in crate::sqlite) const fn noticed(&self) -> bool {
        self.noticed.get()
    }

    /// Runs `execute` with a statement. Found by its address, it costs less than in the connection's own cache.
    fn with<T>(
        &self,
        sql: &'static str,
        execute: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut statements = self.statements.borrow_mut();
        let known = statements.iter().position(|(known, _)| std::ptr::eq(*known, sql));
        let index = known.unwrap_or(statements.len());
        if known.is_none() {
            statements.push((sql, self.connection.prepare_cached(sql).map_err(store_error)?));
        }
        execute(&mut statements[index].1).map_err(store_error)
    }
}

/// Inserts a row of these columns. With what happens on a conflict, it returns how many rows changed.
macro_rules! insert_into {
    (@mark $column:ident) => { ", ?" };
    (@value $column:ident) => { $column };
    (@value $column:ident $value:expr) => { $value };
    ($transaction:expr, $table:ident { $($column:ident $(: $value:expr)?),* $(,)? }) => {
        insert_into!($transaction, $table { $($column $(: $value)?),* }, "").map(drop)
    };
    (
        $transaction:expr,
        $table:ident { $first:ident $(: $of_first:expr)? $(, $column:ident $(: $value:expr)?)* $(,)? },
        $conflict:literal
    ) => {
        $crate::sqlite::write::rows::change(
            $transaction,
            concat!(
                "insert into ", stringify!($table), " (", stringify!($first), $(", ", stringify!($column),)*
                ") values (?", $(insert_into!(@mark $column),)* ") ", $conflict
            ),
            rusqlite::params![
                insert_into!(@value $first $($of_first)?), $(insert_into!(@value $column $($value)?)),*
            ],
        )
    };
}
pub(super) use insert_into;

/// Executes a statement, and returns how many rows it changed.
pub(super) fn change(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: impl Params,
) -> Result<usize, StoreError> {
    transaction.with(sql, |statement| statement.execute(values))
}

/// Executes a statement that must change one row of `what`.
pub(super) fn change_one(
    transaction: &Transaction<'_>,
    what: &str,
    sql: &'static str,
    values: impl Params,
) -> Result<(), StoreError> {
    match change(transaction, sql, values)? {
        1 => Ok(()),
        changed => Err(StoreError::Failed(format!("a change of {what} matched {changed} rows"))),
    }
}

/// The rows that a query finds, as `read` reads them.
pub(super) fn all<T>(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    transaction.with(sql, |statement| statement.query_map(values, read)?.collect())
}

/// The one row that a query finds, if there is one.
pub(super) fn one<T>(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    transaction.with(sql, |statement| statement.query(values)?.next()?.map(read).transpose())
}
