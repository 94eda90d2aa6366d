//! The runtime against servers of the test's own process.

mod conformance;
mod http_json;
mod rubbish;
mod server;
mod tasks;
