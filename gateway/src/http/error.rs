//! The errors of our own HTTP routes, as RFC 9457 problem documents.

use std::time::Duration;

use axum::{
    Json,
    extract::rejection::QueryRejection,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::{OperationError, StoreError};
use rejoinder_kit::{Problem, TooManyGuesses};
use tracing::error;
use utoipa::ToSchema;

/// The `Retry-After` of a 503.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The answer of most routes.
pub(super) type Answer<T> = Result<Json<T>, ApiError>;

/// Why a request failed. The texts describe only the request and reveal no internals.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    BadRequest(String),
    #[error("send the admin token as `Authorization: Bearer TOKEN`")]
    Unauthorized,
    #[error("too many wrong secrets")]
    TooManyGuesses,
    #[error("too many codes that do not exist were tried: try again later")]
    TooManyCodes { retry_after: Duration },
    #[error("a limit holds for it: try again later")]
    Limited { retry_after: Duration },
    #[error("{detail}")]
    Blocked { detail: String, retry_after: Duration },
    #[error("the request must have one Host header")]
    NoHost,
    #[error(
        "the Host header does not name this gateway: use http://localhost, or set `server.public_url` to this address"
    )]
    ForeignHost,
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    NotFound(&'static str),
    #[error("{0}")]
    Gone(&'static str),
    #[error("{0}")]
    Conflict(String),
    #[error("this path does not support this method")]
    WrongMethod,
    #[error("the request took too long")]
    TooSlow,
    #[error("too many requests at once; try again later")]
    Busy,
    #[error("the store cannot be read now; try again later")]
    Store,
    #[error("the database was lost, and it is not known whether this was done: look before you try again")]
    Unsettled,
    #[error("something went wrong; see the gateway's log")]
    Internal,
}

impl From<TooManyGuesses> for ApiError {
    fn from(_: TooManyGuesses) -> Self {
        Self::TooManyGuesses
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::BadRequest(plain_query_error(&rejection.body_text()))
    }
}

/// What is wrong with a query, in plain words. `text` is the library's: a prefix, the parameter, and serde's error.
fn plain_query_error(text: &str) -> String {
    let text = text.rsplit_once("query string: ").map_or(text, |(_, error)| error);
    let quoted = |error: &str| error.split('`').nth(1).unwrap_or_default().to_owned();
    let choices = |error: &str| error.split_once(", expected ").map(|(_, choices)| choices.replacen("one of ", "", 1));
    let (name, error) = text.split_once(": ").unwrap_or(("", text));
    if error.starts_with("unknown field") {
        let choices = choices(error).map(|choices| format!("; there are: {choices}")).unwrap_or_default();
        return format!("unknown parameter `{}`{choices}", quoted(error));
    }
    if text.starts_with("missing field") {
        return format!("the parameter `{}` is missing", quoted(text));
    }
    if text.starts_with("duplicate field") {
        return format!("the parameter `{}` is given twice", quoted(text));
    }
    let must = match error {
        _ if error.starts_with("unknown variant") => {
            format!("it is `{}`, and must be one of {}", quoted(error), choices(error).unwrap_or_default())
        }
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "it must be a whole number".to_owned()
        }
        "number too large to fit in target type" | "number too small to fit in target type" => {
            "the number is out of range".to_owned()
        }
        "provided string was not `true` or `false`" => "it must be true or false".to_owned(),
        other => other.to_owned(),
    };
    if name.is_empty() { must } else { format!("the parameter `{name}` is wrong: {must}") }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        error!(%error, "request failed: cannot read the store");
        match error {
            StoreError::Unavailable(_) | StoreError::NotOwner => Self::Store,
            StoreError::Unknown(_) => Self::Unsettled,
            StoreError::TooSlow => Self::TooSlow,
            StoreError::Corrupt(_) | StoreError::CorruptTurn { .. } | StoreError::Failed(_) => Self::Internal,
        }
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Unknown(what) => Self::NotFound(what),
            OperationError::Unfit(why) => Self::Conflict(why),
            OperationError::Limited { retry_after } => Self::Limited { retry_after },
            OperationError::Blocked { retry_after, .. } => Self::Blocked { detail: error.to_string(), retry_after },
            OperationError::TooMany { retry_after } => Self::TooManyCodes { retry_after },
            OperationError::Store(error) => error.into(),
        }
    }
}

