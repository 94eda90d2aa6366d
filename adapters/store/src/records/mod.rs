//! Rows as records of the core, whatever the database. Its statements name their columns as it is read here.

pub(crate) mod approval;
pub(crate) mod columns;
pub(crate) mod conversation;
pub(crate) mod dead_letter;
pub(crate) mod delivery;
pub(crate) mod line;
pub(crate) mod log;
pub(crate) mod person;
#[cfg(feature = "postgres")]
pub(crate) mod push;
pub(crate) mod question;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod session;
pub(crate) mod stuck;
pub(crate) mod summary;
pub(crate) mod token;
pub(crate) mod turn;
pub(crate) mod view;
pub(crate) mod visitor;
