//! Failures, classified by what to do next.

use std::{error::Error as _, iter, time::Duration};

use matrix_sdk::{
    Error, HttpError,
    ruma::api::{
        client::uiaa::UiaaResponse,
        error::{Error as ApiError, ErrorBody, ErrorKind, FromHttpResponseError, RetryAfter},
    },
};
use rejoinder_core::{DeliveryError, MAX_RETRY_AFTER, Scope};

/// How long to wait if a rate limit does not say.
const LIMIT: Duration = Duration::from_secs(5);

/// A failure, classified by what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Rate limited.
    #[error("{detail}")]
    Limited { retry_after: Duration, detail: String },
    /// The session is invalid. `is_soft`: the homeserver keeps the device.
    #[error("{detail}")]
    Unauthorized { is_soft: bool, detail: String },
    /// The same reaction exists already.
    #[error("{0}")]
    Duplicate(String),
    /// Permanent: do not retry.
    #[error("{0}")]
    Refused(String),
    /// The request certainly had no effect: retry later.
    #[error("{0}")]
    NotSent(String),
    /// The request may have had its effect: retry later, with the same transaction id.
    #[error("{0}")]
    Unknown(String),
}

impl From<Failure> for DeliveryError {
    fn from(failure: Failure) -> Self {
        match failure {
            // Synapse limits the sender (`rc_message`); its response names no other scope.
            Failure::Limited { retry_after, detail } => Self::Limited { retry_after, scope: Scope::Account, detail },
            Failure::Unauthorized { detail, .. } => Self::Unauthorized(detail),
            Failure::Refused(detail) | Failure::Duplicate(detail) => Self::Refused(detail),
            Failure::NotSent(detail) => Self::NotSent { retry_after: None, detail },
            Failure::Unknown(detail) => Self::Unknown(detail),
        }
    }
}

pub(crate) fn sdk(error: &Error) -> Failure {
    match error {
        Error::Http(error) => http(error),
        Error::WrongRoomState(error) => Failure::Refused(format!("the account is not in the room: {error}")),
        Error::SerdeJson(error) => Failure::Refused(error.to_string()),
        Error::Timeout => Failure::Unknown("timed out".to_owned()),
        // The others occur before the message is sent, for example if the room key could not be shared.
        other => Failure::NotSent(other.to_string()),
    }
}

pub(crate) fn http(error: &HttpError) -> Failure {
    match error {
        HttpError::Reqwest(error) if error.is_connect() || error.is_builder() => Failure::NotSent(transport(error)),
        HttpError::Reqwest(error) => Failure::Unknown(transport(error)),
        HttpError::Api(error) => match error.as_ref() {
            FromHttpResponseError::Server(UiaaResponse::MatrixError(error)) => api(error),
            FromHttpResponseError::Server(_) => Failure::Refused("the password is required again".to_owned()),
            other => Failure::Unknown(format!("the response cannot be read: {other}")),
        },
        HttpError::Cached(error) => http(error),
        HttpError::IntoHttp(error) => Failure::Refused(format!("the request cannot be built: {error}")),
        other @ HttpError::RefreshToken(_) => Failure::Unknown(other.to_string()),
    }
}

fn api(error: &ApiError) -> Failure {
    let (status, kind, detail) = (error.status_code.as_u16(), error.error_kind(), error.to_string());
    match kind {
        Some(ErrorKind::LimitExceeded(data)) => {
            let retry_after = match data.retry_after {
                Some(RetryAfter::Delay(delay)) => delay.min(MAX_RETRY_AFTER),
                _ => LIMIT,
            };
            Failure::Limited { retry_after, detail }
        }
        _ if status == 429 => Failure::Limited { retry_after: LIMIT, detail },
        Some(
            ErrorKind::UnknownToken(_) | ErrorKind::MissingToken | ErrorKind::UserDeactivated | ErrorKind::UserLocked,
        ) => Failure::Unauthorized { is_soft: is_soft_logout(kind), detail },
        Some(ErrorKind::DuplicateAnnotation) => Failure::Duplicate(detail),
        // The server has reached a limit, such as its monthly active users: transient.
        Some(ErrorKind::ResourceLimitExceeded(_)) => Failure::NotSent(detail),
        _ if status >= 500 || status == 408 => Failure::Unknown(detail),
        // The response comes from a proxy, not from the homeserver.
        _ if !matches!(error.body, ErrorBody::Standard(_)) => Failure::Unknown(detail),
        _ => Failure::Refused(detail),
    }
}

/// Whether the server has ended the session but keeps the device.
pub(crate) fn is_soft_logout(kind: Option<&ErrorKind>) -> bool {
    matches!(kind, Some(ErrorKind::UnknownToken(data)) if data.soft_logout)
}

/// Describes a transport error, without the URL.
pub(crate) fn transport(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "cannot connect"
    } else {
        "the connection failed"
    };
    let source = iter::successors(error.source(), |&cause| cause.source()).last();
    source.map_or_else(|| what.to_owned(), |source| format!("{what}: {source}"))
}

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::api::{EndpointError, error::Error as ApiError};
    use rstest::rstest;

    use super::*;

    fn of(status: u16, body: &str) -> DeliveryError {
        let response = matrix_sdk::ruma::exports::http::Response::builder()
            .status(status)
            .body(body.as_bytes())
            .expect("a response");
        api(&ApiError::from_http_response(response)).into()
    }

    #[rstest]
    #[case(429, r#"{"errcode":"M_LIMIT_EXCEEDED","error":"slow","retry_after_ms":2000}"#, "limited")]
    #[case(429, "<html>", "limited")]
    #[case(401, r#"{"errcode":"M_UNKNOWN_TOKEN","error":"who"}"#, "unauthorized")]
    #[case(401, r#"{"errcode":"M_MISSING_TOKEN","error":"who"}"#, "unauthorized")]
    #[case(403, r#"{"errcode":"M_FORBIDDEN","error":"not in the room"}"#, "refused")]
    #[case(404, r#"{"errcode":"M_NOT_FOUND","error":"no room"}"#, "refused")]
    #[case(413, r#"{"errcode":"M_TOO_LARGE","error":"too large"}"#, "refused")]
    #[case(404, "<html>", "unknown")]
    #[case(502, "<html>", "unknown")]
    #[case(500, r#"{"errcode":"M_UNKNOWN","error":"oops"}"#, "unknown")]
    #[case(403, r#"{"errcode":"M_RESOURCE_LIMIT_EXCEEDED","error":"full","admin_contact":"a"}"#, "not_sent")]
    fn what_the_homeserver_says_is_what_to_do(#[case] status: u16, #[case] body: &str, #[case] expected: &str) {
        assert_eq!(of(status, body).as_str(), expected);
    }

    #[test]
    fn a_limit_says_for_how_long() {
        let limited = of(429, r#"{"errcode":"M_LIMIT_EXCEEDED","error":"slow","retry_after_ms":2500}"#);

        assert!(
            matches!(&limited, DeliveryError::Limited { retry_after, .. } if *retry_after == Duration::from_millis(2500)),
            "{limited:?}"
        );
    }

    #[test]
    fn a_limit_is_obeyed_for_an_hour_at_most() {
        let limited = of(429, r#"{"errcode":"M_LIMIT_EXCEEDED","error":"slow","retry_after_ms":1000000000000}"#);

        let hour = Duration::from_hours(1);
        assert!(matches!(limited, DeliveryError::Limited { retry_after, .. } if retry_after == hour), "{limited:?}");
    }
}
