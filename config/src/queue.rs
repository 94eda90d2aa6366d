//! `[queue]`: what happens to messages that come while a turn of their conversation runs.

use std::time::Duration;

use rejoinder_core::{Backlog, Overflow, QueueMode};
use serde::{Deserialize, Serialize};

use crate::{
    duration::{self, SECOND},
    number,
};

/// The lines of waiting turns.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// In direct chats, and on channels without groups.
    pub mode: QueueMode,
    /// In groups.
    pub group_mode: QueueMode,
    /// How long `collect` waits for another message.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 100, { 60 * SECOND }>")]
    pub window: Duration,
    /// How many turns may wait in a conversation.
    #[serde(deserialize_with = "number::between::<_, 1, 1000>")]
    pub cap: u32,
    /// What happens when more come.
    pub overflow: Overflow,
    /// What happens to messages that are late.
    pub backlog: Backlog,
    /// How old these are.
    #[serde(
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, { 60 * SECOND }, { 2_592_000 * SECOND }>"
    )]
    pub late_after: Duration,
    /// The reaction on a message that waits; empty: none.
    pub seen: String,
}
