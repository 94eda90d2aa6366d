//! A service of the operator, which gets one request for each turn.
//!
//! | File | Contains |
//! | --- | --- |
//! | `section` | the configuration |
//! | `exchange` | the request and its response |
//! | `probe` | whether the service can be reached |
//! | `openapi` | its OpenAPI description |
//!
//! A request is not sent again: the service may have acted on the first one.

mod exchange;
mod openapi;
mod probe;
mod section;

use std::fmt;

use async_trait::async_trait;
use rejoinder_core::{AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, RunEvents, SessionNotice};
use standardwebhooks::Webhook;
use tokio_util::sync::CancellationToken;

pub use self::{openapi::openapi, section::HttpSection};
use crate::{
    model::{count_request, redacted_url},
    wire,
};

/// An agent that is a service.
pub struct Http {
    /// For metrics and logs.
    name: AgentName,
    settings: HttpSection,
    signer: Option<Webhook>,
    client: reqwest::Client,
    is_probed: bool,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("name", &self.name).field("at", &self.describe()).finish_non_exhaustive()
    }
}

impl Http {
    /// Sends nothing yet. `client` must follow no redirects and have no timeout for whole requests: an answer may take minutes.
    /// Without a valid secret, requests have no signature.
    pub fn new(name: AgentName, settings: HttpSection, client: reqwest::Client) -> Self {
        let signer = settings.secret.as_ref().and_then(HttpSection::signer);
        Self { name, settings, signer, client, is_probed: false }
    }

    /// The same, probed by a connection while it is idle. Not for a client that reaches the service through a proxy.
    #[must_use]
    pub fn with_probe(self) -> Self {
        Self { is_probed: true, ..self }
    }

    async fn answer(&self, turn: AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        let Some(limit) = self.settings.timeout else { return self.exchange(turn, events).await };
        let answered = tokio::time::timeout(limit, self.exchange(turn, events)).await;
        answered.unwrap_or_else(|_| Err(AgentError::Stalled(format!("the answer has not ended within {limit:?}"))))
    }
}

/// The label in metrics.
const fn label(result: &Result<Outcome, AgentError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(AgentError::Unreachable(_)) => "unreachable",
        Err(AgentError::Refused { .. }) => "refused",
        Err(AgentError::Failed(_)) => "failed",
        Err(AgentError::Stalled(_)) => "stalled",
        Err(AgentError::Broken(_)) => "broken",
    }
}

#[async_trait]
impl AgentRuntime for Http {
    fn describe(&self) -> String {
        format!("http at {}", redacted_url(&self.settings.url))
    }

    fn history(&self) -> usize {
        self.settings.history_messages as usize
    }

    fn reads(&self, _: &str) -> Option<usize> {
        Some(wire::MAX_FILE)
    }

    fn seals(&self) -> bool {
        true
    }

    fn keeps_sessions(&self) -> bool {
        self.settings.sessions
    }

    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        // What is left of a time in which it kept sessions is not for it.
        if self.settings.sessions { self.tell(&notice).await } else { Ok(()) }
    }

    fn has_probe(&self) -> bool {
        self.is_probed
    }

    async fn probe(&self) -> Option<Result<(), AgentError>> {
        if self.is_probed { Some(probe::connect(&self.settings.url).await) } else { None }
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        tokio::select! {
            biased;
            outcome = self.answer(turn, &events) => {
                count_request(&self.name, label(&outcome));
                outcome
            }
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
        }
    }
}
