//! What is down at a node.

use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{conversation::ChannelId, nul::Texts};

/// What can go down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Channel(ChannelId),
    /// An agent, by its name.
    Agent(String),
}

/// How something is down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Down {
    /// Whether a channel cannot send, and still receives.
    pub is_mute: bool,
    /// What is wrong.
    pub problem: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
}

impl Down {
    /// What is wrong, also without knowing what it is that is down.
    pub(crate) fn said(&self) -> String {
        if self.is_mute { format!("sending fails: {}", self.problem) } else { self.problem.clone() }
    }
}

impl Texts for Down {
    fn strip_nul(&mut self) {
        self.problem.strip_nul();
    }
}
