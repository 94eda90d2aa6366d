//! Errors, as clients of the protocol expect them: `{"error": {"message", "type", "param", "code"}}`.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::{IntakeError, StoreError, TurnId};
use rejoinder_kit::{Problem, TooManyGuesses, asking::BadKey};
use serde_json::json;

/// The `Retry-After` of a 503.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(5);

/// Why a request was refused. Its texts describe the request only, never the gateway's internals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError(Box<Parts>);

/// Boxed, so that a `Result` with an error is small.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    status: StatusCode,
    message: Cow<'static, str>,
    /// The field of the body that is wrong.
    param: Option<String>,
    code: &'static str,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts { status, message: message.into(), param: None, code, header: None }))
    }

    /// A field of the body that cannot be used.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message).about(param)
    }

    /// An unsupported field.
    pub(crate) fn unsupported(param: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "unsupported_value", message).about(param)
    }

    /// Names the field of the body that is wrong.
    pub(crate) fn about(mut self, param: impl Into<String>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    /// Sets the `Retry-After` header, in whole seconds.
    pub(crate) fn retry_after(mut self, pause: Duration) -> Self {
        self.0.header = Some((header::RETRY_AFTER, HeaderValue::from(pause.as_secs())));
        self
    }

    pub(crate) fn unauthorized(message: &'static str) -> Self {
        let mut error = Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message);
        error.0.header = Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        error
    }

    pub(crate) fn forbidden() -> Self {
        let message = "this token may not talk to agents here: make one with `rejoinder tokens create --role chat`";
        Self::new(StatusCode::FORBIDDEN, "insufficient_permissions", message)
    }

    pub(crate) fn unknown_model(model: &str) -> Self {
        let message = format!("there is no model `{model}`: GET /v1/models lists them");
        Self::new(StatusCode::NOT_FOUND, "model_not_found", message).about("model")
    }

    pub(crate) fn unknown_completion() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no completion with this id, or it is not yours")
    }

    pub(crate) fn nothing_here() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_url", "there is nothing at this path")
    }

    pub(crate) fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not support this method")
    }

    pub(crate) fn key_reused(turn: TurnId) -> Self {
        let message = format!("the Idempotency-Key was already used with another message, for turn {turn}");
        Self::new(StatusCode::CONFLICT, "idempotency_key_reused", message)
    }

    pub(crate) fn removed(turn: TurnId) -> Self {
        let message = format!(
            "the Idempotency-Key was used for turn {turn}, which was removed since: use a new key to ask again"
        );
        Self::new(StatusCode::GONE, "removed", message)
    }

    pub(crate) fn over_limit(retry_after: Duration) -> Self {
        let message = "more messages were sent than `limits` allows: this one is not put before the agent";
        // A header has whole seconds.
        let after = Duration::from_secs(retry_after.as_secs() + 1);
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", message).retry_after(after)
    }

    pub(crate) fn cannot_be_stored() -> Self {
        let message = "the store rejects this message: it will not be answered, and sending it again does not help";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot_be_stored", message)
    }

    pub(crate) fn not_owed() -> Self {
        Self::new(StatusCode::CONFLICT, "not_owed", "this message is owed no answer, and none will come")
    }

    pub(crate) fn not_running() -> Self {
        Self::unavailable("the gateway is starting or stopping")
    }

    fn unavailable(message: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message).retry_after(UNAVAILABLE_PAUSE)
    }

    const fn kind(&self) -> &'static str {
        match self.0.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::SERVICE_UNAVAILABLE => "server_error",
            _ => "invalid_request_error",
        }
    }
}

impl From<TooManyGuesses> for ApiError {
    fn from(_: TooManyGuesses) -> Self {
        let message = "too many wrong tokens came from this address: this one was not checked";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_guesses", message).retry_after(UNAVAILABLE_PAUSE)
    }
}

impl From<BadKey> for ApiError {
    fn from(error: BadKey) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_key", error.to_string())
    }
}

/// A body that cannot be read.
impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let error = Self::new(problem.status(), problem.name(), problem.detail().to_owned());
        if problem.status() == StatusCode::SERVICE_UNAVAILABLE { error.retry_after(UNAVAILABLE_PAUSE) } else { error }
    }
}

impl From<IntakeError> for ApiError {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::ShuttingDown => Self::not_running(),
            IntakeError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            // The store logs this itself, once.
            StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::NotOwner => {
                tracing::debug!(%error, "API request refused");
            }
            StoreError::TooSlow | StoreError::Corrupt(_) | StoreError::CorruptTurn { .. } | StoreError::Failed(_) => {
                tracing::error!(%error, "API request refused");
            }
        }
        Self::unavailable("the store cannot be used at the moment; accepted turns are kept")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = self.kind();
        let Parts { status, message, param, code, header } = *self.0;
        let body = json!({ "error": { "message": message, "type": kind, "param": param, "code": code } });
        let mut response = (status, Json(body)).into_response();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
