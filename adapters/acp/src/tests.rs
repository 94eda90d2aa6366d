//! The runtime with a double of an agent.

mod asking;
mod conformance;
mod double;
mod elicits;
mod losing;
mod people;
mod restarts;
mod talking;
