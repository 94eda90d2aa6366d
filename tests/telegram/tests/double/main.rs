//! The double behaves like the Bot API, and fails on demand.

mod client;
mod control;
mod faults;
mod files;
mod limits;
mod messages;
mod people;
mod polling;
mod webhooks;
