//! Agents with the [Agent Client Protocol](https://agentclientprotocol.com), version 1: Claude Code, Codex, Gemini CLI, OpenCode,
//! Goose and others. The gateway is the client.
//!
//! An agent is one child process, in which each of our sessions has one of the agent's. The process is started with the first turn and
//! again when it is needed after it has ended; then, and after a restart of the gateway, a session is opened again if the agent can,
//! else a new one is told the transcript. A run is one prompt, or another one for what came meanwhile.
//! It waits for permissions, and for what the person is to say, in the prompt, for as long as nobody else needs the session.
//!
//! | File | Contains |
//! | --- | --- |
//! | `section` | the configuration |
//! | `protocol` | the messages of the protocol (no I/O) |
//! | `launch` | starts the process below a supervisor, which ends it with all that it started, also when the gateway is killed |
//! | `lines`, `outline`, `clipped`, `connection` | its messages: requests and answers, and what belongs to which session |
//! | `prompt` | a prompt on which the agent works |
//! | `feed` | what a session's run has not taken yet |
//! | `late_titles` | the titles of sessions that came outside of a prompt |
//! | `drive` | keeps the process running, and says why it ended |
//! | `session_cost` | what a session has cost (no I/O) |
//! | `run_cost` | what a run has cost of it |
//! | `sessions`, `open` | which of its sessions is which of ours, and how one is opened |
//! | `own_tools` | the gateway's tools, as a session is told them |
//! | `answer`, `tools`, `permission` | reads what it says, does and asks (no I/O) |
//! | `options` | which of its options a decision chooses, and how approvers read them (no I/O) |
//! | `elicitation` | forms and links as questions to the person (no I/O) |
//! | `requests` | the requests of the agent, and their answers |
//! | `follow` | what it says, does and asks for in a run |
//! | `run` | one run |
//! | `probe` | starts it for `rejoinder doctor` |
//!
//! It never offers files or a terminal of the gateway, never allows something "always", and puts no environment variable of the gateway
//! into the process that is not named.

mod answer;
mod answer_files;
mod clipped;
mod connection;
mod drive;
mod elicitation;
mod event;
mod feed;
mod follow;
mod late_titles;
mod launch;
mod lines;
mod open;
mod options;
mod outline;
mod own_tools;
mod permission;
mod probe;
mod prompt;
mod protocol;
mod requests;
mod run;
mod run_cost;
mod section;
mod session_cost;
mod sessions;
#[cfg(test)]
mod tests;
mod tools;

pub use self::{
    probe::{FoundAgent, probe},
    run::Acp,
    section::AcpSection,
};
