//! The messages of the Agent Client Protocol, version 1, as far as the gateway uses them. No I/O.
//!
//! Unknown fields are ignored and missing ones have a default, so that later versions of an agent can be read.
//! Source: <https://agentclientprotocol.com/protocol/v1/schema>. The crate `agent-client-protocol-schema` is not used, because it
//! changes the order of JSON objects in the whole program (`preserve_order` of `serde_json`).

use std::{fmt, marker::PhantomData};

use rejoinder_agents::{FileKind, Sounds, Takes, prompt::blocks::Block};
use rejoinder_core::Cost;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Number, Value, value::RawValue};
use serde_with::skip_serializing_none;
use url::Url;

/// The most bytes of the agent's id of a session. As many can be stored.
pub(crate) const MAX_ID: usize = 4_096;

/// How many properties a form may have.
pub(crate) const MOST_PROPERTIES: usize = 8;

pub(crate) const VERSION: u64 = 1;

/// An error code: the agent wants a login.
pub(crate) const AUTH_REQUIRED: i64 = -32_000;

/// An error code: there is no such session.
pub(crate) const NOT_FOUND: i64 = -32_002;

/// An error code: the agent does not know the method.
pub(crate) const NO_METHOD: i64 = -32_601;

/// An error code: the parameters cannot be used.
pub(crate) const INVALID_PARAMS: i64 = -32_602;

/// An error code: the one who asked has taken the request back.
pub(crate) const CANCELLED: i64 = -32_800;

/// A JSON-RPC message.
#[derive(Deserialize)]
pub(crate) struct Frame {
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) error: Option<RpcError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<Value>,
}

/// The parameters of `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelledRequest {
    pub(crate) request_id: Value,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub(crate) struct Call<'a, P> {
    pub(crate) jsonrpc: &'static str,
    pub(crate) id: Option<u64>,
    pub(crate) method: &'a str,
    pub(crate) params: P,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub(crate) protocol_version: u64,
    pub(crate) agent_capabilities: AgentCapabilities,
    pub(crate) agent_info: Option<AgentInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentInfo {
    pub(crate) name: String,
    pub(crate) version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AgentCapabilities {
    pub(crate) load_session: bool,
    pub(crate) mcp_capabilities: McpCapabilities,
    pub(crate) prompt_capabilities: PromptCapabilities,
    pub(crate) session_capabilities: SessionCapabilities,
}

/// Which transports of MCP servers it has, besides standard input and output.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct McpCapabilities {
    pub(crate) http: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PromptCapabilities {
    pub(crate) image: bool,
    pub(crate) audio: bool,
    /// Resources with their content.
    pub(crate) embedded_context: bool,
}

impl From<PromptCapabilities> for Takes {
    fn from(PromptCapabilities { image, audio, embedded_context }: PromptCapabilities) -> Self {
        Self {
            pictures: image.then_some(usize::MAX),
            sounds: if audio { Sounds::All } else { Sounds::None },
            documents: embedded_context,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionCapabilities {
    /// An object, if the agent can.
    pub(crate) resume: Option<Value>,
    /// The same.
    pub(crate) delete: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) modes: Option<Modes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Modes {
    pub(crate) available_modes: Vec<Mode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Mode {
    pub(crate) id: String,
}

/// The parameters of `session/update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionUpdate {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) update: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(crate) enum Update {
    AgentMessageChunk(Chunk),
    AgentThoughtChunk(Chunk),
    ToolCall(ToolCall),
    #[serde(rename = "tool_call_update")]
    ChangedToolCall(ToolCall),
    #[serde(rename = "session_info_update")]
    Info(SessionInfo),
    #[serde(rename = "usage_update")]
    Usage(UsageUpdate),
    /// Plans, commands, and what later versions add.
    #[serde(other)]
    Other,
}

/// An update that cannot be read otherwise.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnreadableUpdate {
    session_update: String,
}

impl Update {
    /// Whether an update that cannot be read may be a part of the answer.
    pub(crate) fn may_be_answer(update: &str) -> bool {
        serde_json::from_str(update)
            .map_or(true, |UnreadableUpdate { session_update }| session_update == "agent_message_chunk")
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk {
    pub(crate) content: Content,
    #[serde(default)]
    pub(crate) message_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Content {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
        #[serde(default)]
        uri: Option<String>,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
    },
    Resource {
        #[serde(default)]
        resource: Option<Resource>,
    },
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        uri: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// A file with its content: bytes in Base64, or a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Resource {
    pub(crate) uri: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) blob: Option<String>,
    pub(crate) text: Option<String>,
}

/// What is new about a session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionInfo {
    /// What it is about.
    #[serde(default)]
    pub(crate) title: Option<String>,
}

/// How full a session is, which is not read, and what it has cost:
/// <https://agentclientprotocol.com/protocol/v1/prompt-turn#session-usage-updates>.
#[derive(Debug, Deserialize)]
pub(crate) struct UsageUpdate {
    #[serde(default)]
    cost: Option<Value>,
}

/// What a session has cost since it began.
#[derive(Deserialize)]
struct SaidCost {
    /// In units of the currency.
    amount: f64,
    /// As in ISO 4217.
    currency: String,
}

impl UsageUpdate {
    /// What the session has cost since it began, if the agent says it. The error quotes nothing.
    pub(crate) fn cost(&self) -> Result<Option<Cost>, String> {
        let Some(cost) = &self.cost else { return Ok(None) };
        let read = SaidCost::deserialize(cost).map_err(|_| "it is no amount with a currency".to_owned());
        let SaidCost { amount, currency } = read?;
        Cost::reported(amount, &currency).map(Some).map_err(|why| why.to_string())
    }
}

/// A tool call, or what is new about one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolCall {
    #[serde(rename = "toolCallId")]
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) raw_input: Option<Value>,
    pub(crate) raw_output: Option<Value>,
    pub(crate) content: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) tool_call: ToolCall,
    #[serde(default)]
    pub(crate) options: Vec<PermissionOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    pub(crate) option_id: String,
    /// What it does, in the agent's words.
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) kind: String,
}