/// The shape of an error in the API description; [`Problem`] writes it.
#[derive(ToSchema)]
#[schema(as = AdminProblem)]
#[expect(dead_code, reason = "a schema")]
pub(crate) struct ProblemDocument {
    /// The kind of problem: `urn:rejoinder:problem:` and a name.
    #[schema(rename = "type", example = "urn:rejoinder:problem:not-found")]
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
        let retry_after = match self {
            // Rounded up: who waits for so many seconds is not too early.
            Self::TooManyCodes { retry_after } | Self::Limited { retry_after } | Self::Blocked { retry_after, .. } => {
                Duration::from_secs_f64(retry_after.as_secs_f64().ceil())
            }
            _ => RETRY_AFTER,
        };
        let (status, name, title) = match self {
            Self::BadRequest(_) | Self::NoHost => (StatusCode::BAD_REQUEST, "bad-request", "Bad request"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized"),
            Self::TooManyGuesses => return Problem::from(TooManyGuesses).into_response(),
            Self::TooManyCodes { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "too-many-codes", "Too many requests: too many wrong codes")
            }
            Self::Limited { .. } | Self::Blocked { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "limited", "Too many requests: a limit holds")
            }
            Self::ForeignHost => (StatusCode::FORBIDDEN, "foreign-host", "Forbidden: foreign host"),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden", "Forbidden: the role does not allow this"),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "Not found"),
            Self::Gone(_) => (StatusCode::GONE, "gone", "Gone"),
            Self::Conflict(_) => (StatusCode::CONFLICT, "conflict", "Conflict"),
            Self::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Method not allowed"),
            Self::TooSlow => {
                (StatusCode::SERVICE_UNAVAILABLE, "too-slow", "Service unavailable: the request took too long")
            }
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Service unavailable: too many requests"),
            Self::Store => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Service unavailable: the store cannot be read")
            }
            Self::Unsettled => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unsettled",
                "Service unavailable: it is not known whether it was done",
            ),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal server error"),
        };
        let problem = Problem::new(status, name, title, self.to_string());
        match status {
            StatusCode::UNAUTHORIZED => {
                let challenge = HeaderValue::from_static("Bearer realm=\"rejoinder admin\"");
                problem.with_header(header::WWW_AUTHENTICATE, challenge)
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => problem.retry_after(retry_after),
            _ => problem,
        }
        .into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::{extract::Query, http::Uri};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Filter {
        state: Option<State>,
        limit: Option<u32>,
        late: Option<bool>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum State {
        Open,
        Settled,
    }

    #[test]
    fn what_is_wrong_with_a_query_is_said_in_plain_words() {
        let error = |query: &str| {
            let uri: Uri = format!("/turns?{query}").parse().unwrap();
            ApiError::from(Query::<Filter>::try_from_uri(&uri).unwrap_err()).to_string()
        };

        assert_eq!(error("q=x"), "unknown parameter `q`; there are: `state`, `limit`, `late`");
        assert_eq!(
            error("state=closed"),
            "the parameter `state` is wrong: it is `closed`, and must be one of `open` or `settled`"
        );
        assert_eq!(error("limit=many"), "the parameter `limit` is wrong: it must be a whole number");
        assert_eq!(error("limit=-1"), "the parameter `limit` is wrong: it must be a whole number");
        assert_eq!(error("late=perhaps"), "the parameter `late` is wrong: it must be true or false");
        assert_eq!(error("limit=1&limit=2"), "the parameter `limit` is given twice");
    }
}
