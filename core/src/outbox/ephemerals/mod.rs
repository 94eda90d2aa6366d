//! What is shown for a while only: typing notices and drafts. Dropped rather than delayed, and never a signal.

pub(crate) mod drafts;
pub(crate) mod leftovers;
pub(crate) mod show;
pub(crate) mod text;
pub(crate) mod tidy;
pub(crate) mod typing;
