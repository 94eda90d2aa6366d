//! The store on SQLite: one writer, a few readers.

mod agreements;
mod connections;
mod error;
mod foreign;
mod keyring;
mod lock;
mod open;
mod read;
mod schema;
mod search;
#[cfg(feature = "postgres")]
mod side;
mod sql;
mod store;
mod transcript;
mod versions;
mod write;
mod writer;

#[cfg(feature = "postgres")]
pub(crate) use self::side::SqliteSide;
pub use self::{
    error::OpenError,
    foreign::{ForeignError, ForeignRow, read_foreign},
    lock::{Lock, beside, is_in_use},
    open::{OpenOptions, copy, end_sign_ins, faults, schema_version_of, vacuum},
    schema::schema_version,
    store::SqliteStore,
};
