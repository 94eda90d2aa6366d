//! An application with a real core and a real database, against the Discord server of `tests/discord`. The agent is
//! scripted and follows commands.

mod checking;
mod commands;
mod files;
mod gaps;
mod gateway;
mod intake;
mod sending;
mod support;
mod threads;
