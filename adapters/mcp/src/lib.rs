//! The tools of a run, for agents that call them over the Model Context Protocol (MCP).
//!
//! An agent that is a program or a service gets the URL and the token of its run in its request. With them it calls what a model behind
//! HTTP calls in its answers: `react`, `ask`, `send` and so on. Definitions and execution are those of `rejoinder-agents`.
//!
//! | File | Contains |
//! | --- | --- |
//! | `runs` | the runs in flight, by their tokens, and the tokens of sessions that outlive them |
//! | `runtime` | a decorator of an agent: opens its runs, carries out their calls, and combines them with what the agent said |
//! | `server` | the methods of the protocol |
//! | `routes` | `/mcp`: who may call, and how much |
//!
//! The server keeps no session: a request of either generation of the protocol (with `initialize`, up to 2025-11-25, and without, from
//! 2026-07-28) stands for itself. It asks clients for nothing, and has tools alone.

#![warn(missing_docs)]

mod routes;
mod runs;
mod runtime;
mod server;
#[cfg(test)]
mod tests;

pub use self::{
    routes::{PATH, RouteSettings, routes},
    runs::Runs,
    runtime::WithTools,
};
