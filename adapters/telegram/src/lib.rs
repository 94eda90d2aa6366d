//! Telegram as a channel.

pub mod format;
