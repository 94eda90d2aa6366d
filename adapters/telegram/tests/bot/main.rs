//! A bot with a real core and a real database, against the Bot API double. The agent is scripted and follows commands.

mod checking;
mod intake;
mod sending;
mod streaming;
mod support;
mod webhook;
