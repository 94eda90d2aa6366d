//! The last calls of a hook, which an operator sees while a device or a program is connected to it.

use std::collections::VecDeque;

use axum::{
    http::{HeaderMap, HeaderName, header},
    response::Response,
};
use parking_lot::Mutex;
use rejoinder_core::{Timestamp, TurnId};
use rejoinder_kit::Problem;

/// How many calls are kept.
const KEPT: usize = 10;

/// How many characters of a header are kept.
const LONGEST: usize = 200;

/// A call of a hook, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub at: Timestamp,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `Accept`.
    pub accept: Option<String>,
    /// Its `User-Agent`.
    pub user_agent: Option<String>,
    pub end: CallEnd,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It opened a turn.
    Turn(TurnId),
    /// It was answered without a turn of its own: it repeats another call, or tells of an event.
    Answered,
    /// It was refused with this HTTP status. The detail is what the caller reads.
    Refused { status: u16, detail: String },
}

impl CallEnd {
    pub(crate) fn of(answer: &Result<Response, Problem>) -> Self {
        match answer {
            Ok(_) => Self::Answered,
            Err(problem) => Self::Refused { status: problem.status().as_u16(), detail: problem.detail().to_owned() },
        }
    }
}

impl Call {
    /// A call with these headers that arrives `at` this time.
    pub(crate) fn arrived(headers: &HeaderMap, at: Timestamp) -> Self {
        let text = |name: HeaderName| {
            let value = String::from_utf8_lossy(headers.get(name)?.as_bytes());
            Some(value.chars().take(LONGEST).collect())
        };
        Self {
            at,
            content_type: text(header::CONTENT_TYPE),
            accept: text(header::ACCEPT),
            user_agent: text(header::USER_AGENT),
            end: CallEnd::Answered,
        }
    }

    pub(crate) fn ended(self, end: CallEnd) -> Self {
        Self { end, ..self }
    }
}

/// The last calls of one hook at this node.
#[derive(Default)]
pub(crate) struct Calls(Mutex<VecDeque<Call>>);

impl Calls {
    pub(crate) fn note(&self, call: Call) {
        let mut calls = self.0.lock();
        calls.truncate(KEPT - 1);
        calls.push_front(call);
    }

    /// Newest first.
    pub(crate) fn list(&self) -> Vec<Call> {
        self.0.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, StatusCode};

    use super::*;

    fn call(at: i64) -> Call {
        Call::arrived(&HeaderMap::new(), Timestamp::from_millis(at))
    }

    #[test]
    fn the_last_calls_are_kept_and_no_others() {
        let calls = Calls::default();

        (0..100).for_each(|at| calls.note(call(at)));

        let times: Vec<_> = calls.list().into_iter().map(|call| call.at.as_millis()).collect();
        assert_eq!(times, (90..100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_header_is_kept_as_text_and_short() {
        let long = "a".repeat(10_000);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("audio/ogg"));
        headers.insert(header::ACCEPT, HeaderValue::from_str(&long).unwrap());
        headers.insert(header::USER_AGENT, HeaderValue::from_bytes(b"phone \xff").unwrap());

        let call = Call::arrived(&headers, Timestamp::from_millis(0));

        assert_eq!(call.content_type.as_deref(), Some("audio/ogg"));
        assert_eq!(call.accept.map(|text| text.len()), Some(LONGEST));
        assert_eq!(call.user_agent.as_deref(), Some("phone \u{fffd}"));
    }

    #[test]
    fn a_refusal_is_kept_in_the_words_of_the_caller() {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized", "the token is wrong");

        let ended = call(0).ended(CallEnd::of(&Err(problem)));

        assert_eq!(ended.end, CallEnd::Refused { status: 401, detail: "the token is wrong".to_owned() });
    }
}
