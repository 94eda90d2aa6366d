//! What the end-to-end tests are written with: the real binary as a process, and what it talks to.
//!
//! A test starts a [`Gateway`] with the configuration it needs, speaks to it as a user's program
//! would, and asserts what the person sees. When the gateway is dropped, it checks the promise by
//! itself: nothing is owed, nothing is waiting.
//!
//! `cargo xtask test` builds the binary, installs the counterparts and says where they are in the
//! environment (`REJOINDER_BIN`, `REJOINDER_COUNTERPARTS`, `CHROMIUM`).

mod agent;
mod asking;
mod browser;
mod chat;
mod gateway;
mod hook;
pub mod promise;
mod wait;

pub use agent::{Call, ModelServer, ScriptedAgent};
pub use browser::Browser;
pub use chat::Chat;
pub use gateway::{Gateway, GatewayBuilder};
pub use hook::{Hook, Reply};
pub use rejoinder_core::conformance::scripted::{Gate, Script};
pub use wait::{PATIENCE, eventually};
