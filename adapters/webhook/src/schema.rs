//! The schemas of requests and problems. Their doc comments become the API's descriptions.
//!
//! The real types are in `inbound.rs` and [`rejoinder_kit::Problem`].
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
    /// Your age recipient with an X25519 key. The answer is then an armoured age file that only you can read.
    #[schema(min_length = 62, max_length = 62, pattern = "^age1[02-9ac-hj-np-z]{58}$")]
    seal_to: Option<String>,
    /// Files, given by their URLs.
    #[schema(max_items = 50)]
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
    /// Your age recipient with an X25519 key, if the answer is to be sealed.
    #[schema(min_length = 62, max_length = 62, pattern = "^age1[02-9ac-hj-np-z]{58}$")]
    seal_to: Option<String>,
    /// URLs of files.
    #[schema(max_items = 50)]
    attachments: Option<Vec<String>>,
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
