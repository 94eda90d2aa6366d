//! What happens to messages that come while a turn of their conversation runs.

use std::{collections::HashMap, str::FromStr, time::Duration};

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ChatKind},
    event::{EventKind, InboundEvent},
};

named! {
    /// What happens to a message that comes while a turn of its conversation runs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum QueueMode {
        /// It waits, and is answered by itself.
        #[default]
        Followup = "followup",
        /// It waits, also for a moment when nothing runs, and is answered together with the others that wait.
        Collect = "collect",
        /// The agent that runs gets it, if it can take messages while it works; otherwise it waits, and is answered by itself.
        Steer = "steer",
        /// It stops the run, which begins again with all that wait.
        Interrupt = "interrupt",
    }
}

/// The text names no queue mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `followup`, `collect`, `steer` or `interrupt`")]
pub struct NotAQueueMode;

impl FromStr for QueueMode {
    type Err = NotAQueueMode;

    fn from_str(text: &str) -> Result<Self, NotAQueueMode> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text).ok_or(NotAQueueMode)
    }
}

/// What happens to a message for which there is no room in the line of its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The new message is not taken, and its sender is told.
    #[default]
    Newest,
    /// The messages that have waited the longest are dropped, and the chat is told.
    Oldest,
    /// All that wait are answered together; of the oldest ones the agent gets the beginning.
    Summarize,
}

/// What happens to messages that are late: they were sent, or have waited, long before they can be answered, because the
/// gateway or the connection to the platform was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backlog {
    /// They are answered like others.
    #[default]
    Answer,
    /// Those of a conversation are answered together.
    Summarize,
    /// The chat is asked once whether they are to be answered.
    Ask,
    /// They are not answered, and the chat is told so once.
    Expire,
}

/// The lines of waiting turns, one for each conversation.
#[derive(Clone, Debug)]
pub struct Queues {
    /// The mode of every chat without an entry in `modes`.
    pub mode: QueueMode,
    /// The modes of the channels' chats that do not use the default.
    pub modes: HashMap<(ChannelId, ChatKind), QueueMode>,
    /// How long `collect` waits for another message.
    pub window: Duration,
    /// How many turns may wait in a conversation, and how many are answered together.
    pub cap: u32,
    /// What happens when more come.
    pub overflow: Overflow,
    /// What happens to messages that are late.
    pub backlog: Backlog,
    /// How old these are.
    pub late_after: Duration,
    /// The reaction on a message that waits for its run, where the platform has reactions.
    pub seen: Option<String>,
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            mode: QueueMode::default(),
            modes: HashMap::new(),
            window: Duration::from_millis(1500),
            cap: 100,
            overflow: Overflow::default(),
            backlog: Backlog::default(),
            late_after: Duration::from_hours(1),
            seen: None,
        }
    }
}

impl Queues {
    /// Whether a message is late at this time. An edit is as old as its message, and shows that its person waits.
    pub(crate) fn is_backlog(&self, event: &InboundEvent, now: Timestamp) -> bool {
        let sent_at = event.sent_at.unwrap_or(event.received_at);
        event.kind == EventKind::Message && event.amends.is_none() && sent_at + self.late_after < now
    }

    /// The mode of the chats of a kind on a channel.
    pub fn mode(&self, channel: &ChannelId, chat: ChatKind) -> QueueMode {
        self.modes.get(&(channel.clone(), chat)).copied().unwrap_or(self.mode)
    }
}