/// The parameters of `elicitation/create`.
#[derive(Debug, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(crate) enum ElicitationRequest {
    #[serde(rename_all = "camelCase")]
    Form {
        /// `None`: it belongs to a request outside of all sessions.
        session_id: Option<String>,
        message: String,
        requested_schema: FormSchema,
    },
    #[serde(rename_all = "camelCase")]
    Url { session_id: Option<String>, message: String, url: String },
    #[serde(other)]
    Other,
}

impl ElicitationRequest {
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Form { session_id, .. } | Self::Url { session_id, .. } => session_id.as_deref(),
            Self::Other => None,
        }
    }
}

/// What a form asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FormSchema {
    /// By their names, in the agent's order; at most one more than [`MOST_PROPERTIES`].
    #[serde(deserialize_with = "in_order")]
    pub(crate) properties: Vec<(String, Property)>,
    pub(crate) required: Option<Vec<String>>,
}

/// A property of a form.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Property {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) minimum: Option<Number>,
    pub(crate) maximum: Option<Number>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    /// Of an array.
    pub(crate) items: Option<Items>,
    #[serde(flatten)]
    pub(crate) values: Items,
    pub(crate) default: Option<Value>,
}

/// The values that may be chosen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Items {
    #[serde(rename = "enum")]
    pub(crate) untitled: Option<Vec<String>>,
    #[serde(rename = "oneOf", alias = "anyOf")]
    pub(crate) titled: Option<Vec<TitledValue>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TitledValue {
    #[serde(rename = "const")]
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) title: String,
}

/// The first entries of an object, one more than [`MOST_PROPERTIES`]. A map would sort them.
fn in_order<'de, D: Deserializer<'de>, V: Deserialize<'de>>(object: D) -> Result<Vec<(String, V)>, D::Error> {
    struct Entries<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(name) = object.next_key()? {
                if entries.len() > MOST_PROPERTIES {
                    object.next_value::<IgnoredAny>()?;
                } else {
                    entries.push((name, object.next_value()?));
                }
            }
            Ok(entries)
        }
    }

    object.deserialize_map(Entries(PhantomData))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptEnd {
    pub(crate) stop_reason: String,
    /// `None` also if it cannot be read.
    #[serde(default, deserialize_with = "readable")]
    pub(crate) usage: Option<TokenUsage>,
}

fn readable<'de, D: Deserializer<'de>>(usage: D) -> Result<Option<TokenUsage>, D::Error> {
    let usage = Option::<Box<RawValue>>::deserialize(usage)?;
    Ok(usage.and_then(|usage| serde_json::from_str(usage.get()).ok()))
}

/// How many tokens a prompt used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenUsage {
    #[serde(rename = "inputTokens")]
    pub(crate) input: u64,
    #[serde(rename = "outputTokens")]
    pub(crate) output: u64,
    #[serde(rename = "cachedReadTokens")]
    pub(crate) cached_read: Option<u64>,
    #[serde(rename = "cachedWriteTokens")]
    pub(crate) cached_write: Option<u64>,
    #[serde(rename = "thoughtTokens")]
    pub(crate) thoughts: Option<u64>,
    #[serde(rename = "totalTokens")]
    pub(crate) total: Option<u64>,
}

