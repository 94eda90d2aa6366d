//! The types of the bodies in the OpenAPI description.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A turn, with the lease under which the worker has it. See `docs/agents.md` for its fields.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is written by `wire`")]
pub(super) struct LeasedTurn {
    turn_id: String,
    text: String,
    /// Who wrote.
    sender: Value,
    /// The channel, the chat and the thread.
    conversation: Value,
    session_id: String,
    /// How many runs of the turn there were, this one included.
    attempt: u32,
    /// Earlier messages, oldest first.
    history: Vec<Value>,
    attachments: Vec<Value>,
    /// When the gateway stops to wait for the answer.
    #[schema(format = DateTime)]
    deadline: String,
    /// Is sent back with all that is about this turn.
    lease: String,
    /// When the lease ends, unless it is renewed.
    #[schema(format = DateTime)]
    lease_until: String,
}

/// How a turn ends: the lease and one of the others.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is read by `wire`")]
pub(super) struct Answer {
    lease: String,
    /// The answer: a text, or an object with text and files.
    reply: Option<Value>,
    /// An emoji, as the answer.
    react: Option<String>,
    /// The answer comes later; the gateway asks again then.
    defer: Option<Value>,
    /// A question with choices, as the answer.
    ask: Option<Value>,
    /// A request for an approval; the gateway asks again once it is decided.
    approval: Option<Value>,
    /// Nothing to say, on purpose: why.
    silent: Option<String>,
    /// The worker failed: why, for the operator.
    error: Option<String>,
    /// True: what was said in events is the answer.
    end: Option<bool>,
}

/// What happens while a worker works on a turn.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real value is read by `wire`")]
pub(super) struct Events {
    lease: String,
    /// Each has one key: `text`, `rewrite`, `tool`, `usage` or `send`.
    events: Vec<Value>,
}

/// A lease.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema")]
pub(super) struct LeaseOnly {
    lease: String,
}

/// A lease that goes on.
#[derive(Serialize, ToSchema)]
pub(super) struct Renewed {
    /// When it ends, unless it is renewed.
    #[schema(format = DateTime)]
    pub(super) lease_until: String,
}

/// What became of reported events. The lease goes on.
#[derive(Serialize, ToSchema)]
pub(super) struct Reported {
    /// When the lease ends, unless it is renewed.
    #[schema(format = DateTime)]
    pub(super) lease_until: String,
    /// Whether a message that was sent (`send`) became the turn's answer.
    pub(super) sent: bool,
}

/// Why a request was refused (RFC 9457).
#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema: the real type is `rejoinder_kit::Problem`")]
pub(super) struct WorkerProblem {
    /// The kind of problem: `urn:rejoinder:problem:` followed by a name.
    #[schema(example = "urn:rejoinder:problem:lease-ended")]
    r#type: String,
    /// The kind as a short text.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// The field of the body that is wrong.
    #[schema(nullable = false)]
    field: Option<String>,
}
