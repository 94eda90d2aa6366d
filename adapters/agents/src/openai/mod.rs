//! Any server with OpenAI's Chat Completions API or its Responses API: Ollama, vLLM, llama.cpp, LiteLLM, OpenAI and others.
//!
//! | File | Contains |
//! | --- | --- |
//! | `request` | the parts of a request's body (no I/O) |
//! | `stream` | parses and assembles the answer (no I/O) |
//! | `responses` | the same for the Responses API |
//! | `trial` | one short question, for `rejoinder init` |

mod key;
mod request;
mod responses;
mod section;
mod stream;
mod trial;

use std::{borrow::Cow, sync::Arc};

use rejoinder_config::AgentSection;
use rejoinder_core::{AgentName, AgentRuntime, AgentTurn};
use reqwest::header::{AUTHORIZATION, HeaderMap, InvalidHeaderValue};
use secrecy::SecretString;
use serde::Serialize;

use self::{key::bearer, stream::ChatAnswer};
pub use self::{
    responses::ResponsesSection,
    section::{OpenAiApi, OpenAiSection},
    trial::say_hello,
};
use crate::{
    model::{Dialect, Model, ModelKind, MoreTools, Protocol, SettingsError},
    prompt::messages::Message,
    section::ModelSettings,
    tools::Tool,
};

/// An agent behind a Chat Completions server.
pub type OpenAi = Model<OpenAiSection>;

/// An agent behind a server with the Responses API.
pub type OpenAiResponses = Model<ResponsesSection>;

impl ModelKind for OpenAiSection {
    fn build(
        &self,
        name: AgentName,
        http: reqwest::Client,
        tools: MoreTools,
    ) -> Result<Arc<dyn AgentRuntime>, SettingsError> {
        Ok(match self.api {
            OpenAiApi::Chat => Arc::new(OpenAi::new(name, self.clone(), http)?.with_more_tools(tools)),
            OpenAiApi::Responses => {
                Arc::new(OpenAiResponses::new(name, self.clone().into(), http)?.with_more_tools(tools))
            }
        })
    }
}

impl Protocol for OpenAiSection {
    const KIND: &'static str = <Self as AgentSection>::KIND;
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

    fn options<'a>(
        &'a self,
        turn: &'a AgentTurn,
        tools: Option<&'a [Cow<'a, Tool>]>,
        dialect: Dialect,
    ) -> impl Serialize {
        request::options(self, turn, tools, dialect)
    }

    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
        request::write_messages(messages, body);
    }
}
