//! The runtime with a double of an agent, and with processes.

mod conformance;
mod double;
mod process;
mod real;
mod talking;
