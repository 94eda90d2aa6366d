//! The HTTP+JSON binding of the scripted server, whose scripts are written in JSON-RPC.

use axum::http::{Method, Uri};
use serde_json::{Value, json};

use crate::server::{Answer, Piece, raw};

/// A request, as JSON-RPC has it. `Null`: it is none of the binding.
pub(crate) fn request(verb: &Method, uri: &Uri, params: Value) -> Value {
    let segments: Vec<_> = uri.path().split('/').skip(1).collect();
    let (method, id) = match (verb.as_str(), &*segments) {
        ("POST", [.., "message:send"]) => ("SendMessage", None),
        ("POST", [.., "message:stream"]) => ("SendStreamingMessage", None),
        ("GET", [.., "tasks", id]) if uri.query() == Some("historyLength=0") => ("GetTask", Some(*id)),
        ("POST", [.., "tasks", last]) => match last.rsplit_once(':') {
            Some((id, "cancel")) => ("CancelTask", Some(id)),
            Some((id, "subscribe")) => ("SubscribeToTask", Some(id)),
            _ => return Value::Null,
        },
        _ => return Value::Null,
    };
    let mut params = if params.is_null() { json!({}) } else { params };
    if let Some(id) = id {
        params["id"] = id.into();
    }
    json!({ "method": method, "params": params })
}

/// The same answer without envelopes. What has none is left as it is.
pub(crate) fn answer(answer: Answer) -> Answer {
    let mut status = None;
    let pieces = answer.pieces.into_iter().map(|piece| match piece {
        Piece::Bytes(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let (begin, json, end) = match text.strip_prefix("data: ") {
                Some(json) => ("data: ", json, "\n\n"),
                None => ("", &*text, ""),
            };
            match serde_json::from_str::<Value>(json).unwrap_or_default() {
                Value::Object(envelope) if envelope.contains_key("result") => {
                    raw(format!("{begin}{}{end}", envelope["result"]))
                }
                Value::Object(envelope) if envelope.contains_key("jsonrpc") => {
                    let (code, error) = error(&envelope["error"]);
                    status = Some(code);
                    raw(format!("{begin}{error}{end}"))
                }
                _ => Piece::Bytes(bytes),
            }
        }
        other => other,
    });
    let pieces = pieces.collect();
    Answer { pieces, status: status.unwrap_or(answer.status), ..answer }
}

fn error(error: &Value) -> (u16, Value) {
    let (status, reason) = match error["code"].as_i64() {
        Some(-32_001) => (404, "TASK_NOT_FOUND"),
        Some(-32_602) => (400, "INVALID_PARAMS"),
        Some(-32_603) => (500, "INTERNAL_ERROR"),
        other => panic!("no error of the tests: {other:?}"),
    };
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
    });
    (status, json!({ "error": { "code": status, "message": error["message"], "details": [info] } }))
}
