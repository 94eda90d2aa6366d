//! The tools of the end-to-end tests: the real binary as a process, and its counterparts.
//!
//! A test starts a [`Gateway`] with the configuration it needs, calls it as a user's program would, and asserts what the
//! person sees. A gateway that is dropped checks the promise: nothing is owed, nothing is waiting.
//!
//! `cargo xtask test` builds the binary, installs the counterparts and passes their locations in environment variables
//! (`REJOINDER_BIN`, `REJOINDER_COUNTERPARTS`, `CHROMIUM`).

mod a2a;
mod age;
mod agent;
mod browser;
mod chat;
mod collector;
mod engines;
mod form;
mod gateway;
mod hook;
mod model_server;
mod pager;
mod plain_log;
mod process;
pub mod promise;
mod queries;
mod speech;
mod terminal;
mod tool_model;
mod transcriptions;
mod wait;

pub use a2a::A2aServer;
pub use age::AgeKey;
pub use agent::{AgentKind, Call, ScriptedAgent};
pub use browser::Browser;
pub use chat::Chat;
pub use collector::{CollectedSpan, Collector};
pub use engines::{Played, SpeechEngines};
pub use form::Form;
pub use gateway::{Gateway, GatewayBuilder, binary};
pub use hook::{Hook, Reply};
pub use model_server::ModelServer;
pub use pager::Pager;
pub use process::{Process, is_alive};
pub use rejoinder_core::conformance::scripted::{Gate, Script};
pub use rejoinder_matrix_server::free_port;
pub use speech::SpeechServer;
pub use terminal::Terminal;
pub use tool_model::ToolModel;
pub use transcriptions::TranscriptionServer;
pub use wait::{PATIENCE, eventually};

/// The crash points that every turn passes, in order, for [`Gateway::spawn_crashing_at`]: until its event is stored, its run, its
/// claim, and the attempt to send it.
pub const TURN_STEPS: [&str; 8] = [
    "received:1",
    "accepted:1",
    "run_started:1",
    "run_ended:1",
    "before_commit:1",
    "after_commit:1",
    "attempt_started:1",
    "attempt_ended:1",
];

/// The same where our own row is the receipt: there is no attempt.
pub const ROW_STEPS: [&str; 6] =
    ["received:1", "accepted:1", "run_started:1", "run_ended:1", "before_commit:1", "after_commit:1"];
