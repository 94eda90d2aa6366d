//! The schemas of requests and errors. Their doc comments become the API's descriptions.
//!
//! The real types are in `error.rs` and `inbound.rs`.
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
