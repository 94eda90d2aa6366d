//! Accepts events: each is stored in one transaction, and only then acknowledged to its platform. No agent is run and
//! nothing is sent here.

pub(crate) mod accept;
pub(crate) mod amends;
mod arrival;
mod backlog;
pub(crate) mod event_router;
mod limits;
mod notice;
mod notice_permits;
pub(crate) mod notices;
pub(crate) mod opening;
mod pairs;
mod routed;
pub(crate) mod stages;
