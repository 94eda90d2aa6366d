//! The suite that every store must pass, and tests for SQLite alone.

mod common;
mod deaf;
mod files;
mod sqlite;
#[path = "../turns/mod.rs"]
mod turns;

rejoinder_core::store_conformance!(common::Database::new());
