//! `[channels.api.<name>]`: the configuration of an API.

use std::time::Duration;

use rejoinder_config::{
    ChannelSection, Common, DirectKeys, Section, Size, Token,
    duration::{self, MINUTE},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompletionsSection {
    /// Sent by clients as `Authorization: Bearer …`. Without it only the operators' tokens open the API.
    pub token: Option<Token>,
    /// How long a caller waits for the answer.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 1, { 10 * MINUTE }>")]
    pub wait: Duration,
    #[serde(rename = "..common")]
    pub common: DirectKeys,
    /// The largest body, if not `server.body_limit`.
    pub body_limit: Option<Size>,
}

impl Default for CompletionsSection {
    fn default() -> Self {
        Self { token: None, wait: Duration::from_mins(9), common: DirectKeys::default(), body_limit: None }
    }
}

impl Section for CompletionsSection {}

impl ChannelSection for CompletionsSection {
    const PLATFORM: &'static str = "api";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        self.common.common()
    }
}
