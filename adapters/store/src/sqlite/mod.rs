//! The store on SQLite: one writer, a few readers.

mod error;
mod lock;
mod open;
mod read;
mod request;
mod store;
mod stored;
mod transcripts;
mod trouble;
mod write;
mod writer;

pub use self::{
    lock::is_in_use,
    open::{OpenError, OpenOptions, schema_version, vacuum},
    store::SqliteStore,
};
