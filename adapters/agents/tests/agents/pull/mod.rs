//! Agents whose workers fetch their turns.

mod conformance;
mod restarts;
mod turns;
mod worker;
