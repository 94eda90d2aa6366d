//! The suite that every store must pass, and tests for PostgreSQL alone. Without a server they say so, and pass: see `server`.

mod batches;
mod common;
mod connections;
mod copy;
mod hints;
mod hosts;
mod nodes;
mod plans;
mod pooler;
mod proxy;
mod schema;
mod server;
mod slots;
mod tls;
#[path = "../turns/mod.rs"]
mod turns;

rejoinder_core::store_conformance!({
    let Some(database) = common::Database::new().await else { return };
    std::future::ready(database)
});
