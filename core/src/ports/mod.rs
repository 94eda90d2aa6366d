//! What the core needs from outside, as traits: platforms, agents, a database, a clock.

pub(crate) mod agent;
pub(crate) mod channel;
pub(crate) mod clock;
pub(crate) mod intake;
pub(crate) mod store;
