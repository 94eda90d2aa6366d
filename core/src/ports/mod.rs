//! The ports of the core, as traits: platforms, agents, a database and a clock.

pub(crate) mod agent;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod hub;
pub(crate) mod intake;
pub(crate) mod store;
