//! Independent clients check that the doubles of Telegram and Discord behave like the real servers: run by `cargo xtask
//! test --judges`, once a week and after each change of a double. Their dependencies are compiled in no other run.
//!
//! To add a judge, write a module for its platform, and add its dependencies to that platform's requirements or to
//! `Cargo.toml`.

mod discord;
mod telegram;
