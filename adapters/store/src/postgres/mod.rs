//! The store on PostgreSQL: its own SQL for the same port, on connections of its own.

mod connections;
mod error;
mod log_order;
mod open;
mod read;
mod schema;
mod search;
mod store;
mod values;
mod versions;
mod write;
mod writer;

pub use self::{open::PostgresOptions, store::PostgresStore};
