//! Statements on the writing connection. Each is prepared once, and then executed for one row after another.

use rejoinder_core::StoreError;
use rusqlite::{Connection, Params, Row};
use serde::Serialize;

use crate::sqlite::error::store_error;

/// Executes a statement, and returns how many rows it changed.
pub(super) fn change(connection: &Connection, sql: &'static str, values: impl Params) -> Result<usize, StoreError> {
    let execute = || connection.prepare_cached(sql)?.execute(values);
    execute().map_err(store_error)
}

/// Executes a statement that must change one row of `what`.
pub(super) fn change_one(
    connection: &Connection,
    what: &str,
    sql: &'static str,
    values: impl Params,
) -> Result<(), StoreError> {
    match change(connection, sql, values)? {
        1 => Ok(()),
        changed => Err(StoreError::Failed(format!("a change of {what} matched {changed} rows"))),
    }
}

/// The rows that a query finds, as `read` reads them.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &'static str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let query = || connection.prepare_cached(sql)?.query_map(values, read)?.collect::<Result<_, _>>();
    query().map_err(store_error)
}

/// The one row that a query finds, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &'static str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    let query = || {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        rows.next()?.map(read).transpose()
    };
    query().map_err(store_error)
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("its map keys are strings")
}

/// An enum value as its bare serde name.
pub(super) fn name<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("an enum without fields serialises to a name, not {other:?}"),
    }
}
