//! The mock agent: an OpenAI-compatible server that answers at once, or never.

use std::future::pending;

use axum::{
    Json, Router,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;

/// The text of every answer.
pub(crate) const ANSWER: &str = "pong, said the agent that answers at once";

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    stream: bool,
}

/// `POST /v1/chat/completions` and `GET /v1/models`.
pub(crate) fn router(stall: bool) -> Router {
    let complete = async move |Json(request): Json<Request>| -> Response {
        if stall {
            pending::<()>().await;
        }
        if request.stream { streamed() } else { whole() }
    };
    let models = async || Json(json!({ "object": "list", "data": [{ "id": "bench", "object": "model" }] }));
    Router::new()
        // A long history exceeds axum's default limit.
        .route("/v1/chat/completions", post(complete).layer(axum::extract::DefaultBodyLimit::disable()))
        .route("/v1/models", get(models))
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
    let chunk = |choices: serde_json::Value, usage: serde_json::Value| {
        let chunk = json!({
            "id": "chatcmpl-bench",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "bench",
            "choices": choices,
            "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let text = |delta: serde_json::Value, finish: Option<&str>| {
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), json!(null))
    };
    let body = [
        text(json!({ "role": "assistant", "content": first }), None),
        text(json!({ "content": second }), None),
        text(json!({}), Some("stop")),
        chunk(json!([]), json!({ "prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16 })),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}
