//! Claude, by Anthropic's Messages API.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the parts of a request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |

mod request;
mod section;
mod stream;

use std::borrow::Cow;

use rejoinder_config::AgentSection;
use rejoinder_core::AgentTurn;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

pub use self::section::AnthropicSection;
use self::stream::MessageAnswer;
use crate::{
    model::{Dialect, Model, ModelKind, Protocol},
    prompt::messages::Message,
    section::ModelSettings,
    tools::Tool,
};

/// An agent behind a server with Anthropic's Messages API.
pub type Anthropic = Model<AnthropicSection>;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

impl ModelKind for AnthropicSection {}

impl Protocol for AnthropicSection {
    const KIND: &'static str = <Self as AgentSection>::KIND;
    const PATH: &'static [&'static str] = &["v1", "messages"];
    const MODELS: &'static [&'static str] = &["v1", "models"];
    const AROUND_INSTRUCTIONS: [&'static str; 2] = request::AROUND_INSTRUCTIONS;

    type Answer = MessageAnswer;

    fn settings(&self) -> ModelSettings<'_> {
        self.settings()
    }

    fn headers(key: Option<&SecretString>) -> Result<HeaderMap, InvalidHeaderValue> {
        let key = key.map(|key| {
            let mut value = HeaderValue::try_from(key.expose_secret())?;
            value.set_sensitive(true);
            Ok((API_KEY, value))
        });
        [Ok(VERSION)].into_iter().chain(key).collect()
    }

    fn options<'a>(&'a self, turn: &'a AgentTurn, tools: Option<&'a [Cow<'a, Tool>]>, _: Dialect) -> impl Serialize {
        request::options(self, turn, tools)
    }

    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
        request::write_messages(messages, body);
    }
}
