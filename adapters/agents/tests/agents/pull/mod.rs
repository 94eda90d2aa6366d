//! Agents whose workers fetch their turns.

mod conformance;
mod turns;
mod worker;
