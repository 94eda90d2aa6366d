//! Finds servers and their models, for `rejoinder init` and `rejoinder doctor`.

use std::time::Duration;

use futures_util::future::join_all;
use secrecy::SecretString;
use url::Url;

use crate::{
    OpenAiSection,
    model::{ModelsError, Protocol as _, list},
};

/// How long one server may take to answer [`find_local`].
const TIMEOUT: Duration = Duration::from_secs(1);

/// Where [`find_local`] looks for servers.
#[derive(Clone, Debug)]
pub struct ServerCandidates {
    /// The value of `OPENAI_BASE_URL`, if it is set.
    pub environment: Option<Url>,
    /// The value of `OPENAI_API_KEY`, if it is set. Only sent to `environment`.
    pub api_key: Option<SecretString>,
    /// The usual addresses of servers on this machine.
    pub local: Vec<(Origin, Url)>,
}

impl Default for ServerCandidates {
    fn default() -> Self {
        let local = [(Origin::Ollama, 11434), (Origin::LmStudio, 1234), (Origin::LlamaCpp, 8080), (Origin::Vllm, 8000)];
        let at = |port| format!("http://127.0.0.1:{port}/v1").parse().expect("a valid URL");
        let local = local.into_iter().map(|(origin, port)| (origin, at(port))).collect();
        Self { environment: None, api_key: None, local }
    }
}

/// How a server was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By `OPENAI_BASE_URL`.
    Environment,
    /// An Ollama on this machine.
    Ollama,
    /// LM Studio on this machine.
    LmStudio,
    /// The server of llama.cpp on this machine.
    LlamaCpp,
    /// vLLM on this machine.
    Vllm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    pub origin: Origin,
    /// The value for the agent's `base_url`.
    pub base_url: Url,
    /// In the server's order. Empty if the server refuses the key or wants one.
    pub models: Vec<String>,
}

/// Asks the servers of `candidates` for their models, in parallel, for at most a second. Omits servers that do not answer with
/// a list of models, and of those on this machine also servers without a model.
pub async fn find_local(http: &reqwest::Client, candidates: &ServerCandidates) -> Vec<FoundServer> {
    let environment = candidates.environment.as_ref();
    let local = candidates.local.iter().filter(|(_, url)| environment != Some(url));
    let local = local.map(|(origin, url)| probe(http, *origin, Some(url), None));
    let (environment, local) =
        tokio::join!(probe(http, Origin::Environment, environment, candidates.api_key.as_ref()), join_all(local),);
    environment.into_iter().chain(local.into_iter().flatten()).collect()
}

/// The models of a server, in its own order.
///
/// # Errors
/// When the server does not list them.
pub async fn list_models(
    http: &reqwest::Client,
    base_url: &Url,
    key: Option<&SecretString>,
) -> Result<Vec<String>, ModelsError> {
    // A key that is not allowed in a header is refused when the agent is built.
    let headers = OpenAiSection::headers(key).unwrap_or_default();
    list::<OpenAiSection>(http, base_url, headers).await
}

async fn probe(
    http: &reqwest::Client,
    origin: Origin,
    base_url: Option<&Url>,
    key: Option<&SecretString>,
) -> Option<FoundServer> {
    let base_url = base_url?;
    let models = match tokio::time::timeout(TIMEOUT, list_models(http, base_url, key)).await.ok()? {
        Ok(models) => models,
        // Many other programs listen at the ports of the others.
        Err(ModelsError::KeyRefused(_)) if origin == Origin::Environment => Vec::new(),
        Err(_) => return None,
    };
    let is_known = !models.is_empty() || matches!(origin, Origin::Environment | Origin::Ollama);
    is_known.then(|| FoundServer { origin, base_url: base_url.clone(), models })
}
