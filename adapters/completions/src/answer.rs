//! Turns a `TurnView` into what the caller reads. No I/O.

use std::borrow::Cow;

use rejoinder_core::{Cause, SignalKind, TurnId, TurnStatus, TurnView, Usage};
use rejoinder_kit::{AnswerFile, files::is_on_the_web};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// How the ids of completions begin. The rest is the turn's id.
const PREFIX: &str = "chatcmpl-";

/// The id of the completion that answers a turn.
pub(crate) fn completion_id(turn: TurnId) -> String {
    format!("{PREFIX}{turn}")
}

/// The turn that a completion answers.
pub(crate) fn turn_of(id: &str) -> Option<TurnId> {
    id.strip_prefix(PREFIX)?.parse().ok()
}

/// The texts for turns without an answer, from the operator's templates.
#[derive(Clone, Debug)]
pub struct ApiTexts {
    /// The answer takes longer than the caller waits, and the gateway has not said so yet.
    pub deferral: String,
    /// The person cancelled the turn, or the operator gave it up without a word.
    pub cancelled: String,
    /// No answer could be delivered.
    pub undeliverable: String,
}

/// What is known of a turn. Fields that do not apply are omitted.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = CompletionAbout)]
pub(crate) struct About<'a> {
    /// The id of the turn.
    #[schema(value_type = String, format = "uuid")]
    turn_id: TurnId,
    /// `accepted` and `deferred` can still change; `answered`, `cancelled` and `undeliverable` are final.
    #[schema(value_type = String)]
    status: TurnStatus,
    /// `reply` or `reaction`, when the status is `answered`.
    #[schema(value_type = Option<String>, nullable = false)]
    signal: Option<SignalKind>,
    /// The text of a deferral, in a stream.
    #[schema(nullable = false)]
    deferral: Option<&'a str>,
    /// Present if a fallback answered instead of the agent.
    #[schema(nullable = false)]
    fallback: Option<Fallback<'a>>,
    /// Files that belong to the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<AnswerFile>>, nullable = false)]
    files: Vec<AnswerFile<'a>>,
    /// Where the answer will be, until the status is final.
    #[schema(nullable = false, format = "uri-reference")]
    result_url: Option<String>,
    /// The fields of the request that changed nothing, such as `tools`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<String>>, nullable = false)]
    pub(crate) ignored: &'a [String],
}

/// What answered instead of the agent, and why.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = CompletionFallback)]
struct Fallback<'a> {
    /// Why the agent's own answer is missing: `silent`, `error`, `unreachable`, `timeout`, `refused`, `unreadable`, `unheard`, `budget`.
    #[schema(value_type = String)]
    cause: Cause,
    /// The rung of the ladder that answered: `say:silent`, `handoff:orchestrator`, …
    rung: &'a str,
}

/// What a caller reads of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) about: About<'a>,
}

impl<'a> Answer<'a> {
    /// The answer to a turn, or for one that is not final the text that says so. `result_url` is where the answer will be.
    pub(crate) fn of(view: &'a TurnView, texts: &'a ApiTexts, result_url: impl FnOnce() -> String) -> Self {
        let end = match view.status {
            TurnStatus::Cancelled => Some(&*texts.cancelled),
            TurnStatus::Undeliverable => Some(&*texts.undeliverable),
            TurnStatus::Accepted => Some(&*texts.deferral),
            TurnStatus::Deferred | TurnStatus::Answered | TurnStatus::Silent => None,
        };
        let end = end.filter(|_| view.farewell().is_none());
        // A deferral that was shown before such an end is no longer true.
        let shown = view.shown.as_ref().filter(|_| end.is_none());
        let files: Vec<_> = shown.into_iter().flat_map(|shown| &shown.attachments).map(AnswerFile::from).collect();
        let text = end.or(shown.map(|shown| &*shown.text)).unwrap_or_default();
        let signal = shown.map(|shown| shown.signal).filter(|_| view.status == TurnStatus::Answered);
        let fallback = shown.and_then(|shown| shown.fallback.as_ref());
        Self {
            text: with_links(text, &files),
            about: About {
                signal,
                fallback: fallback.map(|fallback| Fallback { cause: fallback.cause, rung: &fallback.rung }),
                files,
                result_url: (!view.status.is_final()).then(result_url),
                ..About::bare(view.turn_id, view.status)
            },
        }
    }

    /// For a turn of which nothing else is known yet.
    pub(crate) fn accepted(turn: TurnId, texts: &'a ApiTexts, result_url: String) -> Self {
        let about = About { result_url: Some(result_url), ..About::bare(turn, TurnStatus::Accepted) };
        Self { text: Cow::Borrowed(&texts.deferral), about }
    }
}

impl<'a> About<'a> {
    pub(crate) const fn bare(turn_id: TurnId, status: TurnStatus) -> Self {
        Self {
            turn_id,
            status,
            signal: None,
            deferral: None,
            fallback: None,
            files: Vec::new(),
            result_url: None,
            ignored: &[],
        }
    }

    /// For the chunk that tells of a deferral.
    pub(crate) fn deferral(view: &'a TurnView) -> Self {
        let deferral = view.shown.as_ref().map(|shown| &*shown.text);
        Self { deferral, ..Self::bare(view.turn_id, view.status) }
    }
}

