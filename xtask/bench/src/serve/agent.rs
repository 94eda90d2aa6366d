//! The mock agent: a server that answers at once, or never. It is compatible with OpenAI and Anthropic, a service of the kind
//! `http`, and a server of the Agent2Agent protocol (A2A).

use std::future::pending;

use axum::{
    Json, Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{
        HeaderMap,
        header::{CONTENT_TYPE, HOST},
    },
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The text of every answer.
pub(crate) const ANSWER: &str = "pong, said the agent that answers at once";

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    stream: bool,
}

/// `POST /v1/chat/completions`, `POST /v1/messages`, `POST /turns`, `POST /a2a`, `GET /v1/models` and the card of an A2A agent.
pub(crate) fn router(stall: bool) -> Router {
    let complete = async move |Json(request): Json<Request>| -> Response {
        if stall {
            pending::<()>().await;
        }
        if request.stream { streamed() } else { whole() }
    };
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/messages", post(async |_: Bytes| messages()))
        .route("/turns", post(async |_: Bytes| Json(json!({ "reply": ANSWER }))))
        .route("/a2a", post(async |_: Bytes| task()))
        // A long history exceeds axum's default limit.
        .layer(DefaultBodyLimit::disable())
        .route("/v1/models", get(async || models()))
        .route("/.well-known/agent-card.json", get(async |headers: HeaderMap| card(&headers)))
}

/// The list of models.
pub(super) fn models() -> Json<Value> {
    Json(json!({ "object": "list", "data": [{ "id": "bench", "object": "model" }] }))
}

fn whole() -> Response {
    Json(json!({
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": ANSWER },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16 },
    }))
    .into_response()
}

/// The same as server-sent events: two pieces of text, the finish reason, the usage, the end.
fn streamed() -> Response {
    let (first, second) = ANSWER.split_at(ANSWER.len() / 2);
    let begin = piece(&json!({ "role": "assistant", "content": first }));
    let body = [begin, piece(&json!({ "content": second })), end()].concat();
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The event of a piece of text.
pub(super) fn piece(delta: &Value) -> String {
    chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": null }]), &json!(null))
}

/// The last events: the finish reason, the usage, the end.
pub(super) fn end() -> String {
    let finish = chunk(&json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]), &json!(null));
    let usage = chunk(&json!([]), &json!({ "prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16 }));
    format!("{finish}{usage}data: [DONE]\n\n")
}

fn chunk(choices: &Value, usage: &Value) -> String {
    let chunk = json!({
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "bench",
        "choices": choices,
        "usage": usage,
    });
    format!("data: {chunk}\n\n")
}

/// An answer of the Messages API as server-sent events.
fn messages() -> Response {
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    let message = json!({
        "id": "msg_bench", "type": "message", "role": "assistant", "content": [], "model": "bench",
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 8, "output_tokens": 1 },
    });
    let (first, second) = ANSWER.split_at(ANSWER.len() / 2);
    let text = |text: &str| {
        let delta = json!({ "type": "text_delta", "text": text });
        event(json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    };
    let end = json!({ "stop_reason": "end_turn", "stop_sequence": null });
    let body = [
        event(json!({ "type": "message_start", "message": message })),
        event(json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } })),
        text(first),
        text(second),
        event(json!({ "type": "content_block_stop", "index": 0 })),
        event(json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 8 } })),
        event(json!({ "type": "message_stop" })),
    ]
    .concat();
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The card of an A2A agent, whose interface is at the host of the request.
fn card(headers: &HeaderMap) -> Response {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = format!("http://{host}/a2a");
    Json(json!({
        "name": "bench", "version": "1", "capabilities": { "streaming": true }, "defaultInputModes": ["text/plain"],
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
    }))
    .into_response()
}

/// An answer of A2A as server-sent events: the task, two pieces of its artifact, its end.
fn task() -> Response {
    let event = |result: Value| {
        let response = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        format!("data: {response}\n\n")
    };
    let (first, second) = ANSWER.split_at(ANSWER.len() / 2);
    let text = |text: &str| {
        let artifact = json!({ "artifactId": "answer", "parts": [{ "text": text }] });
        event(json!({
            "artifactUpdate": { "taskId": "t1", "contextId": "c1", "artifact": artifact, "append": true },
        }))
    };
    let status = |state: &str| json!({ "state": state });
    let begun = json!({ "id": "t1", "contextId": "c1", "status": status("TASK_STATE_WORKING") });
    let ended = json!({ "taskId": "t1", "contextId": "c1", "status": status("TASK_STATE_COMPLETED") });
    let body =
        [event(json!({ "task": begun })), text(first), text(second), event(json!({ "statusUpdate": ended }))].concat();
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}
