//! Rejections of HTTP requests, as RFC 9457 problem documents.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_with::skip_serializing_none;

const TYPE_PREFIX: &str = "urn:rejoinder:problem:";

/// Why a request was rejected: a problem document (RFC 9457) with its status and headers.
///
/// Its texts are for the developer of the client. They describe the request only, never the gateway's internals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(Box<Parts>);

/// Boxed, so that a `Result` with a problem is small.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    status: StatusCode,
    name: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    field: Option<String>,
    position: Option<(usize, usize)>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem that answers with `status`. `name` identifies the kind for programs (its `type` is
    /// `urn:rejoinder:problem:` and the name), `title` names it for people, and `detail` describes this
    /// occurrence.
    ///
    /// The title begins with the status in words (`Not found: …`), which people search for.
    #[must_use]
    pub fn new(
        status: StatusCode,
        name: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        debug_assert!(begins_with_reason(title, status), "the title {title:?} does not begin with {status}");
        let detail = detail.into();
        Self(Box::new(Parts { status, name, title, detail, field: None, position: None, header: None }))
    }

    /// Names the field of the body that is wrong, for example `attachments[0].url`.
    #[must_use]
    pub fn about(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// Sets the line and column of the body, counted from 1.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.0.position = Some((line, column));
        self
    }

    /// Sets the `Retry-After` header, in whole seconds. It replaces any other header.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        self.with_header(header::RETRY_AFTER, HeaderValue::from(pause.as_secs()))
    }

    /// Sets the one extra header of the response; a later call replaces it.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// The HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The end of its `type`, after `urn:rejoinder:problem:`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The description of this occurrence.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The path of the field of the body that is wrong.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The line and column of the body, counted from 1.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        self.0.position
    }
}

/// The words of a problem, which its response carries for [`problem_pages`](crate::problem_pages).
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) title: &'static str,
    pub(crate) detail: Cow<'static, str>,
}

/// Whether `title` begins with the words of `status`, in any case.
fn begins_with_reason(title: &str, status: StatusCode) -> bool {
    let reason = status.canonical_reason().unwrap_or_default();
    title.get(..reason.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(reason))
}

#[skip_serializing_none]
#[derive(Serialize)]
struct ProblemDocument<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    field: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let problem = *self.0;
        let document = ProblemDocument {
            kind: [TYPE_PREFIX, problem.name].concat(),
            title: problem.title,
            status: problem.status.as_u16(),
            detail: &problem.detail,
            field: problem.field.as_deref(),
            line: problem.position.map(|(line, _)| line),
            column: problem.position.map(|(_, column)| column),
        };
        let body = serde_json::to_vec(&document).expect("strings and numbers can be serialised");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = problem.status;
        response.extensions_mut().insert(Description { title: problem.title, detail: problem.detail.clone() });
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some((name, value)) = problem.header {
            headers.insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn a_problem_is_a_document_that_programs_and_people_can_read() {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "not-json", "Bad request: not JSON", "expected value")
            .at(2, 7)
            .retry_after(Duration::from_secs(5));

        let response = problem.into_response();

        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers()["retry-after"], "5");
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "type": "urn:rejoinder:problem:not-json",
            "title": "Bad request: not JSON",
            "status": 400,
            "detail": "expected value",
            "line": 2,
            "column": 7,
        });
        assert_eq!(document, expected);
    }

    #[test]
    #[should_panic(expected = "does not begin with 404")]
    fn a_title_begins_with_the_word_that_people_search_for() {
        drop(Problem::new(StatusCode::NOT_FOUND, "no-such-chat", "There is no such thing", ""));
    }
}
