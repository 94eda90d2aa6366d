//! The shapes of what is sent and received, as they are described. `answer.rs`, `inbound.rs` and
//! [`rejoinder_kit::Problem`] read and write them; the tests here hold the two together.
#![expect(dead_code, reason = "descriptions, never made")]

use utoipa::ToSchema;

/// A message to the agent. Fields that are not known are let pass.
#[derive(ToSchema)]
#[schema(as = HookMessage)]
pub(crate) struct Question {
    /// What is asked. May be empty, or not there, only when there are attachments.
    #[schema(min_length = 1)]
    message: String,
    /// Who asks, in the caller's own terms: the conversation, too, when none is named.
    #[schema(max_length = 256)]
    sender: Option<String>,
    /// What it belongs to: messages of one conversation are answered in order, and the agent remembers.
    #[schema(max_length = 256)]
    conversation: Option<String>,
    /// Files, by their addresses.
    #[schema(max_items = 32)]
    attachments: Option<Vec<File>>,
}

/// A file, by its address.
#[derive(ToSchema)]
#[schema(as = HookFile)]
pub(crate) struct File {
    /// Its name; the end of its address when there is none.
    #[schema(max_length = 256)]
    name: Option<String>,
    /// Its IANA media type.
    #[schema(max_length = 256)]
    media_type: Option<String>,
    /// Where it is. The gateway does not fetch it.
    #[schema(max_length = 4096, format = "uri")]
    url: String,
}

/// A message to the agent, as a form.
#[derive(ToSchema)]
#[schema(as = HookForm)]
pub(crate) struct Form {
    /// What is asked.
    #[schema(min_length = 1)]
    message: String,
    /// Who asks.
    #[schema(max_length = 256)]
    sender: Option<String>,
    /// What it belongs to.
    #[schema(max_length = 256)]
    conversation: Option<String>,
    /// Addresses of files.
    #[schema(max_items = 32)]
    attachments: Option<Vec<String>>,
}

/// A turn's result. What does not apply is not there.
#[derive(ToSchema)]
#[schema(as = HookAnswer)]
pub(crate) struct Answer {
    /// The turn.
    #[schema(format = "uuid")]
    turn_id: String,
    /// How it stands. `accepted` and `deferred` change; the others do not.
    status: Status,
    /// What kind of answer it is.
    #[schema(nullable = false)]
    signal: Option<Signal>,
    /// Its words, Markdown; the emoji of a reaction; what is said of a deferral.
    #[schema(nullable = false)]
    reply: Option<String>,
    /// Files that go with it.
    #[schema(nullable = false)]
    attachments: Option<Vec<Attachment>>,
    /// What the person may pick from: the pick is sent as the next message of the conversation.
    #[schema(nullable = false)]
    choices: Option<Vec<String>>,
    /// There when it was not the agent that answered.
    #[schema(nullable = false)]
    fallback: Option<Fallback>,
    /// Where the result is, for good.
    #[schema(nullable = false, format = "uri-reference")]
    result_url: Option<String>,
    /// In how many seconds it makes sense to ask there.
    #[schema(nullable = false, minimum = 1, maximum = 30)]
    retry_after: Option<u32>,
}

/// How a turn stands.
#[derive(ToSchema)]
#[schema(as = HookTurnStatus, rename_all = "snake_case")]
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

/// A kind of answer.
#[derive(ToSchema)]
#[schema(as = HookSignal, rename_all = "snake_case")]
pub(crate) enum Signal {
    /// Words.
    Reply,
    /// An emoji.
    Reaction,
}

/// Which rung spoke, and why.
#[derive(ToSchema)]
#[schema(as = HookFallback)]
pub(crate) struct Fallback {
    /// Why the agent's own answer is not there: `silent`, `error`, `timeout`, `refused`, `unreadable`.
    cause: String,
    /// What spoke: `say:silent`, `handoff:orchestrator`, …
    rung: String,
}

/// A file that goes with an answer.
#[derive(ToSchema)]
#[schema(as = HookAttachment)]
pub(crate) struct Attachment {
    /// Its name.
    name: String,
    /// Its IANA media type.
    media_type: String,
    /// Where it is.
    url: String,
}

/// Why a request was refused (RFC 9457).
#[derive(ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Problem {
    /// What kind of problem: `urn:rejoinder:problem:` and a name.
    #[schema(example = "urn:rejoinder:problem:empty-message")]
    r#type: String,
    /// The kind, in words.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u32,
    /// What was wrong this time.
    detail: String,
    /// The field of the body that it is about.
    #[schema(nullable = false)]
    field: Option<String>,
    /// The line of the body, counted from 1.
    #[schema(nullable = false, minimum = 0)]
    line: Option<u32>,
    /// The column of the body, counted from 1.
    #[schema(nullable = false, minimum = 0)]
    column: Option<u32>,
}
