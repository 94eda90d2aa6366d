//! Clients that are not ours say whether our Telegram and our Discord are true: run by `cargo xtask test --judges`, once a
//! week and whenever a double has changed. What they bring along is compiled in no other run.
//!
//! To add a judge: a module of the platform that it judges, and what it needs in that platform's requirements or in
//! `Cargo.toml`.

mod discord;
mod telegram;
