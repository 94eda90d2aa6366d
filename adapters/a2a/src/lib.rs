//! Agents behind a server with the [Agent2Agent protocol](https://a2a-protocol.org) (A2A), version 1, by its bindings JSON-RPC and
//! HTTP+JSON. The gateway is the client.
//!
//! A session of ours is a context of the agent, and a run is a message in it, from which the agent makes a task. A task that asks for more
//! input goes on with the next message of the session. After a crash of the gateway the next run of a turn follows the task that the run
//! before has begun.
//!
//! | File | Contains |
//! | --- | --- |
//! | `section` | the configuration |
//! | `protocol` | the messages of the protocol (no I/O) |
//! | `binding` | how the two bindings differ: requests, results and errors (no I/O) |
//! | `call_error` | why a request has no result |
//! | `card` | where an agent is asked, as its card says (no I/O) |
//! | `connection` | requests: the card, calls and streams, within bounds |
//! | `memory` | which context and task of the agent belongs to which session of ours |
//! | `message` | what the agent gets of a turn (no I/O) |
//! | `answer` | reads artifacts and messages (no I/O) |
//! | `task` | the task of a run: it is canceled if the run ends before it |
//! | `run` | one run |
//!
//! It never sends a request to another host than the configured one, and never follows a redirect.

mod answer;
mod binding;
mod call_error;
mod card;
mod connection;
mod memory;
mod message;
mod protocol;
mod run;
mod section;
mod task;

pub use self::{
    connection::{FoundAgent, find},
    run::A2a,
    section::A2aSection,
};
