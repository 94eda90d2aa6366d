//! The one error of the HTTP edge, as RFC 9457 problem documents.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::StoreError;
use serde::Serialize;
use tracing::error;
use utoipa::ToSchema;

/// When to come back after a 503, in seconds.
const RETRY_AFTER: u32 = 5;

/// Why a request has no other answer. Its texts speak of the request alone, never of what is inside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    BadRequest(String),
    #[error("this address wants `Authorization: Bearer` and the admin token")]
    Unauthorized,
    #[error("the Host header names another host than the one that is asked")]
    ForeignHost,
    #[error("{0}")]
    NotFound(&'static str),
    #[error("this address does not take this method")]
    WrongMethod,
    #[error("the answer took too long")]
    TooSlow,
    #[error("too many requests are being worked on")]
    Busy,
    #[error("the store cannot be read at the moment")]
    Store,
    #[error("something went wrong here; the log has more")]
    Internal,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        error!(%error, "a request could not be answered");
        match error {
            StoreError::Unavailable(_) => Self::Store,
            StoreError::Corrupt(_) | StoreError::Failed(_) => Self::Internal,
        }
    }
}

/// What went wrong (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = AdminProblem)]
pub(crate) struct ProblemDocument {
    /// What kind of problem: `urn:rejoinder:problem:` and a name.
    #[serde(rename = "type")]
    #[schema(example = "urn:rejoinder:problem:not-found")]
    kind: String,
    /// The kind, in words.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What was wrong this time.
    detail: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, name, title) = match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad-request", "The request cannot be understood"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "The caller is not known"),
            Self::ForeignHost => (StatusCode::FORBIDDEN, "foreign-host", "Not let in"),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Self::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "The method is another one"),
            Self::TooSlow => (StatusCode::SERVICE_UNAVAILABLE, "too-slow", "The answer took too long"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Nothing more can be taken on now"),
            Self::Store => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Nothing can be read now"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong here"),
        };
        let document = ProblemDocument {
            kind: format!("urn:rejoinder:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: self.to_string(),
        };
        let body = serde_json::to_vec(&document).expect("a document of texts and numbers can be written");
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
