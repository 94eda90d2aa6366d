//! What a copy of a store needs of both databases: their tables, the values of their rows, and what each of them does.

pub(crate) mod side;
pub(crate) mod tables;
pub(crate) mod values;
