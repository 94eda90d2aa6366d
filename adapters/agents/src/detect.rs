//! Servers that answer on this machine or where the environment points: what `rejoinder init` offers.

use std::time::Duration;

use reqwest::{StatusCode, header::AUTHORIZATION};
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use crate::openai::bearer;

/// How long one server may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The most of a list of models that is read, in bytes.
const LARGEST_LIST: usize = 1024 * 1024;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// The value of `OPENAI_BASE_URL`, if it is set.
    pub environment: Option<Url>,
    /// The value of `OPENAI_API_KEY`, if it is set; sent to `environment` only.
    pub api_key: Option<SecretString>,
    /// Where a local Ollama would be.
    pub ollama: Url,
}

impl Default for Places {
    fn default() -> Self {
        Self { environment: None, api_key: None, ollama: "http://127.0.0.1:11434/v1".parse().expect("it is a URL") }
    }
}

/// How a server was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `OPENAI_BASE_URL` names it.
    Environment,
    /// An Ollama on this machine.
    Ollama,
}

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How it was found.
    pub origin: Origin,
    /// The `base_url` for the agent.
    pub base_url: Url,
    /// The models it has, by its own order; none where it does not say (it wants a key, perhaps).
    pub models: Vec<String>,
}

/// Asks the servers of `places` for their models, all at once, for about a second. Those that do not answer
/// are left out.
pub async fn find_local(http: &reqwest::Client, places: &Places) -> Vec<Found> {
    let environment = places.environment.as_ref();
    let ollama = Some(&places.ollama).filter(|ollama| environment != Some(ollama));
    let (environment, ollama) = tokio::join!(
        probe(http, Origin::Environment, environment, places.api_key.as_ref()),
        probe(http, Origin::Ollama, ollama, None),
    );
    environment.into_iter().chain(ollama).collect()
}

#[derive(Deserialize)]
struct Models {
    #[serde(default)]
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

async fn probe(
    http: &reqwest::Client,
    origin: Origin,
    base_url: Option<&Url>,
    key: Option<&SecretString>,
) -> Option<Found> {
    let base_url = base_url?;
    let models = tokio::time::timeout(TIMEOUT, models(http, base_url, key)).await.ok()??;
    Some(Found { origin, base_url: base_url.clone(), models })
}

/// The models of a server. `None`: there is no server of this kind.
async fn models(http: &reqwest::Client, base_url: &Url, key: Option<&SecretString>) -> Option<Vec<String>> {
    let mut url = base_url.clone();
    url.path_segments_mut().ok()?.pop_if_empty().push("models");
    let mut request = http.get(url);
    if let Some(authorization) = key.and_then(|key| bearer(key).ok()) {
        request = request.header(AUTHORIZATION, authorization);
    }
    let mut response = request.send().await.ok()?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Some(Vec::new()),
        status if !status.is_success() => return None,
        _ => {}
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST_LIST {
            return None;
        }
    }
    let models: Models = serde_json::from_slice(&body).ok()?;
    Some(models.data.into_iter().map(|model| model.id).collect())
}
