//! What a caller gets to read: what people see of a turn → a response. Pure.

use std::{borrow::Cow, fmt::Write as _};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use rejoinder_core::{Attachment, Cause, FallbackView, Shown, SignalKind, Timestamp, TurnId, TurnStatus, TurnView};
use serde::Serialize;

use crate::quoted::{split_unquoted, unquoted};

/// The longest pause that is proposed before a result is asked for again, in seconds: an answer may
/// well be there before its debt is due.
const MAX_RETRY_AFTER: u64 = 30;

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// Taken in, and no answer yet.
    Accepted,
    /// An answer was promised, and is owed.
    Deferred,
    /// Answered.
    Answered,
    /// Called off by the person.
    Cancelled,
    /// There is no way to answer.
    Undeliverable,
}

impl Status {
    const fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Accepted => Self::Accepted,
            TurnStatus::Deferred => Self::Deferred,
            // Every turn of a hook is owed an answer, so none ends without one.
            TurnStatus::Answered | TurnStatus::Silent => Self::Answered,
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Undeliverable => Self::Undeliverable,
        }
    }

    const fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::Deferred)
    }
}

/// A turn's result. What does not apply is not there.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Answer<'a> {
    /// The turn.
    turn_id: TurnId,
    /// How it stands. `accepted` and `deferred` change; the others do not.
    status: Status,
    /// What kind of answer: `reply` or `reaction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<SignalKind>,
    /// Its words, Markdown; the emoji of a reaction; what is said of a deferral.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<&'a str>,
    /// Files that go with it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attachments: &'a [Attachment],
    /// What the person may pick from: the pick is sent as the next message.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    choices: &'a [String],
    /// Why the agent's own answer is not there, and what spoke instead of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<Fallback<'a>>,
    /// Where the result is, for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_url: Option<&'a str>,
    /// In how many seconds it makes sense to ask there.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

/// Which rung spoke, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fallback<'a> {
    /// Why the agent's own answer is not there.
    pub(crate) cause: Cause,
    /// What spoke.
    pub(crate) rung: Cow<'a, str>,
}

impl<'a> Answer<'a> {
    /// What is known of a turn that was just taken in.
    pub(crate) fn accepted(turn_id: TurnId, result_url: Option<&'a str>) -> Self {
        Self {
            turn_id,
            status: Status::Accepted,
            signal: None,
            reply: None,
            attachments: &[],
            choices: &[],
            fallback: None,
            result_url,
            retry_after: Some(1),
        }
    }

    /// What people see of a turn, as of `now`. `result_url` is said while there is reason to go there.
    pub(crate) fn of(view: &'a TurnView, result_url: Option<&'a str>, now: Timestamp) -> Self {
        let status = Status::of(view.status);
        let shown = view.shown.as_ref();
        Self {
            turn_id: view.turn_id,
            status,
            signal: shown
                .map(|shown| shown.signal)
                .filter(|signal| status == Status::Answered && *signal != SignalKind::Deferral),
            reply: shown.map(|shown| shown.text.as_str()),
            attachments: shown.map_or(&[], |shown| &shown.attachments),
            choices: shown.map_or(&[], |shown| &shown.choices),
            fallback: shown.and_then(|shown| shown.fallback.as_ref()).map(Fallback::of),
            result_url: result_url.filter(|_| !status.is_final()),
            retry_after: (!status.is_final()).then(|| retry_after(shown, now)),
        }
    }

    /// What an answer that is posted to a callback says.
    pub(crate) fn posted(
        turn_id: TurnId,
        signal: SignalKind,
        content: Posted<'a>,
        fallback: Option<Fallback<'a>>,
    ) -> Self {
        let is_deferral = signal == SignalKind::Deferral;
        Self {
            turn_id,
            status: if is_deferral { Status::Deferred } else { Status::Answered },
            signal: Some(signal).filter(|_| !is_deferral),
            reply: Some(content.text),
            attachments: content.attachments,
            choices: content.choices,
            fallback,
            result_url: None,
            retry_after: None,
        }
    }

    /// Whether it will not change any more.
    pub(crate) const fn is_final(&self) -> bool {
        self.status.is_final()
    }

    /// 200 for what is final, and 202 for what is still to come.
    const fn code(&self) -> StatusCode {
        if self.status.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED }
    }

    /// The response, in the caller's format.
    pub(crate) fn respond(&self, format: Format) -> Response {
        let (content_type, body) = match format {
            Format::Json => ("application/json", self.to_json()),
            Format::Text => ("text/plain; charset=utf-8", self.to_text().into_bytes()),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.code();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(location) = self.result_url.and_then(|url| HeaderValue::from_str(url).ok()) {
            headers.insert(header::LOCATION, location);
        }
        response
    }

    /// The answer as a JSON object.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(160 + self.reply.map_or(0, str::len));
        serde_json::to_writer(&mut json, self).expect("an answer of texts and numbers can be written");
        json
    }

    /// The text alone; choices as a numbered list under it, and files where there are no words.
    fn to_text(&self) -> String {
        let mut text = self.reply.unwrap_or_default().to_owned();
        if text.is_empty() {
            for (at, attachment) in self.attachments.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "\n" });
                text.push_str(&attachment.url);
            }
        }
        for (at, choice) in self.choices.iter().enumerate() {
            write!(text, "\n{}. {choice}", at + 1).expect("a string can be written to");
        }
        text
    }
}

/// What an answer consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted<'a> {
    /// Its words, or the emoji.
    pub(crate) text: &'a str,
    /// Files.
    pub(crate) attachments: &'a [Attachment],
    /// What the person may pick from.
    pub(crate) choices: &'a [String],
}

impl<'a> Fallback<'a> {
    fn of(fallback: &'a FallbackView) -> Self {
        Self { cause: fallback.cause, rung: Cow::Borrowed(&fallback.rung) }
    }
}

fn retry_after(shown: Option<&Shown>, now: Timestamp) -> u64 {
    let due = shown.and_then(|shown| shown.due);
    due.map_or(1, |due| due.since(now).as_secs().clamp(1, MAX_RETRY_AFTER))
}

/// What a caller reads best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The whole answer.
    Json,
    /// The text alone.
    Text,
}

impl Format {
    /// What `Accept` asks for (RFC 9110, section 12.5.1): text where it is preferred to JSON, else JSON.
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut text = Quality::default();
        let mut json = Quality::default();
        for value in headers.get_all(header::ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                let mut parts = split_unquoted(range, ';').map(str::trim);
                let media = parts.next().unwrap_or_default();
                let weight = parts.find_map(|parameter| {
                    let (name, value) = parameter.split_once('=')?;
                    name.trim().eq_ignore_ascii_case("q").then(|| unquoted(value).parse().unwrap_or(0.0))
                });
                let weight: f32 = weight.unwrap_or(1.0);
                text.consider(media, "text/plain", "text/*", weight);
                json.consider(media, "application/json", "application/*", weight);
            }
        }
        if text.weight > json.weight { Self::Text } else { Self::Json }
    }
}

/// How much one media type is wanted: what the closest range says.
#[derive(Default)]
struct Quality {
    weight: f32,
    closeness: u8,
}

impl Quality {
    fn consider(&mut self, range: &str, exact: &str, family: &str, weight: f32) {
        let closeness = match range {
            range if range.eq_ignore_ascii_case(exact) => 3,
            range if range.eq_ignore_ascii_case(family) => 2,
            "*/*" => 1,
            _ => 0,
        };
        if closeness > self.closeness {
            *self = Self { weight, closeness };
        }
    }
}

#[cfg(test)]
mod tests;
