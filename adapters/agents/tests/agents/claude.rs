//! What a server with Anthropic's Messages API sends, and an agent that asks it.

use std::time::Duration;

use rejoinder_agents::{Anthropic, AnthropicSection};
use serde_json::{Value, json};

use crate::double::{Answer, Piece, Server, client, raw};

/// The default settings for the server.
pub(crate) fn section(server: &Server) -> AnthropicSection {
    let base_url = server.base_url.join("/").expect("a URL");
    AnthropicSection { base_url, model: "claude".to_owned(), ..AnthropicSection::default() }
}

/// An agent with these settings that waits only 1 ms before a retry.
pub(crate) fn agent_with(section: AnthropicSection) -> Anthropic {
    let agent = Anthropic::new("main".into(), section, client()).expect("the settings are good");
    agent.with_retry_pause(Duration::from_millis(1))
}

pub(crate) fn agent(server: &Server) -> Anthropic {
    agent_with(section(server))
}

/// An event, with its name and its data.
pub(crate) fn event(data: &Value) -> Piece {
    raw(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("an event has a type")))
}

pub(crate) fn start() -> Piece {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude",
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 1 },
    });
    event(&json!({ "type": "message_start", "message": message }))
}

fn bytes(pieces: impl IntoIterator<Item = Piece>) -> Vec<u8> {
    let bytes = pieces.into_iter().flat_map(|piece| match piece {
        Piece::Bytes(bytes) => bytes,
        other => panic!("{other:?} is no event"),
    });
    bytes.collect()
}

/// A block that comes in one delta, whole.
pub(crate) fn block(index: usize, begin: &Value, deltas: &[Value]) -> Piece {
    let begin = event(&json!({ "type": "content_block_start", "index": index, "content_block": begin }));
    let deltas =
        deltas.iter().map(|delta| event(&json!({ "type": "content_block_delta", "index": index, "delta": delta })));
    let stop = event(&json!({ "type": "content_block_stop", "index": index }));
    raw(bytes([begin].into_iter().chain(deltas).chain([stop])))
}

pub(crate) fn text(index: usize, text: &str) -> Piece {
    block(index, &json!({ "type": "text", "text": "" }), &[json!({ "type": "text_delta", "text": text })])
}

pub(crate) fn thought(index: usize) -> Piece {
    let deltas = [
        json!({ "type": "thinking_delta", "thinking": "The person greets." }),
        json!({ "type": "signature_delta", "signature": "EqQBCg" }),
    ];
    block(index, &json!({ "type": "thinking", "thinking": "", "signature": "" }), &deltas)
}

pub(crate) fn call(index: usize, name: &str, arguments: &Value) -> Piece {
    let begin = json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} });
    let arguments = arguments.to_string();
    let (first, second) = arguments.split_at(1);
    block(index, &begin, &[first, second].map(|json| json!({ "type": "input_json_delta", "partial_json": json })))
}

/// The end, for this reason.
pub(crate) fn end(reason: &str) -> Piece {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let end = event(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 5 } }));
    raw(bytes([end, event(&json!({ "type": "message_stop" }))]))
}

/// A valid stream of these texts.
pub(crate) fn says(texts: &[&str]) -> Answer {
    let begin = event(&json!({
        "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" },
    }));
    let deltas = texts.iter().map(|text| {
        let delta = json!({ "type": "text_delta", "text": text });
        event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    });
    let stop = event(&json!({ "type": "content_block_stop", "index": 0 }));
    let ping = event(&json!({ "type": "ping" }));
    Answer::stream([start(), begin, ping].into_iter().chain(deltas).chain([stop, end("end_turn")]))
}

/// A valid stream of a text and these tool calls.
pub(crate) fn calls(said: &str, calls: &[(&str, Value)]) -> Answer {
    let said = (!said.is_empty()).then(|| text(0, said));
    let first = usize::from(said.is_some());
    let calls = calls.iter().enumerate().map(|(number, (name, arguments))| call(first + number, name, arguments));
    Answer::stream([start()].into_iter().chain(said).chain(calls).chain([end("tool_use")]))
}
