//! The store on SQLite: one writer, a few readers.

mod error;
mod open;
mod read;
mod request;
mod store;
mod stored;
mod transcripts;
mod write;
mod writer;

pub use self::{
    open::{OpenError, OpenOptions, is_in_use, schema_version, vacuum},
    store::SqliteStore,
};
