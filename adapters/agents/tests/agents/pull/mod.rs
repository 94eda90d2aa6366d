//! Agents whose workers fetch their turns.

mod conformance;
mod restarts;
mod storing;
mod turns;
mod worker;
