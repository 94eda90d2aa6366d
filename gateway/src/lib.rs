//! Rejoinder: the messaging gateway that can prove it answered.
//!
//! This package is the `rejoinder` binary and its parts. It is the only package that knows all others: it reads the
//! configuration, builds the parts, serves HTTP, and starts and stops everything. It decides nothing about a turn.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`cli`] | the command line, one file per command |
//! | `platforms` | the list of platforms, and how the gateway uses each; one file per platform |
//! | `agents` | the same for the kinds of agents |
//! | `built_agent` | what a kind of agent brings: its runtime, HTTP routes and a loop |
//! | `materials` | what channels and agents are built with: tokens, clock, HTTP client |
//! | `callers` | who uses the gateway with an operator's token, and what it allows |
//! | `wiring` | builds the parts from the configuration |
//! | `console` | terminal input and output that commands and platforms share |
//! | `exposure` | what other users of this machine can do with the gateway's files |
//! | `gateway` | starting, serving, stopping |
//! | `http` | the HTTP surface: health, metrics, admin, and the channels' own routes |
//! | `logging`, `log_lines` | the log on standard error, and its lines in the store |
//! | `version` | which build this is |
//! | `view` | how operators see turns, over HTTP and on the command line |
//!
//! To add a platform, see `platforms.rs`; to add a kind of agent, see `agents.rs`. To add a command, add a file in `cli/`
//! and a variant of `cli::Command`. To add an endpoint, add a file in `http/`, a route and a line in `http/openapi.rs`.

mod agents;
mod alerts;
mod backup;
mod built_agent;
mod callers;
pub mod cli;
mod client;
#[cfg_attr(
    not(any(feature = "discord", feature = "matrix", feature = "telegram")),
    expect(dead_code, reason = "some questions and secrets belong to platforms with accounts")
)]
mod console;
mod disk;
mod exposure;
mod feed;
mod figures;
mod gateway;
mod http;
mod location;
mod log_lines;
mod logging;
mod materials;
mod mcp_servers;
mod metrics;
mod node_file;
mod open_files;
mod own_tools;
mod platforms;
mod problems;
#[cfg(test)]
mod reference;
mod reload;
mod secrets;
mod shapes;
mod time;
mod traces;
mod version;
mod view;
mod wiring;

pub use built_agent::{AgentLoop, BuiltAgent};
pub use gateway::{Gateway, RunError, Setup, run};

use std::sync::LazyLock;

use rejoinder_config::Build;

/// The platforms and the kinds of agents that this build supports.
pub fn build() -> Build {
    static BUILD: LazyLock<Build> = LazyLock::new(|| Build {
        platforms: platforms::sections().leak(),
        agents: agents::sections().leak(),
        postgres: location::check_postgres,
    });
    *BUILD
}
