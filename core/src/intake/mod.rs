//! Accepts events: each is stored in one transaction, and only then acknowledged to its platform. No agent is run and
//! nothing is sent here.

pub(crate) mod accept;
pub(crate) mod amends;
mod backlog;
pub(crate) mod event_router;
pub(crate) mod limits;
pub(crate) mod notices;
pub(crate) mod pairs;
mod picks;
pub(crate) mod screen;
