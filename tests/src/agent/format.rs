//! The formats in which a scripted agent answers with text.

use rejoinder_core::Attachment;
use serde_json::{Value, json};

/// How text is streamed, and how its end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenAI's Chat Completions.
    Completions,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Messages,
    /// An object in each line, as services and programs answer.
    Lines,
}

impl Format {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Completions | Self::Responses | Self::Messages => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    /// What comes before all text.
    pub(super) fn begin(self) -> String {
        match self {
            Self::Completions | Self::Lines => String::new(),
            Self::Responses => {
                let response = json!({ "id": "resp_1", "object": "response", "status": "in_progress", "output": [] });
                event(&json!({ "type": "response.created", "response": response }))
                    + &event(&json!({ "type": "response.output_item.added", "output_index": 0, "item": item(None) }))
            }
            Self::Messages => {
                let message = json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "test-model",
                    "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 },
                });
                let block = json!({ "type": "text", "text": "" });
                event(&json!({ "type": "message_start", "message": message }))
                    + &event(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))
            }
        }
    }

    /// A piece of text.
    pub(super) fn text(self, text: &str) -> String {
        match self {
            Self::Completions => chunk(&json!({ "content": text }), None),
            Self::Responses => {
                let kind = "response.output_text.delta";
                event(&json!({ "type": kind, "item_id": ITEM, "output_index": 0, "content_index": 0, "delta": text }))
            }
            Self::Messages => {
                let delta = json!({ "type": "text_delta", "text": text });
                event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
            }
            Self::Lines => format!("{}\n", json!({ "text": text })),
        }
    }

    /// The end of a complete answer, whose whole text this is. Only lines have its files.
    pub(super) fn end(self, text: &str, files: &[Attachment]) -> String {
        match self {
            Self::Completions => format!("{}{DONE}", chunk(&json!({}), Some("stop"))),
            Self::Responses => {
                let item = item(Some(text));
                let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
                let response = json!({
                    "id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage,
                });
                event(&json!({ "type": "response.output_item.done", "output_index": 0, "item": item }))
                    + &event(&json!({ "type": "response.completed", "response": response }))
            }
            Self::Messages => {
                let delta = json!({ "stop_reason": "end_turn", "stop_sequence": null });
                event(&json!({ "type": "content_block_stop", "index": 0 }))
                    + &event(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 1 } }))
                    + &event(&json!({ "type": "message_stop" }))
            }
            Self::Lines if files.is_empty() => format!("{}\n", json!({ "end": true })),
            Self::Lines => format!("{}\n", json!({ "files": files.iter().map(file).collect::<Vec<_>>() })),
        }
    }
}

/// A file of an answer. Its bytes are in its URL.
fn file(Attachment { name, media_type, url }: &Attachment) -> Value {
    let data = url.split_once(";base64,").map(|(_, data)| data);
    json!({ "name": name, "type": media_type, "data": data })
}

/// The end of a stream of Chat Completions.
pub(super) const DONE: &str = "data: [DONE]\n\n";

/// A chunk of Chat Completions.
pub(super) fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    });
    format!("data: {chunk}\n\n")
}

/// The id of the item with the answer of the Responses API.
const ITEM: &str = "msg_1";

/// The item with the answer of the Responses API; without its text it has begun.
fn item(text: Option<&str>) -> Value {
    let content: Vec<_> =
        text.iter().map(|text| json!({ "type": "output_text", "text": text, "annotations": [] })).collect();
    let status = if text.is_some() { "completed" } else { "in_progress" };
    json!({ "id": ITEM, "type": "message", "status": status, "role": "assistant", "content": content })
}

/// An event of the Responses API or of the Messages API.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("an event has a type"))
}
