//! The runtime against servers of the test's own process.

mod conformance;
mod rubbish;
mod server;
mod tasks;
