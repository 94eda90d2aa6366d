//! OpenAI's Responses API, without anything that the server stores: each request has the whole input.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the parts of a request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |

mod request;
mod stream;

use std::borrow::Cow;

use rejoinder_config::AgentSection;
use rejoinder_core::AgentTurn;
use reqwest::header::{HeaderMap, InvalidHeaderValue};
use secrecy::SecretString;
use serde::Serialize;

use self::stream::ResponseAnswer;
use super::section::OpenAiSection;
use crate::{
    model::{Dialect, Protocol},
    prompt::messages::Message,
    section::ModelSettings,
    tools::Tool,
};

/// The section of an agent that is asked by the Responses API.
#[derive(Clone, Debug)]
pub struct ResponsesSection(OpenAiSection);

impl From<OpenAiSection> for ResponsesSection {
    fn from(section: OpenAiSection) -> Self {
        Self(section)
    }
}

impl Protocol for ResponsesSection {
    const KIND: &'static str = <OpenAiSection as AgentSection>::KIND;
    const PATH: &'static [&'static str] = &["responses"];
    const MODELS: &'static [&'static str] = OpenAiSection::MODELS;
    const AROUND_INSTRUCTIONS: [&'static str; 2] = [r#","instructions":"#, r#","input":["#];

    type Answer = ResponseAnswer;

    fn settings(&self) -> ModelSettings<'_> {
        self.0.settings()
    }

    fn headers(key: Option<&SecretString>) -> Result<HeaderMap, InvalidHeaderValue> {
        OpenAiSection::headers(key)
    }

    fn options<'a>(
        &'a self,
        turn: &'a AgentTurn,
        tools: Option<&'a [Cow<'a, Tool>]>,
        dialect: Dialect,
    ) -> impl Serialize {
        request::options(&self.0, turn, tools, dialect)
    }

    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
        request::write_messages(messages, body);
    }
}
