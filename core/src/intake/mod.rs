//! Accepts events: each is stored in one transaction, and only then acknowledged to its platform.

pub(crate) mod accept;
pub(crate) mod event_router;
pub(crate) mod limits;
pub(crate) mod notices;
mod picks;
pub(crate) mod screen;
