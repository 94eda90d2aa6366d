//! Turns a `TurnView` into the HTTP response that the caller reads. No I/O.

use std::{borrow::Cow, fmt::Write as _, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use rejoinder_core::{
    Cause, Content, FallbackView, Language, Shown, SignalKind, Sound, Timestamp, TurnId, TurnStatus, TurnView, Via,
    spoken,
};
use rejoinder_kit::{AnswerFile, Format};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::data_url;

/// The longest `Retry-After`, in seconds: the answer may arrive well before its debt is due.
const MAX_RETRY_AFTER: u64 = 30;

const TEXT: &str = "text/plain; charset=utf-8";

/// The media type of files whose text is a part of the words.
pub(crate) const MARKDOWN: &str = "text/markdown";

/// The status of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HookTurnStatus)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// No signal yet.
    Accepted,
    /// A deferral was sent; the answer is still owed.
    Deferred,
    Answered,
    /// The person cancelled the turn, or the operator gave it up.
    Cancelled,
    /// The turn is a dead letter: no answer could be delivered.
    Undeliverable,
}

impl Status {
    const fn of(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Accepted => Self::Accepted,
            TurnStatus::Deferred => Self::Deferred,
            // A hook's turn always expects an answer, so it never ends silent.
            TurnStatus::Answered | TurnStatus::Silent => Self::Answered,
            TurnStatus::Cancelled => Self::Cancelled,
            TurnStatus::Undeliverable => Self::Undeliverable,
        }
    }

    const fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::Deferred)
    }
}

/// The texts for turns without an answer, from the operator's templates.
#[derive(Clone, Debug)]
pub struct HookTexts {
    /// The turn was accepted, and nothing else is known of it yet. `{url}` is the URL of its result. Only for callers that
    /// read text.
    pub accepted: String,
    /// The person cancelled the turn, or the operator gave it up without a word.
    pub cancelled: String,
    /// No answer could be delivered.
    pub undeliverable: String,
    /// What stands below the words of an answer that was to be spoken, and is not.
    pub unspoken: String,
    /// The language of these texts. Callers who name no language hear it, too.
    pub language: Language,
}

impl HookTexts {
    const fn of_end(&self, status: Status) -> Option<&String> {
        match status {
            Status::Accepted | Status::Deferred | Status::Answered => None,
            Status::Cancelled => Some(&self.cancelled),
            Status::Undeliverable => Some(&self.undeliverable),
        }
    }
}

/// A turn's result. Fields that do not apply are omitted.
#[skip_serializing_none]
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = HookAnswer)]
pub(crate) struct Answer<'a> {
    /// The id of the turn.
    #[schema(value_type = String, format = "uuid")]
    turn_id: TurnId,
    /// The turn's status. `accepted` and `deferred` can still change; the others are final.
    status: Status,
    /// The kind of answer, when the status is `answered`.
    #[schema(value_type = Option<Signal>, nullable = false)]
    signal: Option<SignalKind>,
    /// The answer's text in Markdown, an armoured age file if it is sealed, the emoji of a reaction, the text of a deferral, or that
    /// there is no answer.
    #[schema(nullable = false)]
    reply: Option<&'a str>,
    /// Present and true if the answer is sealed to the key that the request gave.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(value_type = Option<bool>, nullable = false)]
    sealed: bool,
    /// Files that belong to the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<AnswerFile>>, nullable = false)]
    files: Vec<AnswerFile<'a>>,
    /// Options to pick from. To pick one, send it as the next message of the conversation.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    choices: &'a [String],
    /// Present if a fallback answered instead of the agent.
    #[schema(nullable = false)]
    fallback: Option<Fallback<'a>>,
    /// The URL of the result, until the status is final.
    #[schema(nullable = false, format = "uri-reference")]
    result_url: Option<&'a str>,
    /// Seconds to wait before fetching `result_url`.
    #[schema(value_type = Option<u32>, nullable = false, minimum = 1, maximum = 30)]
    retry_after: Option<u64>,
}

/// What answered instead of the agent, and why.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = HookFallback)]
pub(crate) struct Fallback<'a> {
    /// Why the agent's own answer is missing: `silent`, `error`, `unreachable`, `timeout`, `refused`, `unreadable`, `unheard`, `budget`.
    #[schema(value_type = String)]
    pub(crate) cause: Cause,
    /// The rung of the ladder that answered: `say:silent`, `handoff:orchestrator`, …
    #[schema(value_type = String)]
    pub(crate) rung: Cow<'a, str>,
}

/// The kind of an answer.
#[derive(ToSchema)]
#[schema(as = HookSignal, rename_all = "snake_case")]
#[expect(dead_code, reason = "a schema")]
enum Signal {
    /// A text.
    Reply,
    /// An emoji.
    Reaction,
}

impl<'a> Answer<'a> {
    const fn without_content(turn_id: TurnId, status: Status) -> Self {
        Self {
            turn_id,
            status,
            signal: None,
            reply: None,
            sealed: false,
            files: Vec::new(),
            choices: &[],
            fallback: None,
            result_url: None,
            retry_after: None,
        }
    }

    pub(crate) fn accepted(turn_id: TurnId, result_url: Option<&'a str>) -> Self {
        Self { result_url, retry_after: Some(1), ..Self::without_content(turn_id, Status::Accepted) }
    }

