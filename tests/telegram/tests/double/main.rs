//! The double does what the Bot API does, and fails as asked.

mod client;
mod control;
mod faults;
mod files;
mod limits;
mod messages;
mod people;
mod polling;
mod webhooks;
