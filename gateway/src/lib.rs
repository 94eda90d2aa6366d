//! Rejoinder: the messaging gateway that can prove it answered.
//!
//! This package is the `rejoinder` binary and what it is made of. It is the only place that knows every other
//! one: it reads the configuration, builds the parts, serves HTTP and starts and stops it all. It decides
//! nothing about a turn.
//!
//! | Module | Is |
//! | --- | --- |
//! | [`cli`] | the command line, a file per command |
//! | `platforms` | the list of platforms, and what each is to the gateway; a file per platform |
//! | `agents` | the same for the kinds of agents |
//! | `materials` | what channels and agents are made with: tokens, clock, HTTP client |
//! | `wiring` | from the configuration to running parts |
//! | `console` | what commands and platforms share with whoever sits at the terminal |
//! | `gateway` | starting, serving, stopping |
//! | `http` | the surface: health, metrics, admin, and the channels' own routes |
//! | `view` | what operators see of turns, over HTTP and on the command line alike |
//!
//! To add a platform: see `platforms.rs`; a kind of agent: see `agents.rs`. To add a command: a file in `cli/` and its variant in `cli::Command`. To add an address: a file in
//! `http/`, its route and its line in `http/openapi.rs`.

mod agents;
pub mod cli;
mod client;
mod console;
mod gateway;
mod http;
mod logging;
mod materials;
mod metrics;
mod open_files;
mod platforms;
mod secrets;
mod time;
mod view;
mod wiring;

pub use gateway::{Gateway, RunError, Setup, run};

use std::sync::LazyLock;

use rejoinder_config::Build;

/// What this build can be configured with: its platforms and its kinds of agents.
#[must_use]
pub fn build() -> Build {
    static BUILD: LazyLock<Build> =
        LazyLock::new(|| Build { platforms: platforms::sections().leak(), agents: agents::sections().leak() });
    *BUILD
}
