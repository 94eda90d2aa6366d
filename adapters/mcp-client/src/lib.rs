//! The tools of servers of the Model Context Protocol (MCP), for agents behind a server with a model.
//!
//! A server is a program below a supervisor, which ends with the gateway, or at a URL. It is started once, and again after a growing
//! pause when it ends: never per turn. While it is down, its tools are not offered.
//!
//! | File | Contains |
//! | --- | --- |
//! | `servers` | the servers of an agent |
//! | `server` | one of them: its connection, its tools as they are now, and calls |
//! | `connection` | connects by the transport of the section, and lists the tools |
//! | `process` | the program of a server |
//! | `bounded` | a stream whose lines are bounded, and how many come (no I/O of its own) |
//! | `impatient` | a stream that fails when nobody reads it (no I/O of its own) |
//! | `paced` | a client of HTTP that pauses before it opens a stream again |
//! | `share` | how the servers share the room for definitions (no I/O) |
//! | `tools` | what the model is told of the tools (no I/O) |
//! | `result` | what the model is told of a result (no I/O) |
//! | `probe` | tries a server for the operator |
//!
//! Servers can ask this client for nothing: no sampling, no roots, no elicitation. Results are data for the model, and are not logged.

#![warn(missing_docs)]

mod bounded;
mod connection;
mod impatient;
mod paced;
mod probe;
mod process;
mod result;
mod server;
mod servers;
mod share;
mod tools;

pub use self::{
    probe::{FoundServer, FoundTool, probe},
    servers::McpServers,
    share::share,
};
