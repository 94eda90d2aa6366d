//! `kind = "openai"`: a server with the Chat Completions API.

use std::time::Duration;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected},
};
use url::Url;

use crate::{
    Secret,
    check::Section,
    duration::{self, HOUR, MINUTE, SECOND},
    number, text,
};

/// Any server with the Chat Completions API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI, ...
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAi {
    /// Where the API is, `/v1` included where the server has it.
    #[serde(deserialize_with = "text::http_url")]
    pub base_url: Url,
    /// Which of the server's models answers.
    #[serde(deserialize_with = "text::filled")]
    pub model: String,
    /// Shown as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// What the model is told before each conversation.
    #[serde(default = "default_system_prompt", deserialize_with = "text::filled")]
    pub system_prompt: String,
    /// How freely the model picks its words, from 0 to 2. The server's own choice when it is not set.
    #[serde(default, serialize_with = "write_temperature", deserialize_with = "read_temperature")]
    pub temperature: Option<f32>,
    /// The most tokens that an answer may have. The server's own choice when it is not set.
    #[serde(default, deserialize_with = "number::between_option::<_, 1, 1_000_000>")]
    pub max_tokens: Option<u32>,
    /// Whether the model is offered the guard's vocabulary: react, defer, stay silent, send.
    #[serde(default = "default_tools")]
    pub tools: bool,
    /// Whether the model is shown the pictures that people send.
    #[serde(default)]
    pub images: bool,
    /// Whether the model writes a thought first that ends in `</think>` and has no `<think>` before it: no draft is
    /// shown before it has ended. Noticed all the same with the first such answer.
    #[serde(default)]
    pub thinks_first: bool,
    /// How many earlier messages the model is shown at most.
    #[serde(default = "default_history_messages", deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many characters of earlier messages the model is shown at most; the oldest go first.
    #[serde(default = "default_history_chars", deserialize_with = "number::between::<_, 0, 10_000_000>")]
    pub history_chars: u32,
    /// How long the server may take until the first sign of an answer; it may have to load the model.
    #[serde(
        default = "default_first_token_timeout",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, 10, HOUR>"
    )]
    pub first_token_timeout: Duration,
    /// How long the server may then say nothing.
    #[serde(
        default = "default_idle_timeout",
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, 10, HOUR>"
    )]
    pub idle_timeout: Duration,
}

impl Section for OpenAi {}

fn default_system_prompt() -> String {
    "You are a helpful assistant. Answer briefly, in the language of the person.".to_owned()
}

const fn default_tools() -> bool {
    true
}

const fn default_history_messages() -> u32 {
    40
}

const fn default_history_chars() -> u32 {
    16_000
}

fn default_first_token_timeout() -> Duration {
    Duration::from_millis(2 * MINUTE)
}

fn default_idle_timeout() -> Duration {
    Duration::from_millis(60 * SECOND)
}

fn read_temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f32>, D::Error> {
    let temperature = f32::deserialize(deserializer)?;
    if (0.0..=2.0).contains(&temperature) {
        return Ok(Some(temperature));
    }
    Err(D::Error::invalid_value(Unexpected::Float(temperature.into()), &"a number from 0 to 2"))
}

/// Writes the digits that were read, not those of the nearest binary fraction.
#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to the field")]
fn write_temperature<S: Serializer>(temperature: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
    match temperature.and_then(|temperature| temperature.to_string().parse::<f64>().ok()) {
        Some(temperature) => serializer.serialize_some(&temperature),
        None => serializer.serialize_none(),
    }
}
