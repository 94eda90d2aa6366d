//! The tool calls of a run: what each is, and what became of it. No I/O.

use std::collections::HashMap;

use rejoinder_core::{Activity, ActivityState, ToolUse};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::protocol::ToolCall;

/// How many calls may be open at once. More are not recorded.
const MOST: usize = 256;

/// The most bytes of a call's id. A call with a longer one is not recorded.
const MAX_ID: usize = 1_000;

/// How many bytes of each text of a call are kept while it is open.
const MAX_KEPT: usize = 16 << 10;

/// How many characters of a call's input and result are recorded.
const MAX_CHARS: usize = 8_000;

#[derive(Default)]
pub(crate) struct ToolCalls(HashMap<String, ToolCall>);

impl ToolCalls {
    /// Adds what is new about a call.
    pub(crate) fn update(&mut self, new: ToolCall) -> Changed {
        let id = new.id.clone();
        if id.len() > MAX_ID || (!self.0.contains_key(&id) && self.0.len() >= MOST) {
            return Changed::default();
        }
        let before = self.0.get(&id).map(title);
        let call = self.0.entry(id.clone()).or_default();
        merge(call, new);
        let (title, state) = (title(call), state(call));
        let mut activities = Vec::new();
        let is_known = before.as_ref() == Some(&title);
        if let Some(before) = before.filter(|_| !is_known) {
            activities.push(Activity { title: before, state: ActivityState::Done });
        }
        let has_ended = state != ActivityState::Working;
        if has_ended || !is_known {
            activities.push(Activity { title, state });
        }
        let ended = if has_ended { self.0.remove(&id) } else { None };
        Changed { activities, ended: ended.map(|call| used(&call)) }
    }

    /// A call as a request for permission names it, with what was known of it before.
    pub(crate) fn known(&self, named: &ToolCall) -> ToolCall {
        let mut call = self.0.get(&named.id).cloned().unwrap_or_default();
        merge(&mut call, named.clone());
        call
    }
}

/// What is new about the tool calls of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Those whose titles or states are other ones than before.
    pub(crate) activities: Vec<Activity>,
    /// The call, if it has ended.
    pub(crate) ended: Option<ToolUse>,
}

fn state(call: &ToolCall) -> ActivityState {
    match call.status.as_deref() {
        Some("completed") => ActivityState::Done,
        Some("failed") => ActivityState::Failed,
        _ => ActivityState::Working,
    }
}

/// A call that has ended, for the operator.
fn used(call: &ToolCall) -> ToolUse {
    let result = match call.raw_output.as_ref() {
        Some(output) => written(output),
        None => call.content.iter().flatten().map(content).collect::<Vec<_>>().join("\n"),
    };
    let result = if state(call) == ActivityState::Failed { format!("failed: {result}") } else { result };
    let arguments = call.raw_input.as_ref().map(written).unwrap_or_default();
    ToolUse {
        name: beginning(&title(call)),
        arguments: beginning(&arguments),
        result: beginning(&result),
        duration_ms: None,
    }
}

/// What a call does, in the agent's words.
pub(crate) fn title(call: &ToolCall) -> String {
    let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    title.or(call.kind.as_deref()).unwrap_or("a tool").to_owned()
}

/// The same for who must decide about it: of a call without a title its input, and if nothing is known of it, that.
pub(crate) fn described(call: &ToolCall) -> String {
    let is_told = |text: &str| !text.trim().is_empty();
    if call.title.as_deref().is_some_and(is_told) {
        return title(call);
    }
    let input = call.raw_input.as_ref().map(written).filter(|input| is_told(input) && input != "{}");
    let kind = call.kind.clone().filter(|kind| is_told(kind) && kind != "other");
    input.or(kind).unwrap_or_else(|| "a tool call that the agent does not describe".to_owned())
}

fn merge(call: &mut ToolCall, new: ToolCall) {
    let ToolCall { id, title, kind, status, raw_input, raw_output, content } = new;
    call.id = id;
    call.title = title.map(kept_text).or(call.title.take());
    call.kind = kind.map(kept_text).or(call.kind.take());
    call.status = status.map(kept_text).or(call.status.take());
    call.raw_input = raw_input.map(kept).or(call.raw_input.take());
    call.raw_output = raw_output.map(kept).or(call.raw_output.take());
    call.content = content.map(kept_parts).or(call.content.take());
}

fn kept_text(text: String) -> String {
    if text.len() > MAX_KEPT { shortened(&text, &text) } else { text }
}

