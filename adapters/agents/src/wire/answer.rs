//! One object of an answer.

use rejoinder_core::{Activity, ActivityState, Cost, NotACost, ToolUse, Usage, json_error};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::tools::MAX_TOOL_NAME;

/// The keys of which an object has one: it may have more of the first seven, but only one of the others, which end the run. `files` may
/// stand beside another end.
pub(super) const KEYS: [&str; 17] = [
    "text", "rewrite", "tool", "activity", "usage", "title", "send", "reply", "sealed", "react", "ask", "defer",
    "silent", "approval", "error", "end", "files",
];

/// The key with which an object ends the run, of those that it `has`.
pub(crate) fn end_key(has: impl Fn(&str) -> bool) -> Option<&'static str> {
    KEYS[7..].iter().copied().find(|key| has(key))
}

/// How many characters of an activity's title are read.
const MAX_TITLE: usize = 1_000;

/// What an agent says: an object of its answer. It has some of the first seven keys, and at most one of the others, which end the run.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentObject)]
pub(crate) struct WireObject {
    /// Replaces all that was said before.
    #[schema(nullable = false)]
    pub(super) rewrite: Option<String>,
    /// More of the answer.
    #[schema(nullable = false)]
    pub(super) text: Option<String>,
    pub(super) tool: Option<ToolCalled>,
    pub(super) activity: Option<WireActivity>,
    pub(super) usage: Option<WireUsage>,
    /// What the session is about, for lists of sessions: of one line, 100 characters are kept.
    #[schema(nullable = false)]
    pub(super) title: Option<String>,
    /// A message that is sent now.
    pub(super) send: Option<Message>,
    /// Up to ten files of the answer, beside `reply`, `ask` or `end`, or alone as `end`. One that cannot be sent is left out.
    #[schema(value_type = Option<Vec<File>>, nullable = false)]
    pub(super) files: Option<Value>,
    #[serde(flatten)]
    pub(super) end: WireEnd,
    #[serde(flatten)]
    #[schema(ignore)]
    pub(super) unknown: Map<String, Value>,
}

/// How the agent ends its run.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentEnd)]
pub(super) struct WireEnd {
    /// The answer.
    pub(super) reply: Option<Message>,
    /// The answer as an armoured age file, where the turn has `seal_to`.
    #[schema(nullable = false)]
    pub(super) sealed: Option<String>,
    /// An emoji on the message, as the answer.
    #[schema(nullable = false)]
    pub(super) react: Option<String>,
    /// A question as the answer: `question`, `choices`, `free_text`, `expires_in`.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub(super) ask: Option<Value>,
    /// The answer comes later: the turn comes again then. Or only the seconds.
    pub(super) defer: Option<Defer>,
    /// Nothing to say, on purpose: why, for the operator, or `true`.
    #[schema(nullable = false)]
    pub(super) silent: Option<Silent>,
    /// A request for an approval: `action`, `details`, `kind`. The turn comes again once it is decided.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub(super) approval: Option<Value>,
    /// The agent failed: why, for the operator.
    #[schema(nullable = false)]
    pub(super) error: Option<String>,
    /// True: what was said is the answer.
    #[schema(nullable = false)]
    pub(super) end: Option<bool>,
}

/// A tool call of the agent that has ended.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentToolCall)]
pub(super) struct ToolCalled {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    failed: bool,
}

/// What the run has used so far.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentUsage)]
pub(super) struct WireUsage {
    /// The tokens that the model read.
    input_tokens: u64,
    /// The tokens that it wrote.
    output_tokens: u64,
    cost: Option<WireCost>,
}

/// What the run has cost so far, in place of what its tokens cost.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentCost)]
struct WireCost {
    /// In units of the currency, from 0 to 1000000.
    amount: f64,
    /// Three capital letters, such as `USD`.
    currency: String,
}

impl WireUsage {
    /// The tokens, and the cost if there is one.
    pub(super) fn read(self) -> (Usage, Option<Result<Cost, NotACost>>) {
        let Self { input_tokens, output_tokens, cost } = self;
        let cost = cost.map(|WireCost { amount, currency }| Cost::reported(amount, &currency));
        (Usage { input_tokens, output_tokens }, cost)
    }
}

/// What the agent does now, for people, or that it has ended.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentActivity)]
pub(super) struct WireActivity {
    /// A few words, such as `reads 3 files`. Activities are told apart by them.
    title: String,
    /// `working`, `done` or `failed`.
    #[serde(default = "working")]
    #[schema(value_type = String)]
    state: ActivityState,
}

const fn working() -> ActivityState {
    ActivityState::Working
}

/// A text, or a text with files.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentReply)]
#[serde(untagged)]
pub(super) enum Message {
    Text(String),
    WithFiles {
        text: Option<String>,
        #[serde(default)]
        attachments: Vec<File>,
    },
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentFile)]
pub(super) struct File {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) media_type: Option<String>,
    /// The bytes, in Base64.
    pub(super) data: Option<String>,
    /// Where the person finds it, instead of `data`.
    pub(super) url: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentDeferral)]
#[serde(untagged)]
pub(super) enum Defer {
    Seconds(f64),
    WithNote { note: Option<String>, seconds: f64 },
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentSilence)]
#[serde(untagged)]
pub(super) enum Silent {
    Why(String),
    OnPurpose(bool),
}

impl WireObject {
    /// Reads an object. The error quotes nothing.
    pub(super) fn read(json: &str) -> Result<Self, String> {
        let object: Self = serde_json::from_str(json).map_err(|error| json_error(&error))?;
        let Self { rewrite, text, tool, activity, usage, title, send, files, end, unknown: _ } = &object;
        let said = [
            rewrite.is_some(),
            text.is_some(),
            tool.is_some(),
            activity.is_some(),
            usage.is_some(),
            title.is_some(),
            send.is_some(),
        ];
        let ends = end.count();
        if ends > 1 {
            return Err("an object ends the run in two ways".to_owned());
        }
        if ends == 0 && files.is_none() && !said.contains(&true) {
            return Err(format!("an object has none of the keys {}", KEYS.join(", ")));
        }
        Ok(object)
    }
}

impl WireEnd {
    fn count(&self) -> usize {
        let Self { reply, sealed, react, ask, defer, silent, approval, error, end } = self;
        let ends = [
            reply.is_some(),
            sealed.is_some(),
            react.is_some(),
            ask.is_some(),
            defer.is_some(),
            silent.is_some(),
            approval.is_some(),
            error.is_some(),
            end.is_some(),
        ];
        ends.into_iter().filter(|is_there| *is_there).count()
    }
}

impl From<WireActivity> for Activity {
    fn from(WireActivity { title, state }: WireActivity) -> Self {
        Self { title: title.chars().take(MAX_TITLE).collect(), state }
    }
}

impl From<ToolCalled> for ToolUse {
    fn from(call: ToolCalled) -> Self {
        let result = text(call.result);
        Self {
            name: call.name.chars().take(MAX_TOOL_NAME).collect(),
            arguments: text(call.arguments),
            result: if call.failed { format!("failed: {result}") } else { result },
            duration_ms: None,
        }
    }
}

/// A text as it is, and other values as JSON.
fn text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}
