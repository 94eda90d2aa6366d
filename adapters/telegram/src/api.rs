//! Calls to the Bot API, and their errors.
//!
//! Requests use teloxide's payloads but are sent by our own client, because callers must know whether a request was
//! written, and because no error may reveal the token, which is part of every URL.

use std::time::Duration;

use rejoinder_core::json_error;
use rejoinder_kit::calls;
use reqwest::{Client, Response, StatusCode, header::CONTENT_TYPE, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use teloxide::requests::Payload;
use url::Url;

use crate::errors::{ApiError, Refusal};

pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const FILE_TIMEOUT: Duration = Duration::from_secs(100);

/// The largest response that is read, in bytes. A hundred updates are far smaller.
const MAX_ANSWER: usize = 64 << 20;

/// A client of one Bot API server, with the bot's token.
pub(crate) struct Api {
    http: Client,
    base: Url,
    token: SecretString,
}

/// The wrapper of every response (<https://core.telegram.org/bots/api#making-requests>).
#[derive(Deserialize)]
struct Envelope<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

/// Details of an error (<https://core.telegram.org/bots/api#responseparameters>).
#[derive(Default, Deserialize)]
struct Parameters {
    migrate_to_chat_id: Option<i64>,
    retry_after: Option<u64>,
}

/// A result of any shape, for error responses.
#[derive(Deserialize)]
struct Anything {}

impl Api {
    pub(crate) const fn new(http: Client, base: Url, token: SecretString) -> Self {
        Self { http, base, token }
    }

    pub(crate) async fn call<P: Payload + Serialize, T: DeserializeOwned>(&self, payload: &P) -> Result<T, ApiError> {
        self.ask(P::NAME, payload, CALL_TIMEOUT).await
    }

    /// Calls a method that teloxide has no payload for, or that needs another timeout.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        parameters: &impl Serialize,
        timeout: Duration,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(parameters).expect("parameters serialise to JSON");
        let request = self.http.post(self.method(method)).header(CONTENT_TYPE, "application/json").body(body);
        let response = request.timeout(timeout).send().await.map_err(|error| calls::failure(error, &self.token))?;
        self.read(response).await
    }

    pub(crate) async fn upload<T: DeserializeOwned>(&self, method: &str, form: Form) -> Result<T, ApiError> {
        let request = self.http.post(self.method(method)).multipart(form);
        let response =
            request.timeout(FILE_TIMEOUT).send().await.map_err(|error| calls::failure(error, &self.token))?;
        self.read(response).await
    }

    /// Downloads the file at a path from `getFile`; `None` if it is larger than `limit` bytes.
    pub(crate) async fn download(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, ApiError> {
        let url = self.address(["file", &self.bot()].into_iter().chain(path.split('/')));
        let response = self
            .http
            .get(url)
            .timeout(FILE_TIMEOUT)
            .send()
            .await
            .map_err(|error| calls::failure(error, &self.token))?;
        let status = response.status();
        if !status.is_success() {
            return Err(ApiError::Refused(Refusal::of(status.as_u16(), format!("the file server answered {status}"))));
        }
        Ok(calls::collect(response, limit, &self.token).await?)
    }

    fn method(&self, method: &str) -> Url {
        self.address([&*self.bot(), method].into_iter())
    }

    fn bot(&self) -> String {
        format!("bot{}", self.token.expose_secret())
    }

    fn address<'a>(&self, segments: impl Iterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut().expect("an http URL, as checked").pop_if_empty().extend(segments);
        url
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, ApiError> {
        let status = response.status();
        let body = calls::collect(response, MAX_ANSWER, &self.token).await?;
        let body = body.ok_or_else(|| ApiError::NoAnswer("the response is too large".to_owned()))?;
        match serde_json::from_slice::<Envelope<T>>(&body) {
            Ok(Envelope { ok: true, result: Some(result), .. }) => Ok(result),
            Ok(envelope) => Err(self.refusal(status, &envelope)),
            Err(error) => Err(match serde_json::from_slice::<Envelope<Anything>>(&body) {
                Ok(envelope) if !envelope.ok => self.refusal(status, &envelope),
                // Not from a Bot API server: for example a proxy's error page.
                _ if !status.is_success() => {
                    ApiError::Refused(Refusal::of(status.as_u16(), format!("the server answered {status}")))
                }
                _ => ApiError::NoAnswer(format!("the response cannot be read: {}", json_error(&error))),
            }),
        }
    }

    fn refusal<T>(&self, status: StatusCode, envelope: &Envelope<T>) -> ApiError {
        if envelope.ok {
            return ApiError::NoAnswer("the response has no result".to_owned());
        }
        let parameters = envelope.parameters.as_ref();
        let description = envelope.description.as_deref().unwrap_or("no description given");
        ApiError::Refused(Refusal {
            code: envelope.error_code.unwrap_or(status.as_u16()),
            description: calls::redacted(description, &self.token),
            retry_after: parameters.and_then(|it| it.retry_after).map(Duration::from_secs),
            migrate_to: parameters.and_then(|it| it.migrate_to_chat_id),
            is_from_telegram: true,
        })
    }
}

#[cfg(test)]
mod tests;
