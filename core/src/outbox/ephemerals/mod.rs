//! Ephemerals: typing notices, marks and drafts. They are dropped rather than delayed, and are never a signal.

mod activities;
pub(crate) mod drafts;
pub(crate) mod elsewhere;
pub(crate) mod marker;
pub(crate) mod show;
pub(crate) mod tidy;
pub(crate) mod typing;
