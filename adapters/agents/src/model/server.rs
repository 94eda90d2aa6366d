//! A server, and how it is reached.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use rejoinder_config::Secret;
use rejoinder_core::AgentName;
use rejoinder_kit::secret_headers;
use reqwest::header::{HeaderMap, InvalidHeaderValue};
use url::Url;

use super::{dialect::LearnedDialect, protocol::Protocol};
use crate::{prompt::instructions::LastInstructions, section::ModelSettings, tools::ToolSource};

/// How long to wait before the only retry, if the server does not say.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A base URL for printing, without the parts that may be secret.
#[must_use]
pub fn redacted_url(base_url: &Url) -> Url {
    let mut url = base_url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail if there is no user to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("`base_url` must begin with http:// or https://")]
    BaseUrl,
    #[error("`api_key` contains a character that is not allowed in a header (a line break, perhaps)")]
    ApiKey(#[source] InvalidHeaderValue),
    /// Contains the header's name, not its value.
    #[error("`headers.{0}` cannot be sent: its name or its value contains a character that is not allowed in a header")]
    Header(String),
}

/// The headers of every request to a server: those of the protocol, and those that the operator adds.
///
/// # Errors
/// When one is not allowed.
pub(super) fn headers<P: Protocol>(settings: &ModelSettings<'_>) -> Result<HeaderMap, SettingsError> {
    let mut headers = P::headers(settings.api_key.map(Secret::get)).map_err(SettingsError::ApiKey)?;
    let added = settings.headers.iter().map(|(name, value)| (&**name, value.expose()));
    headers.extend(secret_headers(added).map_err(SettingsError::Header)?);
    Ok(headers)
}

/// An agent behind a server with a model. `P` is the section of its kind.
pub struct Model<P> {
    /// For metrics and logs.
    pub(super) name: AgentName,
    pub(super) protocol: P,
    pub(super) retry_pause: Duration,
    pub(super) http: reqwest::Client,
    pub(super) url: Url,
    /// Those of every request, such as the key.
    pub(super) headers: HeaderMap,
    pub(super) learned: LearnedDialect,
    pub(super) instructions: LastInstructions,
    pub(super) thinks_first: AtomicBool,
    /// Where further tools come from.
    pub(super) more_tools: Option<Arc<dyn ToolSource>>,
}

impl<P: Protocol> fmt::Debug for Model<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("kind", &P::KIND)
            .field("name", &self.name)
            .field("at", &self.redacted_url().as_str())
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> Model<P> {
    /// Sends nothing yet. `http` must have no timeout for whole requests: an answer may take minutes.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(name: AgentName, section: P, http: reqwest::Client) -> Result<Self, SettingsError> {
        let settings = section.settings();
        if !matches!(settings.base_url.scheme(), "http" | "https") {
            return Err(SettingsError::BaseUrl);
        }
        let mut url = settings.base_url.clone();
        url.path_segments_mut().map_err(|()| SettingsError::BaseUrl)?.pop_if_empty().extend(P::PATH);
        let headers = headers::<P>(&settings)?;
        let thinks_first = AtomicBool::new(settings.thinks_first);
        let (learned, instructions) = (LearnedDialect::default(), LastInstructions::default());
        let (retry_pause, more_tools, protocol) = (RETRY_PAUSE, None, section);
        Ok(Self { name, protocol, retry_pause, http, url, headers, learned, instructions, thinks_first, more_tools })
    }

    /// The same with further tools, beside those of the gateway.
    #[must_use]
    pub fn with_more_tools(mut self, tools: Option<Arc<dyn ToolSource>>) -> Self {
        self.more_tools = tools;
        self
    }

    #[must_use]
    pub fn with_retry_pause(mut self, pause: Duration) -> Self {
        self.retry_pause = pause;
        self
    }

    pub(super) fn redacted_url(&self) -> Url {
        redacted_url(self.protocol.settings().base_url)
    }

    pub(super) fn count(&self, result: &'static str) {
        count_request(&self.name, result);
    }
}

/// Counts a request to an agent's server.
pub(crate) fn count_request(agent: &AgentName, result: &'static str) {
    metrics::counter!("rejoinder_agent_requests_total", "agent" => agent.clone(), "result" => result).increment(1);
}
