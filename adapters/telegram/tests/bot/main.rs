//! A bot before a real core on a real database, against the Bot API double. The agent is scripted, and does
//! what it is told.

mod checking;
mod intake;
mod sending;
mod streaming;
mod support;
mod webhook;
