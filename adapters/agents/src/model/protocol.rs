//! What the kinds with a model behind HTTP differ in.

use std::borrow::Cow;

use rejoinder_core::AgentTurn;
use reqwest::header::{HeaderMap, InvalidHeaderValue};
use secrecy::SecretString;
use serde::Serialize;

use super::{answer::Answer, dialect::Dialect};
use crate::{prompt::messages::Message, section::ModelSettings, tools::Tool};

/// The protocol of a kind of agent, implemented by the kind's section, or by a type that wraps it.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// The kind, for people.
    const KIND: &'static str;

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

    /// The body without the instructions and the messages: a JSON object with at least one key. `tools`: those that the
    /// model is offered, at least one.
    fn options<'a>(
        &'a self,
        turn: &'a AgentTurn,
        tools: Option<&'a [Cow<'a, Tool>]>,
        dialect: Dialect,
    ) -> impl Serialize;

    /// Writes messages as the elements of a JSON list, without its brackets.
    fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>);
}
