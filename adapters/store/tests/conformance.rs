//! The suite that every store must pass.

mod common;

rejoinder_core::store_conformance!(common::Database::new());
