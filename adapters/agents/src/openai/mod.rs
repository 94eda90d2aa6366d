//! Any server with OpenAI's Chat Completions API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI and others.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the parts of a request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |
//! | `trial` | one short question, for `rejoinder init` |

mod key;
mod request;
mod section;
mod stream;
mod trial;

use rejoinder_core::AgentTurn;
use reqwest::header::{AUTHORIZATION, HeaderMap, InvalidHeaderValue};
use secrecy::SecretString;
use serde::Serialize;

use self::{key::bearer, stream::ChatAnswer};
pub use self::{section::OpenAiSection, trial::say_hello};
use crate::{
    model::{Dialect, Model, Protocol},
    prompt::messages::Message,
    section::ModelSettings,
};

/// An agent behind a Chat Completions server.
pub type OpenAi = Model<OpenAiSection>;

impl Protocol for OpenAiSection {
    const PATH: &'static [&'static str] = &["chat", "completions"];
    const MODELS: &'static [&'static str] = &["models"];
    const AROUND_INSTRUCTIONS: [&'static str; 2] = request::AROUND_INSTRUCTIONS;

    type Answer = ChatAnswer;

    fn settings(&self) -> ModelSettings<'_> {
        self.settings()
    }

    fn headers(key: Option<&SecretString>) -> Result<HeaderMap, InvalidHeaderValue> {
        key.map(|key| Ok((AUTHORIZATION, bearer(key)?))).into_iter().collect()
    }

    fn options<'a>(&'a self, turn: &'a AgentTurn, dialect: Dialect) -> impl Serialize {
        request::options(self, turn, dialect)
    }

    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
        request::write_messages(messages, body);
    }
}