fn kept(value: Value) -> Value {
    let text = written(&value);
    if text.len() > MAX_KEPT { shortened(&text, &text).into() } else { value }
}

fn kept_parts(parts: Vec<Value>) -> Vec<Value> {
    let whole = json!(parts).to_string();
    if whole.len() <= MAX_KEPT {
        return parts;
    }
    let text = parts.iter().map(content).collect::<Vec<_>>().join("\n");
    vec![json!({ "type": "content", "content": { "type": "text", "text": shortened(&text, &whole) } })]
}

/// The beginning and the end of a text, with a digest of `whole` between them: an approval of one action is none of another.
fn shortened(text: &str, whole: &str) -> String {
    let head = text.floor_char_boundary(MAX_KEPT / 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(MAX_KEPT / 2)).max(head);
    let digest = hex::encode(&Sha256::digest(whole)[..16]);
    format!("{}\n[… {} bytes are not kept ({digest}) …]\n{}", &text[..head], tail - head, &text[tail..])
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

        assert_eq!(calls.update(call(begun)).ended, None);
        assert_eq!(calls.update(call(json!({ "toolCallId": "1", "content": [told] }))), Changed::default());
        let ended = calls.update(call(json!({ "toolCallId": "1", "status": "failed" }))).ended;

        let result = ToolUse {
            name: "ls".to_owned(),
            arguments: "{\"command\":\"ls\"}".to_owned(),
            result: "failed: a.txt".to_owned(),
            duration_ms: None,
        };
        assert_eq!(ended, Some(result));
        assert!(calls.0.is_empty());
    }

    #[test]
    fn a_call_is_an_activity_under_its_latest_title() {
        let mut calls = ToolCalls::default();
        let mut told = |told: Value| {
            let changed = calls.update(call(told));
            changed.activities.into_iter().map(|it| (it.title, it.state)).collect::<Vec<_>>()
        };
        let activity = |title: &str, state| (title.to_owned(), state);

        let begun = told(json!({ "toolCallId": "1", "title": "Read", "status": "pending" }));
        assert_eq!(begun, [activity("Read", ActivityState::Working)]);
        assert_eq!(told(json!({ "toolCallId": "1", "status": "in_progress" })), []);
        let retitled = told(json!({ "toolCallId": "1", "title": "Read a.txt" }));
        let expected = [activity("Read", ActivityState::Done), activity("Read a.txt", ActivityState::Working)];
        assert_eq!(retitled, expected);
        let failed = told(json!({ "toolCallId": "1", "status": "failed" }));
        assert_eq!(failed, [activity("Read a.txt", ActivityState::Failed)]);
    }

    #[test]
    fn long_texts_are_kept_in_part_and_stay_different() {
        let long = |end: &str| format!("{}{end}", "ä".repeat(1 << 20));
        let known = |end: &str| {
            let told = json!({ "type": "content", "content": { "type": "text", "text": long(end) } });
            let input = json!({ "command": long(end) });
            let call = json!({
                "toolCallId": "1", "title": long(end), "kind": long(end), "rawInput": input, "rawOutput": long(end), "content": [told, told],
            });
            let mut calls = ToolCalls::default();
            calls.update(self::call(call));
            calls.known(&self::call(json!({ "toolCallId": "1" })))
        };
        let texts = |call: ToolCall| {
            let ToolCall { title, kind, raw_input, raw_output, content, .. } = call;
            let values = [raw_input, raw_output, content.map(Value::from)].into_iter().flatten();
            let texts = [title, kind].into_iter().flatten().chain(values.map(|value| written(&value)));
            texts.collect::<Vec<_>>()
        };

        let (one, other) = (texts(known("a")), texts(known("b")));

        assert_eq!(one.len(), 5);
        for (one, other) in one.iter().zip(&other) {
            assert!(one.len() < MAX_KEPT + 300 && one.contains("bytes are not kept"), "{} bytes", one.len());
            assert_ne!(one, other);
        }
    }

    #[test]
    fn only_the_middle_of_a_text_may_differ() {
        let text = |middle: &str| format!("{0}{middle}{0}", "x".repeat(MAX_KEPT));

        assert_ne!(kept_text(text("a")), kept_text(text("b")));
        assert_eq!(kept_text("x".repeat(MAX_KEPT)), "x".repeat(MAX_KEPT));
    }

    #[test]
    fn a_call_with_a_long_id_is_not_recorded() {
        let mut calls = ToolCalls::default();

        calls.update(call(json!({ "toolCallId": "x".repeat(MAX_ID + 1), "title": "ls" })));

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
