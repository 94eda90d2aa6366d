//! Refusals, as RFC 9457 problem documents.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

/// What comes before a problem's name in its `type`.
const TYPE_PREFIX: &str = "urn:rejoinder:problem:";

/// Why a request was refused: a problem document (RFC 9457) with its status and headers.
///
/// Its texts are for whoever wrote the client. They speak of the request alone, never of what is
/// inside the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(Box<Parts>);

/// Kept apart, so that a result that may be a problem is small.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    status: StatusCode,
    name: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    field: Option<String>,
    place: Option<(usize, usize)>,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem that answers with `status`. `name` identifies it for programs (its `type` is
    /// `urn:rejoinder:problem:` and the name), `title` says the same to people, and `detail` says what
    /// was wrong this time.
    #[must_use]
    pub fn new(
        status: StatusCode,
        name: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let detail = detail.into();
        Self(Box::new(Parts { status, name, title, detail, field: None, place: None, header: None }))
    }

    /// The same, about one field of the body: `attachments[0].url`.
    #[must_use]
    pub fn about(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// The same, at a line and column of the body, counted from 1.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.0.place = Some((line, column));
        self
    }

    /// The same, with `Retry-After`, in whole seconds.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        self.with_header(header::RETRY_AFTER, HeaderValue::from(pause.as_secs()))
    }

    /// The same, with a header; the last one set counts.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    /// The status it answers with.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Its name: the end of its `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// What was wrong this time.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The field of the body that it is about.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The line and column of the body that it is at, counted from 1.
    #[must_use]
    pub fn place(&self) -> Option<(usize, usize)> {
        self.0.place
    }
}

/// The document that is sent.
#[derive(Serialize)]
struct ProblemDocument<'a> {
    /// What kind of problem: `urn:rejoinder:problem:` and a name.
    #[serde(rename = "type")]
    kind: String,
    /// The kind, in words.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// What was wrong this time.
    detail: &'a str,
    /// The field of the body that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// The line of the body, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The column of the body, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
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
            line: problem.place.map(|(line, _)| line),
            column: problem.place.map(|(_, column)| column),
        };
        let body = serde_json::to_vec(&document).expect("a document of texts and numbers can be written");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = problem.status;
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
        let problem = Problem::new(StatusCode::BAD_REQUEST, "not-json", "The body is not JSON", "expected value")
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
            "title": "The body is not JSON",
            "status": 400,
            "detail": "expected value",
            "line": 2,
            "column": 7,
        });
        assert_eq!(document, expected);
    }
}
