//! Where events come in: one transaction, and only then the platform is acknowledged.

pub(crate) mod accept;
pub(crate) mod entering;
