//! A server, and how it is reached.

use std::{fmt, sync::atomic::AtomicBool, time::Duration};

use rejoinder_core::AgentName;
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{dialect::LearnedDialect, section::OpenAiSection};

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
}

/// An agent behind a Chat Completions server.
pub struct OpenAi {
    /// For metrics and logs.
    pub(super) name: AgentName,
    pub(super) settings: OpenAiSection,
    pub(super) retry_pause: Duration,
    pub(super) http: reqwest::Client,
    pub(super) url: Url,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) learned: LearnedDialect,
    pub(super) thinks_first: AtomicBool,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("name", &self.name)
            .field("at", &self.redacted_url().as_str())
            .finish_non_exhaustive()
    }
}

impl OpenAi {
    /// Sends nothing yet. `http` must have no timeout for whole requests: an answer may take minutes.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(name: AgentName, settings: OpenAiSection, http: reqwest::Client) -> Result<Self, SettingsError> {
        if !matches!(settings.base_url.scheme(), "http" | "https") {
            return Err(SettingsError::BaseUrl);
        }
        let mut url = settings.base_url.clone();
        url.path_segments_mut().map_err(|()| SettingsError::BaseUrl)?.pop_if_empty().extend(["chat", "completions"]);
        let authorization =
            settings.api_key.as_ref().map(|key| bearer(key.get())).transpose().map_err(SettingsError::ApiKey)?;
        let thinks_first = AtomicBool::new(settings.thinks_first);
        let (learned, retry_pause) = (LearnedDialect::default(), RETRY_PAUSE);
        Ok(Self { name, settings, retry_pause, http, url, authorization, learned, thinks_first })
    }

    #[must_use]
    pub fn with_retry_pause(mut self, pause: Duration) -> Self {
        self.retry_pause = pause;
        self
    }

    pub(super) fn redacted_url(&self) -> Url {
        redacted_url(&self.settings.base_url)
    }

    pub(super) fn count(&self, result: &'static str) {
        metrics::counter!("rejoinder_agent_requests_total", "agent" => self.name.clone(), "result" => result)
            .increment(1);
    }
}

pub(crate) fn bearer(key: &SecretString) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))?;
    value.set_sensitive(true);
    Ok(value)
}
