//! The suite that every store must pass, and what only SQLite has.

mod common;
mod sqlite;

rejoinder_core::store_conformance!(common::Database::new());
