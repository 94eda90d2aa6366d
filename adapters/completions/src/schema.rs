//! The schemas of requests and responses. Their doc comments become the API's descriptions.
//!
//! The real types are in `answer.rs`, `error.rs`, `inbound.rs` and `models.rs`.
#![expect(dead_code, reason = "types that only describe; no value of them is made")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// A request as for OpenAI's API. Fields that are not listed are ignored, as far as they only shape an answer.
#[derive(ToSchema)]
#[schema(as = CompletionRequest)]
pub(crate) struct Request {
    /// An agent, or one of its models: `main` or `main/fast`.
    model: String,
    /// The last one must be of the role `user`: it is answered. `system` and `developer` are instructions to the agent.
    #[schema(min_items = 1)]
    messages: Vec<Message>,
    /// Write the answer while it grows.
    #[schema(nullable = false)]
    stream: Option<bool>,
    /// Options of a stream.
    #[schema(nullable = false)]
    stream_options: Option<StreamOptions>,
    /// Your name for the person. With it the gateway remembers the conversation, and messages before the last one are not
    /// used.
    #[schema(max_length = 256, nullable = false)]
    user: Option<String>,
    /// Must be 1.
    #[schema(minimum = 1, maximum = 1, nullable = false)]
    n: Option<u32>,
}

/// Options of a stream.
#[derive(ToSchema)]
#[schema(as = CompletionStreamOptions)]
pub(crate) struct StreamOptions {
    /// End the stream with the tokens that were used, if the agent tells.
    #[schema(nullable = false)]
    include_usage: Option<bool>,
}

/// One message.
#[derive(ToSchema)]
#[schema(as = CompletionMessage)]
pub(crate) struct Message {
    /// `system`, `developer`, `user` or `assistant`; `tool` and `function` are left out.
    role: String,
    /// A text, or a list of parts: `text`, `image_url`, `file` and `input_audio`. The gateway fetches no URL: of files that are
    /// not in the request the agent gets the name.
    #[schema(value_type = Object)]
    content: Option<BTreeMap<String, String>>,
}

/// An answer.
#[derive(ToSchema)]
#[schema(as = CompletionObject)]
pub(crate) struct Completion {
    /// `chatcmpl-` and the id of the turn.
    id: String,
    /// Always `chat.completion`.
    object: String,
    /// When the turn was accepted, in seconds since 1970.
    created: i64,
    /// The model that was asked for; the agent that answered if the answer is fetched, or was asked for with another one before.
    model: String,
    /// Exactly one.
    choices: Vec<Choice>,
    /// All 0 if the agent does not tell.
    usage: Usage,
    /// What is known of the turn.
    rejoinder: About,
}

/// The answer itself.
#[derive(ToSchema)]
#[schema(as = CompletionChoice)]
pub(crate) struct Choice {
    /// Always 0.
    index: u32,
    /// The message; in chunks of a stream it is `delta`.
    message: Answer,
    /// Always `stop`.
    finish_reason: String,
}

/// The message of an agent.
#[derive(ToSchema)]
#[schema(as = CompletionAnswer)]
pub(crate) struct Answer {
    /// Always `assistant`.
    role: String,
    /// The text in Markdown, the emoji of a reaction, or the text of a deferral.
    content: String,
}

/// One event of a stream.
#[derive(ToSchema)]
#[schema(as = CompletionChunk)]
pub(crate) struct Chunk {
    /// `chatcmpl-` and the id of the turn.
    id: String,
    /// Always `chat.completion.chunk`.
    object: String,
    /// In seconds since 1970.
    created: i64,
    /// The model that was asked for.
    model: String,
    /// One with a `delta`; none in the event with the usage.
    #[schema(value_type = Vec<Object>)]
    choices: Vec<BTreeMap<String, String>>,
    /// In the last event but `[DONE]`, if it was asked for and the agent tells.
    #[schema(nullable = false)]
    usage: Option<Usage>,
    /// In the event of a deferral, and in that with the `finish_reason`.
    #[schema(nullable = false)]
    rejoinder: Option<About>,
}

/// The tokens that all runs of the turn used.
#[derive(ToSchema)]
#[schema(as = CompletionUsage)]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(crate) struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

/// What is known of a turn. Fields that do not apply are omitted.
#[derive(ToSchema)]
#[schema(as = CompletionAbout)]
pub(crate) struct About {
    /// The id of the turn.
    #[schema(format = "uuid")]
    turn_id: String,
    /// `accepted` and `deferred` can still change; `answered`, `cancelled` and `undeliverable` are final.
    status: String,
    /// `reply` or `reaction`, when the status is `answered`.
    #[schema(nullable = false)]
    signal: Option<String>,
    /// The text of a deferral, in a stream.
    #[schema(nullable = false)]
    deferral: Option<String>,
    /// Present if a fallback answered instead of the agent.
    #[schema(nullable = false)]
    fallback: Option<Fallback>,
    /// Files that belong to the answer.
    #[schema(nullable = false)]
    attachments: Option<Vec<File>>,
    /// Where the answer will be, until the status is final.
    #[schema(nullable = false, format = "uri-reference")]
    result_url: Option<String>,
    /// The fields of the request that changed nothing, such as `tools`.
    #[schema(nullable = false)]
    ignored: Option<Vec<String>>,
}

/// What answered instead of the agent, and why.
#[derive(ToSchema)]
#[schema(as = CompletionFallback)]
pub(crate) struct Fallback {
    /// Why the agent's own answer is missing: `silent`, `error`, `timeout`, `refused`, `unreadable`.
    cause: String,
    /// The rung of the ladder that answered: `say:silent`, `handoff:orchestrator`, …
    rung: String,
}

/// A file that belongs to an answer.
#[derive(ToSchema)]
#[schema(as = CompletionFile)]
pub(crate) struct File {
    /// The file's name.
    name: String,
    /// The file's IANA media type.
    media_type: String,
    /// The file's URL.
    url: String,
}

/// The models.
#[derive(ToSchema)]
#[schema(as = CompletionModels)]
pub(crate) struct Models {
    /// Always `list`.
    object: String,
    data: Vec<Model>,
}

/// A model: an agent, or one of its models.
#[derive(ToSchema)]
#[schema(as = CompletionModel)]
pub(crate) struct Model {
    /// `main` or `main/fast`.
    id: String,
    /// Always `model`.
    object: String,
    /// When the gateway started, in seconds since 1970.
    created: i64,
    /// Always `rejoinder`.
    owned_by: String,
}

/// Why a request was refused.
#[derive(ToSchema)]
#[schema(as = CompletionError)]
pub(crate) struct Error {
    error: ErrorDetails,
}

/// What is wrong.
#[derive(ToSchema)]
#[schema(as = CompletionErrorDetails)]
pub(crate) struct ErrorDetails {
    /// What is wrong with this request.
    message: String,
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error` or `server_error`.
    r#type: String,
    /// The field of the body that is wrong.
    param: Option<String>,
    /// The kind of error, such as `model_not_found`.
    code: String,
}
