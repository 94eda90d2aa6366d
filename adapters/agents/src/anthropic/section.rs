//! `kind = "anthropic"`: the configuration of an agent with Anthropic's Messages API.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rejoinder_config::{
    AgentSection, Checks, Secret, Section, SystemPrompt,
    duration::{self, HOUR},
    number, text,
};
use rejoinder_core::{Price, ScheduleLimits};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    file_kind::Takes,
    mcp_server::{self, McpServerSection},
    piece::PieceName,
    section::{
        self, ModelSettings, PriceSection, SYSTEM_PROMPT, SchedulesSection, read_temperature, write_temperature,
    },
};

/// The size of the largest picture that the API takes, in bytes: 5 MiB in base64 (Anthropic's page "Vision").
const LARGEST_PICTURE: usize = 5 * 1024 * 1024 / 4 * 3;

/// Claude, or another model behind Anthropic's Messages API.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicSection {
    /// The URL of the API, without `/v1`.
    #[serde(deserialize_with = "text::http_url")]
    pub base_url: Url,
    #[serde(deserialize_with = "text::filled")]
    pub model: String,
    /// Further models, of which people may choose one for a session.
    pub models: Vec<String>,
    /// Sent as `x-api-key`.
    pub api_key: Option<Secret>,
    /// Sent with every request as well. The values are secrets.
    pub headers: BTreeMap<String, Secret>,
    /// The instructions that the model gets before each conversation.
    pub system_prompt: SystemPrompt,
    /// What of its own the gateway does not add to the system prompt.
    pub leave_out: Vec<PieceName>,
    /// From 0 to 1. `None`: the server decides. Not sent with `thinking`, which the API does not take beside it.
    #[serde(serialize_with = "write_temperature", deserialize_with = "read_temperature::<_, 1>")]
    pub temperature: Option<f32>,
    /// The most tokens of one answer, with its thoughts.
    #[serde(deserialize_with = "number::between::<_, 1, 1_000_000>")]
    pub max_tokens: u32,
    /// The most tokens of the thoughts before one answer. `None`: the model does not think first.
    #[serde(deserialize_with = "number::between_option::<_, 1024, 1_000_000>")]
    pub thinking: Option<u32>,
    /// Whether the model is offered tools to react, ask, defer, stay silent and send.
    pub tools: bool,
    /// Whether the model gets the pictures that people send.
    pub images: bool,
    /// The most earlier messages that the model gets.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// The most characters of earlier messages that the model gets; the oldest messages are left out.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000_000>")]
    pub history_chars: u32,
    /// How many turns the agent works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// How long the server may take until the first part of an answer.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub first_token_timeout: Duration,
    /// How long the server may pause after that.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, HOUR>")]
    pub idle_timeout: Duration,
    /// What the model may schedule in a chat.
    pub schedules: SchedulesSection,
    /// What the model's tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// The servers of the Model Context Protocol whose tools the model is offered, by name.
    pub mcp: BTreeMap<String, McpServerSection>,
}

impl Default for AnthropicSection {
    fn default() -> Self {
        Self {
            base_url: "https://api.anthropic.com".parse().expect("a valid constant"),
            model: String::new(),
            models: Vec::new(),
            api_key: None,
            headers: BTreeMap::new(),
            system_prompt: SYSTEM_PROMPT.into(),
            leave_out: Vec::new(),
            temperature: None,
            max_tokens: 8192,
            thinking: None,
            tools: true,
            images: true,
            history_messages: 40,
            history_chars: 16_000,
            max_concurrent: 32,
            show_activity: false,
            first_token_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(1),
            schedules: SchedulesSection::default(),
            price: None,
            mcp: BTreeMap::new(),
        }
    }
}

impl AnthropicSection {
    pub(crate) fn settings(&self) -> ModelSettings<'_> {
        ModelSettings {
            base_url: &self.base_url,
            api_key: self.api_key.as_ref(),
            headers: &self.headers,
            model: &self.model,
            system_prompt: self.system_prompt.as_str(),
            leave_out: &self.leave_out,
            tools: self.tools,
            mcp: &self.mcp,
            takes: Takes { pictures: self.images.then_some(LARGEST_PICTURE), ..Takes::default() },
            thinks_first: false,
            history_messages: self.history_messages,
            history_chars: self.history_chars,
            first_token_timeout: self.first_token_timeout,
            idle_timeout: self.idle_timeout,
        }
    }
}

impl Section for AnthropicSection {
    const REQUIRED: &'static [&'static str] = &["model"];

    fn check(&self, checks: &mut Checks<'_>) {
        section::check_models(&self.model, &self.models, checks);
        section::check_headers(&self.headers, &[("x-api-key", Some("api_key")), ("anthropic-version", None)], checks);
        mcp_server::check(&self.mcp, checks);
        if self.thinking.is_some_and(|thinking| thinking >= self.max_tokens) {
            let what = format!("must be less than `max_tokens` ({}), which it is a part of", self.max_tokens);
            checks.wrong(checks.key(&["thinking"]), what);
        }
    }
}

impl AgentSection for AnthropicSection {
    const KIND: &'static str = "anthropic";
    const MANUAL: &'static str = include_str!("../../anthropic.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn models(&self) -> Vec<Arc<str>> {
        section::models(&self.model, &self.models)
    }

    fn schedules(&self) -> Option<ScheduleLimits> {
        self.tools.then_some(self.schedules.into())
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        check_agent_manual::<AnthropicSection>(
            &[("ANTHROPIC_API_KEY", "sk-ant-example"), ("GATEWAY_KEY", "gw-example")],
            &["models", "api_key", "headers", "temperature", "thinking", "price", "mcp"],
        );
    }

    #[rstest]
    #[case::no_model("", "agents.main.model` must be set (rejoinder.toml:1)")]
    #[case::too_free(
        "model = \"m\"\ntemperature = 1.5",
        "agents.main.temperature` must be a number from 0 to 1, not 1.5 (rejoinder.toml:4)"
    )]
    #[case::too_few_thoughts(
        "model = \"m\"\nthinking = 100",
        "agents.main.thinking` must be a whole number from 1024 to 1000000, not 100 (rejoinder.toml:4)"
    )]
    #[case::thoughts_alone(
        "model = \"m\"\nthinking = 8192",
        "agents.main.thinking` must be less than `max_tokens` (8192), which it is a part of (rejoinder.toml:4)"
    )]
    #[case::the_key(
        "model = \"m\"\nheaders = { X-Api-Key = \"a\" }",
        "agents.main.headers.X-Api-Key` is set by the gateway itself: set `api_key` (rejoinder.toml:4)"
    )]
    #[case::the_version(
        "model = \"m\"\nheaders = { anthropic-version = \"2023-01-01\" }",
        "agents.main.headers.anthropic-version` is set by the gateway itself: remove it (rejoinder.toml:4)"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<AnthropicSection>(&format!("[agents.main]\nkind = \"anthropic\"\n{keys}"));

        assert_eq!(machine.errors(), format!("config key `{said}"));
    }
}
