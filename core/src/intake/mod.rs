//! Accepts events: each is stored in one transaction, and only then acknowledged to its platform. No agent is run and
//! nothing is sent here.

pub(crate) mod accept;
pub(crate) mod amends;
mod arrival;
mod backlog;
pub(crate) mod event_router;
pub(crate) mod limits;
mod notice_permits;
mod notices;
pub(crate) mod pairs;
pub(crate) mod stages;
