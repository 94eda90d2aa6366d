//! `[channels.api.<name>]`: the configuration of an API.

use std::time::Duration;

use rejoinder_config::{
    ChannelSection, Common, Section, Size, Token,
    duration::{self, MINUTE},
    text,
};
use rejoinder_core::{Language, QueueMode};
use serde::{Deserialize, Serialize};

/// The configuration of one API.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompletionsSection {
    /// Sent by clients as `Authorization: Bearer …`. Without it only the operators' tokens open the API.
    pub token: Option<Token>,
    /// How long a caller waits for the answer.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 1, { 10 * MINUTE }>")]
    pub wait: Duration,
    /// What happens to a message that comes while a turn of its conversation runs. Overrides `queue.mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMode>,
    /// The agent that stands first among the models, if not the default one.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
    /// The language of people whose own is not known, if not `guard.language`.
    #[serde(deserialize_with = "text::language_option")]
    pub language: Option<Language>,
    /// The largest body, if not `server.body_limit`.
    pub body_limit: Option<Size>,
}

impl Default for CompletionsSection {
    fn default() -> Self {
        Self { token: None, wait: Duration::from_mins(9), queue: None, agent: None, language: None, body_limit: None }
    }
}

impl Section for CompletionsSection {}

impl ChannelSection for CompletionsSection {
    const PLATFORM: &'static str = "api";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common { agent: self.agent.clone(), queue: self.queue, language: self.language, ..Common::default() }
    }
}
