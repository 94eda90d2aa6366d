//! The errors of our own HTTP routes, as RFC 9457 problem documents.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::StoreError;
use serde::Serialize;
use tracing::error;
use utoipa::ToSchema;

/// The `Retry-After` of a 503, in seconds.
const RETRY_AFTER: u32 = 5;

/// Why a request failed. The texts describe only the request and reveal no internals.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    BadRequest(String),
    #[error("send the admin token as `Authorization: Bearer TOKEN`")]
    Unauthorized,
    #[error("the Host header does not name this gateway")]
    ForeignHost,
    #[error("{0}")]
    NotFound(&'static str),
    #[error("this path does not support this method")]
    WrongMethod,
    #[error("the request took too long")]
    TooSlow,
    #[error("too many requests at once; try again later")]
    Busy,
    #[error("the store cannot be read now; try again later")]
    Store,
    #[error("something went wrong; see the gateway's log")]
    Internal,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        error!(%error, "request failed: cannot read the store");
        match error {
            StoreError::Unavailable(_) => Self::Store,
            StoreError::Corrupt(_) | StoreError::Failed(_) => Self::Internal,
        }
    }
}

/// An error, as RFC 9457 defines it.
#[derive(Serialize, ToSchema)]
#[schema(as = AdminProblem)]
pub(crate) struct ProblemDocument {
    /// The kind of problem: `urn:rejoinder:problem:` and a name.
    #[serde(rename = "type")]
    #[schema(example = "urn:rejoinder:problem:not-found")]
    kind: String,
    /// The kind as a short text.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request.
    detail: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, name, title) = match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad-request", "Invalid request"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorised"),
            Self::ForeignHost => (StatusCode::FORBIDDEN, "foreign-host", "Foreign host"),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "Not found"),
            Self::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Method not allowed"),
            Self::TooSlow => (StatusCode::SERVICE_UNAVAILABLE, "too-slow", "Request timed out"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too many requests"),
            Self::Store => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Store unavailable"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        };
        let document = ProblemDocument {
            kind: format!("urn:rejoinder:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: self.to_string(),
        };
        let body = serde_json::to_vec(&document).expect("a document of texts and numbers is valid JSON");
        let mut response = (status, body).into_response();
        let mut set = |name: HeaderName, value| response.headers_mut().insert(name, value);
        set(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        set(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match status {
            StatusCode::UNAUTHORIZED => {
                set(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rejoinder admin\""));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                set(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
            }
            _ => {}
        }
        response
    }
}
