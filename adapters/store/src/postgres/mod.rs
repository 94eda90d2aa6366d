//! The store on PostgreSQL: its own SQL for the same port, on connections of its own.

mod agreements;
mod connections;
mod error;
mod hints;
mod hosts;
mod log_order;
mod nodes;
mod open;
mod read;
mod relay;
mod schema;
mod search;
mod side;
mod sql;
mod store;
#[cfg(feature = "testing")]
mod testing;
mod tls;
mod url;
mod values;
mod versions;
mod write;
mod writer;

pub(crate) use self::side::PostgresSide;
#[cfg(feature = "testing")]
pub use self::testing::{TestDatabase, TestServer};
pub use self::{
    error::PostgresOpenError, hosts::check_postgres_url, open::PostgresOptions,
    schema::latest as postgres_schema_version, store::PostgresStore,
};
