//! The schemas of requests and responses. Their doc comments become the API's descriptions.
//!
//! The real types are in `answer.rs`, `inbound.rs` and [`rejoinder_kit::Problem`]. A test in `answer/tests.rs` compares the
//! fields of answers.
#![expect(dead_code, reason = "types that only describe; no value of them is made")]

use utoipa::ToSchema;

/// A message to the agent. Unknown fields are ignored.
#[derive(ToSchema)]
#[schema(as = HookMessage)]
pub(crate) struct Question {
    /// The text of the message. May be empty or missing only if there are attachments or a command.
    #[schema(min_length = 1)]
    message: String,
    /// The name of a command, with or without its slash: `stop`. `message` is then what follows the name.
    #[schema(max_length = 256)]
    command: Option<String>,
    /// Your name for the person who asks. Also selects the conversation, unless one is named.
    #[schema(max_length = 256)]
    sender: Option<String>,
    /// Your name for the conversation. Its messages are answered in order, and the agent remembers them.
    #[schema(max_length = 256)]
    conversation: Option<String>,
    /// The person's language, as a tag such as `de` or `de-AT`, for what the gateway itself says. Anything else is ignored.
    language: Option<String>,
    /// Files, given by their URLs.
    #[schema(max_items = 32)]
    attachments: Option<Vec<File>>,
}

/// A file, given by its URL or by a `data:` URL with its content.
#[derive(ToSchema)]
#[schema(as = HookFile)]
pub(crate) struct File {
    /// The file's name. If missing, the last segment of the URL is used.
    #[schema(max_length = 256)]
    name: Option<String>,
    /// The file's IANA media type. If missing, that of a `data:` URL is used.
    #[schema(max_length = 256)]
    media_type: Option<String>,
    /// The file's URL, of at most 4096 bytes, which the gateway does not fetch. Or a `data:` URL of any length.
    #[schema(format = "uri")]
    url: String,
}

/// A message to the agent, as a form.
#[derive(ToSchema)]
#[schema(as = HookForm)]
pub(crate) struct Form {
    /// The text of the message.
    #[schema(min_length = 1)]
    message: String,
    /// The name of a command.
    #[schema(max_length = 256)]
    command: Option<String>,
    /// Your name for the person who asks. Also selects the conversation, unless one is named.
    #[schema(max_length = 256)]
    sender: Option<String>,
    /// Your name for the conversation.
    #[schema(max_length = 256)]
    conversation: Option<String>,
    /// The person's language, as a tag such as `de` or `de-AT`.
    language: Option<String>,
    /// URLs of files.
    #[schema(max_items = 32)]
    attachments: Option<Vec<String>>,
}

/// A turn's result. Fields that do not apply are omitted.
#[derive(ToSchema)]
#[schema(as = HookAnswer)]
pub(crate) struct Answer {
    /// The id of the turn.
    #[schema(format = "uuid")]
    turn_id: String,
    /// The turn's status. `accepted` and `deferred` can still change; the others are final.
    status: Status,
    /// The kind of answer, when the status is `answered`.
    #[schema(nullable = false)]
    signal: Option<Signal>,
    /// The answer's text in Markdown, the emoji of a reaction, the text of a deferral, or that there is no answer.
    #[schema(nullable = false)]
    reply: Option<String>,
    /// Files that belong to the answer.
    #[schema(nullable = false)]
    attachments: Option<Vec<Attachment>>,
    /// Options to pick from. To pick one, send it as the next message of the conversation.
    #[schema(nullable = false)]
    choices: Option<Vec<String>>,
    /// Present if a fallback answered instead of the agent.
    #[schema(nullable = false)]
    fallback: Option<Fallback>,
    /// The URL of the result, until the status is final.
    #[schema(nullable = false, format = "uri-reference")]
    result_url: Option<String>,
    /// Seconds to wait before fetching `result_url`.
    #[schema(nullable = false, minimum = 1, maximum = 30)]
    retry_after: Option<u32>,
}

/// The status of a turn.
#[derive(ToSchema)]
#[schema(as = HookTurnStatus, rename_all = "snake_case")]
pub(crate) enum Status {
    /// The turn was accepted and has no answer yet.
    Accepted,
    /// A deferral was sent; the answer is still owed.
    Deferred,
    /// The turn was answered.
    Answered,
    /// The person cancelled the turn, or the operator gave it up.
    Cancelled,
    /// No answer could be delivered.
    Undeliverable,
}

/// The kind of an answer.
#[derive(ToSchema)]
#[schema(as = HookSignal, rename_all = "snake_case")]
pub(crate) enum Signal {
    /// A text.
    Reply,
    /// An emoji.
    Reaction,
}

/// What answered instead of the agent, and why.
#[derive(ToSchema)]
#[schema(as = HookFallback)]
pub(crate) struct Fallback {
    /// Why the agent's own answer is missing: `silent`, `error`, `timeout`, `refused`, `unreadable`.
    cause: String,
    /// The rung of the ladder that answered: `say:silent`, `handoff:orchestrator`, …
    rung: String,
}

/// A file that belongs to an answer.
#[derive(ToSchema)]
#[schema(as = HookAttachment)]
pub(crate) struct Attachment {
    /// The file's name.
    name: String,
    /// The file's IANA media type.
    media_type: String,
    /// The file's URL.
    url: String,
}

/// Why a request was refused (RFC 9457).
#[derive(ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Problem {
    /// The kind of problem: `urn:rejoinder:problem:` followed by a name.
    #[schema(example = "urn:rejoinder:problem:empty-message")]
    r#type: String,
    /// A short description of the kind.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u32,
    /// What is wrong with this request.
    detail: String,
    /// The field of the body that is wrong.
    #[schema(nullable = false)]
    field: Option<String>,
    /// The line of the body, counted from 1.
    #[schema(nullable = false, minimum = 0)]
    line: Option<u32>,
    /// The column of the body, counted from 1.
    #[schema(nullable = false, minimum = 0)]
    column: Option<u32>,
}