/// The text, and below it the files that have an address. The others are in `rejoinder` only.
fn with_links<'a>(text: &'a str, files: &[AnswerFile<'_>]) -> Cow<'a, str> {
    let linked = files.iter().filter(|file| is_on_the_web(file.url));
    let lines: Vec<String> = linked.map(|file| format!("{}: <{}>", file.name, file.url)).collect();
    match (text.is_empty(), lines.is_empty()) {
        (_, true) => Cow::Borrowed(text),
        (true, false) => Cow::Owned(lines.join("\n")),
        (false, false) => Cow::Owned(format!("{text}\n\n{}", lines.join("\n"))),
    }
}

/// The tokens that all runs of the turn used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = CompletionUsage)]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(crate) struct UsageObject {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl From<Usage> for UsageObject {
    fn from(Usage { input_tokens, output_tokens }: Usage) -> Self {
        Self {
            prompt_tokens: input_tokens,
            completion_tokens: output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
        }
    }
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionObject)]
pub(crate) struct Completion<'a> {
    /// `chatcmpl-` and the id of the turn.
    id: String,
    /// Always `chat.completion`.
    object: &'static str,
    /// When the turn was accepted, in seconds since 1970.
    created: i64,
    /// The model that was asked for; the agent that answered if the answer is fetched, or was asked for with another one before.
    model: &'a str,
    /// Exactly one.
    #[schema(value_type = Vec<Choice>)]
    choices: [Choice<'a>; 1],
    /// All 0 if the agent does not tell.
    usage: UsageObject,
    /// What is known of the turn.
    #[schema(value_type = About)]
    rejoinder: &'a About<'a>,
}

/// The answer itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionChoice)]
struct Choice<'a> {
    /// Always 0.
    index: u32,
    /// The message; in chunks of a stream it is `delta`.
    message: Message<'a>,
    #[schema(ignore)]
    logprobs: Option<()>,
    /// Always `stop`.
    finish_reason: &'static str,
}

/// The message of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionAnswer)]
struct Message<'a> {
    /// Always `assistant`.
    role: &'static str,
    /// The text in Markdown, the emoji of a reaction, or the text of a deferral.
    content: &'a str,
    #[schema(ignore)]
    refusal: Option<()>,
}

impl<'a> Completion<'a> {
    pub(crate) fn new(created: i64, model: &'a str, answer: &'a Answer<'a>, usage: Usage) -> Self {
        let message = Message { role: "assistant", content: &answer.text, refusal: None };
        Self {
            id: completion_id(answer.about.turn_id),
            object: "chat.completion",
            created,
            model,
            choices: [Choice { index: 0, message, logprobs: None, finish_reason: "stop" }],
            usage: usage.into(),
            rejoinder: &answer.about,
        }
    }
}

/// One event of a stream.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionChunk)]
pub(crate) struct Chunk<'a> {
    /// `chatcmpl-` and the id of the turn.
    pub(crate) id: &'a str,
    /// Always `chat.completion.chunk`.
    pub(crate) object: &'static str,
    /// In seconds since 1970.
    pub(crate) created: i64,
    /// The model that was asked for.
    pub(crate) model: &'a str,
    /// One with a `delta`; none in the event with the usage.
    #[schema(value_type = Vec<Object>)]
    pub(crate) choices: Vec<ChunkChoice<'a>>,
    /// In the last event but `[DONE]`, if it was asked for and the agent tells.
    #[schema(nullable = false)]
    pub(crate) usage: Option<UsageObject>,
    /// In the event of a deferral, and in that with the `finish_reason`.
    #[schema(nullable = false)]
    pub(crate) rejoinder: Option<&'a About<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ChunkChoice<'a> {
    pub(crate) index: u32,
    pub(crate) delta: Delta<'a>,
    pub(crate) logprobs: Option<()>,
    pub(crate) finish_reason: Option<&'static str>,
}

#[skip_serializing_none]
#[derive(Debug, Default, Serialize)]
pub(crate) struct Delta<'a> {
    pub(crate) role: Option<&'static str>,
    pub(crate) content: Option<&'a str>,
}

/// The text of an answer, as far as it was written to a caller, who cannot be made to forget it.
#[derive(Debug, Default)]
pub(crate) struct Written(String);

impl Written {
    /// What of a draft is to be written; `None` if nothing is new, or the agent began anew: then the caller waits for the whole
    /// answer.
    pub(crate) fn draft(&mut self, text: &str) -> Option<String> {
        // White space at the ends is not a part of the answer.
        let new = text.trim().strip_prefix(&*self.0)?.to_owned();
        self.0.push_str(&new);
        Some(new).filter(|new| !new.is_empty())
    }

    /// What is to be written so that `text` stands whole at the end: the rest of it, or all of it in a paragraph of its own
    /// if something else was written before.
    pub(crate) fn end(&mut self, text: &str) -> Option<String> {
        let rest = text.strip_prefix(&*self.0).or_else(|| text.trim_start().strip_prefix(&*self.0));
        let rest = match rest {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{text}"),
        };
        self.0.push_str(&rest);
        Some(rest).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests;
