//! An application before a real core on a real database, against the Discord of `tests/discord`. The agent is
//! scripted, and does what it is told.

mod checking;
mod commands;
mod files;
mod gaps;
mod gateway;
mod intake;
mod sending;
mod support;
mod threads;
