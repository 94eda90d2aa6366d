//! The runtime with a double of an agent.

mod conformance;
mod double;
mod talking;
