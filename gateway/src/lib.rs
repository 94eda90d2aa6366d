//! Rejoinder: the messaging gateway that can prove it answered.
//!
//! This package is the `rejoinder` binary and what it is made of. It is the only place that knows every other
//! one: it reads the configuration, builds the parts, serves HTTP and starts and stops it all. It decides
//! nothing about a turn.
//!
//! | Module | Is |
//! | --- | --- |
//! | [`cli`] | the command line, a file per command |
//! | `wiring` | from the configuration to running parts; nothing else reads it |
//! | `gateway` | starting, serving, stopping |
//! | `http` | the surface: health, metrics, admin, and the channels' own routes |
//! | `view` | what operators see of turns, over HTTP and on the command line alike |
//!
//! To add a channel or an agent: its construction in `wiring.rs`, and for a channel with routes of its own its
//! router in `http`. To add a command: a file in `cli/` and its variant in `cli::Command`. To add an address: a file in
//! `http/`, its route and its line in `http/openapi.rs`.

pub mod cli;
mod gateway;
mod http;
mod logging;
mod metrics;
mod open_files;
mod secrets;
mod time;
mod view;
mod wiring;

pub use gateway::{Gateway, RunError, Setup, run};
