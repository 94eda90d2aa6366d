//! The durable store: SQLite, read through sqlx and written through rusqlite, or PostgreSQL (feature `postgres`).
//!
//! This crate implements the port `rejoinder_core::store::Store`: it stores records as rows and reads them back. It
//! decides nothing about a turn: the guard and the core decide what is owed, and what is sent when. What must be decided
//! in a transaction on rows that only the transaction sees is decided by the pure functions of
//! `rejoinder_core::store::rules`: a transaction reads the rows, calls the function, and writes the result.
//!
//! To add a query: add it to the port, then to `read` or `write` of each database, and a check of it to
//! `rejoinder_core::conformance::store`. `records` makes records of the rows that it finds. To change the schema: add a
//! file to each folder of `migrations`, and its columns to `copy`; a file that was released is never edited. To add a
//! database: give it a folder beside `sqlite`, with the same file names, read its rows with `columns_of!`, use what is in
//! `shared` and `records`, call the same rules, and run the conformance suite on it.

#[cfg(feature = "postgres")]
mod copy;
#[cfg(feature = "postgres")]
mod postgres;
mod records;
mod shared;
mod sqlite;

#[cfg(feature = "postgres")]
pub use copy::{CopiedTable, CopyEnd, CopyError, CopyProgress, CopyReport, StoreCopy};
#[cfg(all(feature = "postgres", feature = "testing"))]
pub use copy::{TableOfCopy, copied_tables, tables_not_copied};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOpenError, PostgresOptions, PostgresStore, check_postgres_url, postgres_schema_version};
#[cfg(all(feature = "postgres", feature = "testing"))]
pub use postgres::{TestDatabase, TestServer};
pub use sqlite::{
    ForeignError, ForeignRow, Lock, OpenError, OpenOptions, SqliteStore, beside, copy, end_sign_ins, faults, is_in_use,
    read_foreign, schema_version, schema_version_of, vacuum,
};
