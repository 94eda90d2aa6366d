//! Calls to the REST API, and their errors.
//!
//! Requests use serenity's payloads but are sent by our own client, because callers must know whether a request was
//! written and what a rate limit means for a delivery. No error reveals the token.

mod limits;

use std::time::Duration;

use rejoinder_core::{SharedClock, json_error};
use rejoinder_kit::calls;
use reqwest::{Client, Method, Response, StatusCode, header, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

use self::limits::Limits;
pub(crate) use self::limits::Route;
use crate::errors::{ApiError, Refusal};

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const FILE_TIMEOUT: Duration = Duration::from_secs(100);

/// The largest response that is read, in bytes. A hundred messages are far smaller.
const MAX_ANSWER: usize = 32 << 20;

/// The required form of a client's name (<https://discord.com/developers/docs/reference#user-agent>).
pub(crate) const USER_AGENT: &str =
    concat!("DiscordBot (https://crates.io/crates/rejoinder, ", env!("CARGO_PKG_VERSION"), ")");

/// A client of Discord's REST API, with the bot's token.
pub(crate) struct Api {
    http: Client,
    base: Url,
    token: SecretString,
    limits: Limits,
    clock: SharedClock,
}

pub(crate) enum Body {
    Empty,
    Json(Value),
    /// A message and its files.
    Files(Value, Vec<Upload>),
}

#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
}

/// The body of an error response (<https://discord.com/developers/docs/reference#error-messages>).
#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Value,
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

impl Api {
    pub(crate) fn new(http: Client, base: Url, token: SecretString, clock: SharedClock) -> Self {
        Self { http, base, token, limits: Limits::default(), clock }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.ask(Method::GET, path, Body::Empty).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Body) -> Result<T, ApiError> {
        let answer = self.call(method, path, body).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| ApiError::NoAnswer(format!("the response cannot be read: {}", json_error(&error))))
    }

    /// As [`ask`](Self::ask), with a JSON body.
    pub(crate) async fn ask_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        payload: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.ask(method, path, Body::Json(json(payload))).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Body) -> Result<Vec<u8>, ApiError> {
        let route = Route::of(&method, path);
        if let Err(held) = self.limits.check(&route, self.clock.now()) {
            return Err(ApiError::Held(held));
        }
        let mut request = self.http.request(method, self.address(path)).header(header::USER_AGENT, USER_AGENT);
        if route.needs_token() {
            let authorization = format!("Bot {}", self.token.expose_secret());
            let mut authorization = header::HeaderValue::from_str(&authorization)
                .map_err(|_| ApiError::NotWritten("the token has characters that a header cannot hold".to_owned()))?;
            authorization.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let (request, timeout) = match body {
            // Some proxies reject a POST or PUT without a length.
            Body::Empty => (request.header(header::CONTENT_LENGTH, "0"), CALL_TIMEOUT),
            Body::Json(value) => (request.json(&value), CALL_TIMEOUT),
            Body::Files(message, files) => (request.multipart(self.form(&message, files)?), FILE_TIMEOUT),
        };
        let response = request.timeout(timeout).send().await.map_err(|error| self.failure(error, path))?;
        self.read(response, &route).await
    }

    /// How long to wait until more than one call of this kind may be made; `None`: as far as is known, it may be made now.
    pub(crate) fn last_call(&self, method: &Method, path: &str) -> Option<Duration> {
        self.limits.last_call(&Route::of(method, path), self.clock.now())
    }

    /// Downloads a file from Discord; `None` if it is larger than `limit` bytes.
    pub(crate) async fn download(&self, http: &Client, url: Url, limit: usize) -> Result<Option<Vec<u8>>, ApiError> {
        let request = http.get(url).header(header::USER_AGENT, USER_AGENT).timeout(FILE_TIMEOUT);
        let response = request.send().await.map_err(|error| self.failure(error, ""))?;
        let status = response.status();
        if !status.is_success() {
            return Err(ApiError::Refused(Refusal::of(status.as_u16(), format!("the file server answered {status}"))));
        }
        Ok(calls::collect(response, limit, &self.token).await?)
    }

    /// Whether all calls are held back because too many were refused.
    pub(crate) fn is_held_back(&self) -> bool {
        self.limits.is_held_back(self.clock.now())
    }

    fn address(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.base.clone();
        let segments = ["api", "v10"].into_iter().chain(path.split('/').filter(|segment| !segment.is_empty()));
        url.path_segments_mut().expect("an http URL, as checked").pop_if_empty().extend(segments);
        url.set_query(query);
        url
    }

    async fn read(&self, response: Response, route: &Route) -> Result<Vec<u8>, ApiError> {
        let status = response.status();
        let headers = response.headers().clone();
        self.limits.note(route, status, &headers, self.clock.now());
        let body = match calls::collect(response, MAX_ANSWER, &self.token).await {
            Ok(body) => body.ok_or_else(|| ApiError::NoAnswer("the response is too large".to_owned()))?,
            // The status alone says that the call is limited.
            Err(_) if status == StatusCode::TOO_MANY_REQUESTS => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if status.is_success() {
            return Ok(body);
        }
        let failure: Option<ErrorBody> = serde_json::from_slice(&body).ok();
        let is_from_discord = failure.is_some();
        let failure = failure.unwrap_or_default();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let stated = failure.retry_after.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)));
            let limit =
                self.limits.note_limited(route, &headers, stated, failure.global || !is_from_discord, self.clock.now());
            return Err(ApiError::Limited(limit));
        }
        let message = if failure.message.is_empty() { format!("Discord answered {status}") } else { failure.message };
        let details = if failure.errors.is_null() { String::new() } else { format!(" {}", failure.errors) };
        Err(ApiError::Refused(Refusal {
            status: status.as_u16(),
            code: failure.code,
            message: calls::redacted(&message, &self.token),
            details: calls::redacted(&details, &self.token),
        }))
    }

    fn failure(&self, error: reqwest::Error, path: &str) -> ApiError {
        // The path is not logged: it may contain an interaction's token.
        let failure = calls::failure(error, &self.token);
        tracing::debug!(route = Route::name(path), detail = %failure, "a call failed");
        failure.into()
    }

    /// A message with files (<https://discord.com/developers/docs/reference#uploading-files>).
    fn form(&self, message: &Value, files: Vec<Upload>) -> Result<Form, ApiError> {
        let mut message = message.clone();
        let named = (0..).zip(&files).map(|(id, file)| serde_json::json!({"id": id, "filename": file.name}));
        message["attachments"] = named.collect();
        let mut form = Form::new().text("payload_json", message.to_string());
        for (id, file) in files.into_iter().enumerate() {
            let part = reqwest::multipart::Part::bytes(file.bytes).file_name(file.name);
            let part = part.mime_str(&file.media_type).map_err(|error| calls::failure(error, &self.token))?;
            form = form.part(format!("files[{id}]"), part);
        }
        Ok(form)
    }
}

pub(crate) fn json(payload: &impl Serialize) -> Value {
    serde_json::to_value(payload).expect("payloads serialise to JSON")
}

#[cfg(test)]
mod tests;
