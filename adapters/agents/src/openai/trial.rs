//! One short question to a server that is not configured yet.

use std::time::Duration;

use rejoinder_core::{AgentError, Shim};
use reqwest::header::AUTHORIZATION;
use secrecy::SecretString;
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::{key::bearer, stream::ChatAnswer};
use crate::{
    model::{Answer, AnswerError},
    response::{chain, error_detail, error_text, read_body},
};

const TIMEOUT: Duration = Duration::from_mins(1);

/// The largest answer that is read, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// Asks `model` to say hello, once and without the tools of a turn, and returns its answer.
///
/// # Errors
/// When there is no answer within a minute. The texts contain no key and no password.
pub async fn say_hello(
    http: &reqwest::Client,
    base_url: &Url,
    key: Option<&SecretString>,
    model: &str,
) -> Result<String, AgentError> {
    let asked = timeout(TIMEOUT, ask(http, base_url, key, model)).await;
    asked.unwrap_or_else(|_| Err(AgentError::Stalled("no answer for a minute".to_owned())))
}

async fn ask(
    http: &reqwest::Client,
    base_url: &Url,
    key: Option<&SecretString>,
    model: &str,
) -> Result<String, AgentError> {
    let unreachable = |error| AgentError::Unreachable(chain(error));
    let mut url = base_url.clone();
    let no_web_address = |()| AgentError::Unreachable("the URL is not a web address".to_owned());
    url.path_segments_mut().map_err(no_web_address)?.pop_if_empty().extend(["chat", "completions"]);
    let question = json!({ "role": "user", "content": "Say hello in one short sentence." });
    let mut request = http.post(url).json(&json!({ "model": model, "messages": [question] }));
    if let Some(key) = key {
        let authorization = bearer(key);
        let authorization = authorization.map_err(|_| AgentError::Failed("the key is not valid in a header".into()))?;
        request = request.header(AUTHORIZATION, authorization);
    }
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let body = read_body(&mut response, MAX_BODY).await.map_err(unreachable)?;
    let body = String::from_utf8_lossy(&body);
    if !status.is_success() {
        let message = error_detail(&error_text(body.as_bytes()), key);
        return Err(AgentError::Refused { status: status.to_string(), message });
    }
    let mut answer = ChatAnswer::new(false);
    answer.whole(&body).map_err(|error| match error {
        AnswerError::Failed(why) | AnswerError::Refused(why) => AgentError::Failed(error_detail(&why, key)),
        AnswerError::Broken(why) => AgentError::Broken(error_detail(&why, key)),
    })?;
    answer.text_mut().end();
    let text = Shim::whole(&answer.into_written().text);
    if text.trim().is_empty() { Err(AgentError::Broken("it is empty".to_owned())) } else { Ok(text) }
}