    /// The response for a turn, as of `now`. Drops `result_url` when the turn is final.
    pub(crate) fn of(view: &'a TurnView, result_url: Option<&'a str>, now: Timestamp, texts: &'a HookTexts) -> Self {
        let status = Status::of(view.status);
        let end = texts.of_end(status).filter(|_| view.farewell().is_none());
        // A deferral that was shown before such an end is no longer true.
        let shown = view.shown.as_ref().filter(|_| end.is_none());
        Self {
            turn_id: view.turn_id,
            status,
            signal: shown
                .map(|shown| shown.signal)
                .filter(|signal| status == Status::Answered && *signal != SignalKind::Deferral),
            reply: end.or(shown.map(|shown| shown.sealed.as_ref().unwrap_or(&shown.text))).map(String::as_str),
            sealed: shown.is_some_and(|shown| shown.sealed.is_some()),
            files: shown.into_iter().flat_map(|shown| &shown.attachments).map(AnswerFile::from).collect(),
            choices: shown.map_or(&[], |shown| &shown.choices),
            fallback: shown.and_then(|shown| shown.fallback.as_ref()).map(Fallback::of),
            result_url: result_url.filter(|_| !status.is_final()),
            retry_after: (!status.is_final()).then(|| retry_after(shown, now.since(view.at), now)),
        }
    }

    /// The body of a post to a callback, without its content.
    pub(crate) fn for_callback(turn_id: TurnId, signal: SignalKind, via: Option<&Via>) -> Self {
        let status = match via {
            _ if signal == SignalKind::Deferral => Status::Deferred,
            Some(Via::GivenUp { .. }) => Status::Cancelled,
            _ => Status::Answered,
        };
        let fallback = match via {
            Some(Via::Fallback { cause, rung }) => Some(Fallback { cause: *cause, rung: rung.to_string().into() }),
            _ => None,
        };
        let signal = Some(signal).filter(|_| status == Status::Answered);
        Self { signal, fallback, ..Self::without_content(turn_id, status) }
    }

    pub(crate) fn with_emoji(self, emoji: &'a str) -> Self {
        Self { reply: Some(emoji), ..self }
    }

    pub(crate) fn with_content(self, content: &'a Content) -> Self {
        let Content { text, attachments, choices, sealed, .. } = content;
        let files = attachments.iter().map(AnswerFile::from).collect();
        Self { reply: Some(sealed.as_ref().unwrap_or(text)), sealed: sealed.is_some(), files, choices, ..self }
    }

    pub(crate) const fn is_final(&self) -> bool {
        self.status.is_final()
    }

    /// 200 when final, else 202.
    const fn code(&self) -> StatusCode {
        if self.status.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED }
    }

    /// The HTTP response, in the format that the caller prefers. For sound, it is the text that would be spoken.
    pub(crate) fn respond(&self, format: Format, texts: &HookTexts) -> Response {
        match format {
            Format::Json => self.respond_with("application/json", self.to_json()),
            Format::Text | Format::Sound(_) => self.respond_with(TEXT, self.to_text(texts).into_bytes()),
        }
    }

    /// The response with the sound of what could be spoken; `None`: it is not spoken, and says so.
    pub(crate) fn respond_spoken(&self, sound: Option<Sound>, texts: &HookTexts) -> Response {
        match sound {
            Some(Sound { media_type, bytes }) => self.respond_with(media_type, bytes),
            None => self.respond_with(TEXT, format!("{}\n\n{}", self.to_text(texts), texts.unspoken).into_bytes()),
        }
    }

    fn respond_with(&self, content_type: &'static str, body: Vec<u8>) -> Response {
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

    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(160 + self.reply.map_or(0, str::len));
        serde_json::to_writer(&mut json, self).expect("texts and numbers serialise to JSON");
        json
    }

    /// What can be spoken. `None` for a sealed answer, and where there is nothing but a URL.
    pub(crate) fn to_speech(&self, texts: &HookTexts) -> Option<String> {
        (!self.sealed && self.status != Status::Accepted).then(|| self.to_text(texts))
    }

    /// The reply's words, for a voice: without Markdown, or the files' URLs if it is empty, with the Markdown of files whose URLs hold it,
    /// followed by the choices as a numbered list. A sealed one is as it is.
    fn to_text(&self, texts: &HookTexts) -> String {
        if self.status == Status::Accepted {
            return texts.accepted.replace("{url}", self.result_url.unwrap_or_default());
        }
        let reply = self.reply.unwrap_or_default();
        if self.sealed {
            return reply.to_owned();
        }
        let mut text = spoken(reply);
        for file in &self.files {
            let (gap, shown) = match text_in(file) {
                Some(attached) => ("\n\n", Cow::Owned(attached)),
                None if reply.is_empty() => ("\n", Cow::Borrowed(file.url)),
                None => continue,
            };
            text.push_str(if text.is_empty() { "" } else { gap });
            text.push_str(&shown);
        }
        for (at, choice) in self.choices.iter().enumerate() {
            write!(text, "\n{}. {choice}", at + 1).expect("writing to a string never fails");
        }
        text
    }
}

/// The Markdown in a file whose URL holds it.
fn text_in(file: &AnswerFile<'_>) -> Option<String> {
    let content = data_url::content(file.url).filter(|_| file.r#type == MARKDOWN)?;
    String::from_utf8(content.ok()?).ok()
}

impl<'a> Fallback<'a> {
    fn of(fallback: &'a FallbackView) -> Self {
        Self { cause: fallback.cause, rung: Cow::Borrowed(&fallback.rung) }
    }
}

/// The seconds until it makes sense to ask again, of a turn that has been open for `age`. An agent's deferral names its time. The
/// gateway's own does not: who has worked for 20 s may well need 5 s more, and hardly only one.
fn retry_after(shown: Option<&Shown>, age: Duration, now: Timestamp) -> u64 {
    let Some(shown) = shown else { return 1 };
    shown.due.map_or(age / 4, |due| due.since(now)).as_secs().clamp(1, MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests;
