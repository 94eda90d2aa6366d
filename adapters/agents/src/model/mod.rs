//! An agent behind a server with a model, whatever its protocol: [`Protocol`].
//!
//! | File | Contains |
//! | --- | --- |
//! | `run` | the rounds of a run, and the retry of a request |
//! | `request` | a request's body, and what the operator sees of it (no I/O) |
//! | `answer` | an answer while it arrives (no I/O) |
//! | `dialect` | which parts of the API a server refused |
//! | `server` | a server, and how it is reached |
//! | `exchange` | one request and its answer: HTTP, timeouts, which errors are retried |
//!
//! A run is one request, plus another one whenever the model must learn the result of a tool call (an invalid call, or a
//! `send` that was not sent), [`MAX_ROUNDS`](run::MAX_ROUNDS) in total. A choice (`react`, `ask`, `defer`, `stay_silent`), or a
//! `send` that became the turn's answer, ends the run without another request.

#![expect(private_bounds, reason = "only the kinds of this crate are protocols")]

mod answer;
mod dialect;
mod exchange;
mod request;
mod run;
mod server;

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_config::{AgentSection, Secret};
use rejoinder_core::{AgentName, AgentRuntime, AgentTurn};
use reqwest::header::{HeaderMap, InvalidHeaderValue};
use secrecy::SecretString;
use serde::Serialize;
use url::Url;

pub use self::server::{Model, SettingsError, redacted_url};
#[cfg(test)]
pub(crate) use self::{answer::MAX_ANSWER, request::Request};
pub(crate) use self::{
    answer::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage, error_message},
    dialect::Dialect,
    exchange::{chain, error_detail, read_body},
    request::write_elements,
};
use crate::{
    detect::{ModelStatus, ModelsError, check_agent},
    prompt::messages::Message,
    section::ModelSettings,
};

/// The protocol of a kind of agent, implemented by the kind's section.
pub(crate) trait Protocol: AgentSection {
    /// Where requests are posted, below the base URL.
    const PATH: &'static [&'static str];

    /// Where the server lists its models, below the base URL.
    const MODELS: &'static [&'static str];

    /// What stands before the text of the instructions in a body, after the options, and what between it and the messages.
    const AROUND_INSTRUCTIONS: [&'static str; 2];

    type Answer: Answer;

    fn settings(&self) -> ModelSettings<'_>;

    /// The headers of every request, with the key.
    ///
    /// # Errors
    /// When the key is not allowed in a header.
    fn headers(key: Option<&SecretString>) -> Result<HeaderMap, InvalidHeaderValue>;

    /// The body without the instructions and the messages: a JSON object with at least one key.
    fn options<'a>(&'a self, turn: &'a AgentTurn, dialect: Dialect) -> impl Serialize;

    /// Writes messages as the elements of a JSON list, without its brackets.
    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>);
}

/// The section of an agent behind a server with a model.
#[async_trait]
pub trait ModelSection: AgentSection {
    fn base_url(&self) -> &Url;

    fn model(&self) -> &str;

    fn api_key(&self) -> Option<&Secret>;

    /// Whether the model is offered tools.
    fn offers_tools(&self) -> bool;

    /// The agent. As [`Model::new`].
    ///
    /// # Errors
    /// When the settings are invalid.
    fn agent(&self, name: AgentName, http: reqwest::Client) -> Result<Arc<dyn AgentRuntime>, SettingsError>;

    /// Asks the server whether it has the model, without running a turn.
    ///
    /// # Errors
    /// When the server does not list its models.
    async fn check_model(&self, http: &reqwest::Client) -> Result<ModelStatus, ModelsError>;
}

#[async_trait]
impl<P: Protocol + Clone> ModelSection for P {
    fn base_url(&self) -> &Url {
        self.settings().base_url
    }

    fn model(&self) -> &str {
        self.settings().model
    }

    fn api_key(&self) -> Option<&Secret> {
        self.settings().api_key
    }

    fn offers_tools(&self) -> bool {
        self.settings().tools
    }

    fn agent(&self, name: AgentName, http: reqwest::Client) -> Result<Arc<dyn AgentRuntime>, SettingsError> {
        Ok(Arc::new(Model::new(name, self.clone(), http)?))
    }

    async fn check_model(&self, http: &reqwest::Client) -> Result<ModelStatus, ModelsError> {
        check_agent(http, self).await
    }
}
