//! Rows as records of the core, whatever the database. Its statements name their columns as it is read here.

pub(crate) mod columns;
