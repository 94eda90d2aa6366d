//! The messages of A2A, version 1, as far as the gateway uses them. No I/O.
//!
//! Unknown fields and values are ignored and missing ones have a default, so that later versions of a server can be read.
//! Source: <https://a2a-protocol.org/latest/specification/>, whose JSON is that of `a2a.proto`.

use serde::Deserialize;
use serde_json::Value;

/// Sent as `A2A-Version` with every request.
pub(crate) const VERSION: &str = "1.0";

/// Error codes of JSON-RPC, by which the errors of both bindings are known: the task is not known, it does not take this message, and the
/// parameters cannot be used.
pub(crate) const TASK_NOT_FOUND: i64 = -32_001;
pub(crate) const UNSUPPORTED_OPERATION: i64 = -32_004;
pub(crate) const INVALID_PARAMS: i64 = -32_602;

/// An operation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    CancelTask,
    SubscribeToTask,
}

impl Method {
    /// Its name in JSON-RPC.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
        }
    }
}

/// A JSON-RPC response.
#[derive(Debug, Deserialize)]
pub(crate) struct Response<T> {
    pub(crate) result: Option<T>,
    pub(crate) error: Option<RpcError>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// An event of a stream, or the result of a message: one of the four.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) task: Option<Task>,
    pub(crate) message: Option<Message>,
    pub(crate) status_update: Option<StatusUpdate>,
    pub(crate) artifact_update: Option<ArtifactUpdate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context_id: String,
    pub(crate) status: Status,
    pub(crate) artifacts: Option<Vec<Artifact>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusUpdate {
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ArtifactUpdate {
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) artifact: Artifact,
    /// Whether it is added to the artifact of this id.
    pub(crate) append: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) state: State,
    pub(crate) message: Option<Message>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum State {
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// The agent works on it, or will: `TASK_STATE_SUBMITTED`, `TASK_STATE_WORKING`, and states of later versions.
    #[default]
    #[serde(other)]
    Working,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) context_id: Option<String>,
    pub(crate) parts: Option<Vec<Part>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Artifact {
    pub(crate) artifact_id: String,
    pub(crate) parts: Option<Vec<Part>>,
}

/// A piece of content: one of the first four.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Part {
    pub(crate) text: Option<String>,
    /// The bytes of a file, in Base64.
    pub(crate) raw: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) filename: Option<String>,
    pub(crate) media_type: Option<String>,
}

/// What an agent says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) supported_interfaces: Option<Vec<Interface>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) default_input_modes: Option<Vec<String>>,
    /// The version that cards before version 1 name here.
    pub(crate) protocol_version: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    pub(crate) streaming: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Interface {
    pub(crate) url: String,
    pub(crate) protocol_binding: String,
    pub(crate) protocol_version: String,
    pub(crate) tenant: Option<String>,
}
