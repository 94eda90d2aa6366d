//! The tools of the end-to-end tests: the real binary as a process, and its counterparts.
//!
//! A test starts a [`Gateway`] with the configuration it needs, calls it as a user's program would, and asserts what the
//! person sees. A gateway that is dropped checks the promise: nothing is owed, nothing is waiting.
//!
//! `cargo xtask test` builds the binary, installs the counterparts and passes their locations in environment variables
//! (`REJOINDER_BIN`, `REJOINDER_COUNTERPARTS`, `CHROMIUM`).

mod agent;
mod browser;
mod chat;
mod collector;
mod gateway;
mod hook;
pub mod promise;
mod queries;
mod terminal;
mod wait;

pub use agent::{Call, ModelServer, ScriptedAgent};
pub use browser::Browser;
pub use chat::Chat;
pub use collector::{CollectedSpan, Collector};
pub use gateway::{Gateway, GatewayBuilder};
pub use hook::{Hook, Reply};
pub use rejoinder_core::conformance::scripted::{Gate, Script};
pub use terminal::Terminal;
pub use wait::{PATIENCE, eventually};
