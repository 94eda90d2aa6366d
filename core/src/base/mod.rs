//! What every room may use: the configured channels, the lifecycle of tasks, pauses between retries, the timer, words, speech
//! within its bounds. Nothing here knows a turn's rules or another room.

pub(crate) mod bounded_speech;
pub(crate) mod channels;
pub(crate) mod conflicts;
pub(crate) mod crash;
pub(crate) mod json;
pub(crate) mod lifecycle;
pub(crate) mod pauses;
pub(crate) mod recent_turns;
pub(crate) mod timer;
pub(crate) mod undeliverable;
pub(crate) mod verbatim;
pub(crate) mod words;
