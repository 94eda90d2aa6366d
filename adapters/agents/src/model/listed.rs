//! Which models a server has.

use reqwest::{Response, StatusCode, header::HeaderMap};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{protocol::Protocol, server::headers};
use crate::response::{chain, read_body};

/// The largest list of models that is read, in bytes.
const MAX_LIST: usize = 1024 * 1024;

/// Why a server's models are not known. Contains no key and no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelsError {
    /// No response arrived.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server wants a key, or another key. Contains the HTTP status.
    #[error("the server refuses the key ({0})")]
    KeyRefused(u16),
    /// The server fails. Contains the HTTP status.
    #[error("the server answers {0}")]
    Failing(u16),
    /// The response is not a list of models.
    #[error("the server does not list its models: {0}")]
    NoList(String),
}

/// Whether a server has a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelStatus {
    /// The server has the model.
    Available,
    /// The server says that there is no such model. Contains the models that it lists.
    Missing(Vec<String>),
    /// The server does not list the model, but may still accept it. Contains the models that it lists.
    Unlisted(Vec<String>),
}

/// [`ModelSection::check_model`](crate::ModelSection::check_model).
pub(crate) async fn check_agent<P: Protocol>(http: &reqwest::Client, section: &P) -> Result<ModelStatus, ModelsError> {
    let settings = section.settings();
    let (base_url, model) = (settings.base_url, settings.model);
    let headers = sendable::<P>(section);
    let listed = list::<P>(http, base_url, headers.clone()).await?;
    // Ollama lists a model without a tag as `model:latest`.
    if listed.iter().any(|listed| listed == model || listed.strip_suffix(":latest") == Some(model)) {
        return Ok(ModelStatus::Available);
    }
    // Some servers list one model but accept any name. Only some servers can be asked about a single model.
    let Ok(response) = get::<P>(http, base_url, headers, Some(model)).await else {
        return Ok(ModelStatus::Unlisted(listed));
    };
    Ok(match response.status() {
        status if status.is_success() => ModelStatus::Available,
        StatusCode::NOT_FOUND if is_about_model(&body(response).await.unwrap_or_default()) => {
            ModelStatus::Missing(listed)
        }
        _ => ModelStatus::Unlisted(listed),
    })
}

/// The models of an agent's server, in its own order.
pub(crate) async fn list_of<P: Protocol>(http: &reqwest::Client, section: &P) -> Result<Vec<String>, ModelsError> {
    list::<P>(http, section.settings().base_url, sendable::<P>(section)).await
}

/// The headers of every request. One that is not allowed is refused when the agent is built.
fn sendable<P: Protocol>(section: &P) -> HeaderMap {
    headers::<P>(&section.settings()).unwrap_or_default()
}

/// The models of a server, in its own order. `headers`: with the key.
pub(crate) async fn list<P: Protocol>(
    http: &reqwest::Client,
    base_url: &Url,
    headers: HeaderMap,
) -> Result<Vec<String>, ModelsError> {
    let response = get::<P>(http, base_url, headers, None).await?;
    match response.status() {
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(ModelsError::KeyRefused(status.as_u16()));
        }
        status if status.is_server_error() => return Err(ModelsError::Failing(status.as_u16())),
        status if !status.is_success() => return Err(ModelsError::NoList(format!("it answers {}", status.as_u16()))),
        _ => {}
    }
    let body = body(response).await?;
    let models: Models =
        serde_json::from_slice(&body).map_err(|error| ModelsError::NoList(format!("invalid list: {error}")))?;
    Ok(models.data.into_iter().map(|model| model.id).collect())
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

/// Whether a 404 is about the model and not about the URL.
fn is_about_model(body: &[u8]) -> bool {
    let failure: Value = serde_json::from_slice(body).unwrap_or_default();
    failure["error"]["message"].as_str().is_some_and(|message| message.to_lowercase().contains("model"))
}

/// Asks for the list of models, or for one of them.
async fn get<P: Protocol>(
    http: &reqwest::Client,
    base_url: &Url,
    headers: HeaderMap,
    model: Option<&str>,
) -> Result<Response, ModelsError> {
    let mut url = base_url.clone();
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(P::MODELS).extend(model),
        Err(()) => return Err(ModelsError::Unreachable("the URL is not a web address".to_owned())),
    };
    let response = http.get(url).headers(headers).send().await;
    response.map_err(|error| ModelsError::Unreachable(chain(error)))
}

async fn body(mut response: Response) -> Result<Vec<u8>, ModelsError> {
    let body = read_body(&mut response, MAX_LIST + 1).await.map_err(|error| ModelsError::Unreachable(chain(error)))?;
    if body.len() > MAX_LIST { Err(ModelsError::NoList("the list is too large".to_owned())) } else { Ok(body) }
}
