//! Ephemerals: typing notices, marks and drafts. They are dropped rather than delayed, and are never a signal.

pub(crate) mod drafts;
pub(crate) mod leftovers;
pub(crate) mod marker;
pub(crate) mod marks;
pub(crate) mod show;
pub(crate) mod text;
pub(crate) mod tidy;
pub(crate) mod typing;
