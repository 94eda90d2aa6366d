//! What a server with OpenAI's Responses API sends, and an agent that asks it.

use std::time::Duration;

use rejoinder_agents::{OpenAiResponses, OpenAiSection};
use serde_json::{Value, json};

use crate::double::{Answer, Piece, Server, client, raw};

/// An agent with these settings that waits only 1 ms before a retry.
pub(crate) fn agent_with(section: OpenAiSection) -> OpenAiResponses {
    let agent = OpenAiResponses::new("main".into(), section.into(), client()).expect("the settings are good");
    agent.with_retry_pause(Duration::from_millis(1))
}

pub(crate) fn agent(server: &Server) -> OpenAiResponses {
    agent_with(server.settings())
}

/// Events, each with its name and its data, in one piece.
pub(crate) fn events(data: &[Value]) -> Piece {
    let named = data
        .iter()
        .map(|data| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("an event has a type")));
    raw(named.collect::<String>())
}

pub(crate) fn begun() -> Piece {
    events(&[
        json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress", "output": [] } }),
    ])
}

/// An item that comes in pieces: its beginning, `deltas` of this kind, and its end.
fn item(index: usize, begin: &Value, (kind, deltas): (&str, &[&str]), end: &Value) -> Piece {
    let of = |kind: &str, item: &Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": index, "item": item });
    let deltas = deltas.iter().map(|delta| {
        json!({ "type": format!("response.{kind}.delta"), "item_id": "x", "output_index": index, "delta": delta })
    });
    events(&[of("added", begin)].into_iter().chain(deltas).chain([of("done", end)]).collect::<Vec<_>>())
}

pub(crate) fn thought(index: usize) -> Piece {
    let begin = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let end = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    item(index, &begin, ("reasoning_text", &["The person ", "greets."]), &end)
}

pub(crate) fn message(index: usize, texts: &[&str]) -> Piece {
    let begin =
        json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": [] });
    let content = json!([{ "type": "output_text", "text": texts.concat(), "annotations": [] }]);
    let end =
        json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content });
    item(index, &begin, ("output_text", texts), &end)
}

pub(crate) fn text(index: usize, text: &str) -> Piece {
    message(index, &[text])
}

pub(crate) fn call(index: usize, name: &str, arguments: &Value) -> Piece {
    let arguments = arguments.to_string();
    let (first, second) = arguments.split_at(1);
    let call = |arguments: &str| {
        json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"), "name": name,
            "arguments": arguments })
    };
    item(index, &call(""), ("function_call_arguments", &[first, second]), &call(&arguments))
}

/// The last event, of this kind.
pub(crate) fn end(status: &str, more: Value) -> Piece {
    let mut response = json!({ "id": "resp_1", "status": status, "usage": {
        "input_tokens": 42, "input_tokens_details": { "cached_tokens": 30 }, "output_tokens": 5, "total_tokens": 47,
    } });
    let Value::Object(more) = more else { panic!("{more} is no object") };
    response.as_object_mut().expect("an object").extend(more);
    events(&[json!({ "type": format!("response.{status}"), "response": response })])
}

pub(crate) fn completed() -> Piece {
    end("completed", json!({}))
}

/// A valid stream of these texts.
pub(crate) fn says(texts: &[&str]) -> Answer {
    Answer::stream([begun(), message(0, texts), completed()])
}

/// A valid stream of a text and these tool calls.
pub(crate) fn calls(said: &str, calls: &[(&str, Value)]) -> Answer {
    let said = (!said.is_empty()).then(|| text(0, said));
    let first = usize::from(said.is_some());
    let calls = calls.iter().enumerate().map(|(number, (name, arguments))| call(first + number, name, arguments));
    Answer::stream([begun()].into_iter().chain(said).chain(calls).chain([completed()]))
}
