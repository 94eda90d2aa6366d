//! Rows as records of the core, whatever the database. Its statements name their columns as it is read here.

pub(crate) mod columns;
pub(crate) mod dead_letter;
pub(crate) mod delivery;
pub(crate) mod run;
pub(crate) mod stuck;
pub(crate) mod summary;
pub(crate) mod turn;
pub(crate) mod view;
