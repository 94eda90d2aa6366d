//! The tool calls of a run: what each is, and what became of it. No I/O.

use std::collections::HashMap;

use rejoinder_core::ToolUse;
use serde_json::Value;

use crate::protocol::ToolCall;

/// How many calls may be open at once. More are not recorded.
const MOST: usize = 256;

/// How many characters of a call's input and result are recorded.
const MAX_CHARS: usize = 8_000;

#[derive(Default)]
pub(crate) struct ToolCalls(HashMap<String, ToolCall>);

impl ToolCalls {
    /// Adds what is new about a call. Returns the call if it has ended.
    pub(crate) fn update(&mut self, new: ToolCall) -> Option<ToolUse> {
        let id = new.id.clone();
        if !self.0.contains_key(&id) && self.0.len() >= MOST {
            return None;
        }
        let call = self.0.entry(id.clone()).or_default();
        merge(call, new);
        let has_ended = matches!(call.status.as_deref(), Some("completed" | "failed"));
        if !has_ended {
            return None;
        }
        self.0.remove(&id).map(|call| {
            let result = match call.raw_output.as_ref() {
                Some(output) => written(output),
                None => call.content.iter().flatten().map(content).collect::<Vec<_>>().join("\n"),
            };
            let result = if call.status.as_deref() == Some("failed") { format!("failed: {result}") } else { result };
            let arguments = call.raw_input.as_ref().map(written).unwrap_or_default();
            ToolUse { name: title(&call), arguments: beginning(&arguments), result: beginning(&result) }
        })
    }

    /// A call as a request for permission names it, with what was known of it before.
    pub(crate) fn known(&self, named: &ToolCall) -> ToolCall {
        let mut call = self.0.get(&named.id).cloned().unwrap_or_default();
        merge(&mut call, named.clone());
        call
    }
}

/// What a call does, in the agent's words.
pub(crate) fn title(call: &ToolCall) -> String {
    let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    title.or(call.kind.as_deref()).unwrap_or("a tool").to_owned()
}

fn merge(call: &mut ToolCall, new: ToolCall) {
    let ToolCall { id, title, kind, status, raw_input, raw_output, content } = new;
    call.id = id;
    call.title = title.or(call.title.take());
    call.kind = kind.or(call.kind.take());
    call.status = status.or(call.status.take());
    call.raw_input = raw_input.or(call.raw_input.take());
    call.raw_output = raw_output.or(call.raw_output.take());
    call.content = content.or(call.content.take());
}

/// The text of a part of a result, else the part as JSON.
fn content(part: &Value) -> String {
    part["content"]["text"].as_str().map_or_else(|| part.to_string(), str::to_owned)
}

/// A value as a person reads it.
pub(crate) fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(value: Value) -> ToolCall {
        serde_json::from_value(value).expect("a tool call")
    }

    #[test]
    fn a_call_is_reported_when_it_has_ended() {
        let mut calls = ToolCalls::default();
        let begun = json!({ "toolCallId": "1", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } });
        let told = json!({ "type": "content", "content": { "type": "text", "text": "a.txt" } });

        assert_eq!(calls.update(call(begun)), None);
        assert_eq!(calls.update(call(json!({ "toolCallId": "1", "content": [told] }))), None);
        let ended = calls.update(call(json!({ "toolCallId": "1", "status": "failed" })));

        let result = ToolUse {
            name: "ls".to_owned(),
            arguments: "{\"command\":\"ls\"}".to_owned(),
            result: "failed: a.txt".to_owned(),
        };
        assert_eq!(ended, Some(result));
        assert!(calls.0.is_empty());
    }

    #[test]
    fn a_request_for_permission_may_name_only_the_id() {
        let mut calls = ToolCalls::default();
        calls.update(call(json!({ "toolCallId": "1", "title": "ls", "kind": "execute" })));

        let known = calls.known(&call(json!({ "toolCallId": "1" })));

        assert_eq!((title(&known).as_str(), known.kind.as_deref()), ("ls", Some("execute")));
    }
}