impl TokenUsage {
    /// All tokens of the input, and of the output. Some agents count cached tokens within the input, and thoughts within the output, and
    /// others beside them: the total shows which.
    pub(crate) fn sums(&self) -> (u64, u64) {
        let Self { input, output, cached_read, cached_write, thoughts, total } = *self;
        let cached = cached_read.unwrap_or(0).saturating_add(cached_write.unwrap_or(0));
        let thoughts = thoughts.unwrap_or(0);
        let is_total = |more: u64| total == Some(input.saturating_add(output).saturating_add(more));
        let ways = [(0, 0), (cached, 0), (0, thoughts)];
        let way = ways.into_iter().find(|(cached, thoughts)| is_total(cached + thoughts));
        let (cached, thoughts) = way.unwrap_or((cached, thoughts));
        (input.saturating_add(cached), output.saturating_add(thoughts))
    }
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum PromptPart<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        mime_type: &'a str,
        /// In base64.
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        mime_type: &'a str,
        /// In base64.
        data: &'a str,
    },
    Resource {
        resource: EmbeddedContent<'a>,
    },
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddedContent<'a> {
    uri: String,
    mime_type: &'a str,
    /// In base64.
    blob: &'a str,
}

impl<'a> From<&'a Block> for PromptPart<'a> {
    fn from(block: &'a Block) -> Self {
        let (name, kind, mime_type, data) = match block {
            Block::Text(text) => return Self::Text { text },
            Block::File { name, kind, media_type, data } => (name, kind, &**media_type, &**data),
        };
        match kind {
            FileKind::Picture => Self::Image { mime_type, data },
            FileKind::Sound => Self::Audio { mime_type, data },
            FileKind::Document | FileKind::Text => {
                Self::Resource { resource: EmbeddedContent { uri: uri_of(name), mime_type, blob: data } }
            }
        }
    }
}

/// The URI of a file that is nowhere but in the prompt. It names no file of a machine, whatever the person called it.
fn uri_of(name: &str) -> String {
    let mut uri = Url::parse("attachment:///").expect("a valid constant");
    if let Ok(mut path) = uri.path_segments_mut() {
        path.pop_if_empty().push(name);
    }
    uri.into()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::no_more(json!({}), (10, 5))]
    #[case::null(json!({ "cachedReadTokens": null, "totalTokens": null }), (10, 5))]
    #[case::no_total(json!({ "cachedReadTokens": 100, "cachedWriteTokens": 20, "thoughtTokens": 3 }), (130, 8))]
    #[case::beside(json!({ "cachedReadTokens": 100, "thoughtTokens": 3, "totalTokens": 118 }), (110, 8))]
    #[case::within(json!({ "cachedReadTokens": 8, "thoughtTokens": 3, "totalTokens": 15 }), (10, 5))]
    #[case::thoughts_within(json!({ "cachedReadTokens": 100, "thoughtTokens": 3, "totalTokens": 115 }), (110, 5))]
    #[case::cached_within(json!({ "cachedReadTokens": 8, "thoughtTokens": 3, "totalTokens": 18 }), (10, 8))]
    #[case::far_too_many(json!({ "cachedReadTokens": u64::MAX, "cachedWriteTokens": u64::MAX }), (u64::MAX, 5))]
    fn cached_tokens_and_thoughts_count_once(#[case] mut usage: Value, #[case] sums: (u64, u64)) {
        usage["inputTokens"] = 10.into();
        usage["outputTokens"] = 5.into();

        let usage: TokenUsage = serde_json::from_value(usage).expect("a usage");

        assert_eq!(usage.sums(), sums);
    }

    #[rstest]
    #[case::whole(r#"{ "inputTokens": 7, "outputTokens": 3 }"#, Some((7, 3)))]
    #[case::negative(r#"{ "inputTokens": -7 }"#, None)]
    #[case::a_null(r#"{ "inputTokens": null }"#, None)]
    #[case::a_number("10", None)]
    #[case::a_huge_number(r#"{ "inputTokens": 1e999 }"#, None)]
    fn a_usage_that_cannot_be_read_spoils_no_answer(#[case] usage: &str, #[case] sums: Option<(u64, u64)>) {
        let end = format!(r#"{{ "usage": {usage}, "stopReason": "end_turn" }}"#);

        let end: PromptEnd = serde_json::from_str(&end).expect("it can be read");

        assert_eq!((&*end.stop_reason, end.usage.map(|usage| usage.sums())), ("end_turn", sums));
    }
}
