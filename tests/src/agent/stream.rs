//! A script as the response of a model server.

use std::io;

use axum::{
    body::Body,
    http::{Response, StatusCode, header},
};
use futures_util::stream;
use rejoinder_core::{
    ApprovalRequest, Clock as _, Outcome, Reply, ScheduleCall, SystemClock, When,
    conformance::scripted::{Script, ScriptEnd, ScriptStep},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Performs a script as the response to a call.
pub(super) async fn perform(script: Script) -> Response<Body> {
    let mut steps = script.steps.into_iter().peekable();
    while let Some(step) = steps.next_if(|step| !matches!(step, ScriptStep::Stream(_))) {
        wait(step).await;
    }
    if steps.peek().is_none() {
        match script.end {
            ScriptEnd::Hang => return std::future::pending().await,
            ScriptEnd::Fail(why) => return refusal(StatusCode::INTERNAL_SERVER_ERROR, &why),
            ScriptEnd::Refuse(status) => return refusal(StatusCode::from_u16(status).expect("a status"), "refused"),
            _ => {}
        }
    }
    let (sender, chunks) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut streamed = String::new();
        for step in steps {
            match step {
                ScriptStep::Stream(text) => {
                    streamed.push_str(&text);
                    // The client may have disconnected.
                    let _ = sender.send(Ok(content_chunk(&text))).await;
                }
                step => wait(step).await,
            }
        }
        match last_chunk(script.end, &streamed) {
            Some(last) => drop(sender.send(last).await),
            None => std::future::pending().await,
        }
    });
    let chunks = stream::unfold(chunks, async |mut chunks| Some((chunks.recv().await?, chunks)));
    let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
    response.body(Body::from_stream(chunks)).expect("a response")
}

/// Performs a step that produces no output.
async fn wait(step: ScriptStep) {
    match step {
        ScriptStep::Take(time) => tokio::time::sleep(time).await,
        ScriptStep::Wait(gate) => gate.wait().await,
        other => panic!("no model server does this: {other:?}"),
    }
}

/// The last chunk after `streamed`; `None` if the response never ends.
fn last_chunk(end: ScriptEnd, streamed: &str) -> Option<io::Result<String>> {
    let tool_call = |name: &str, arguments: &Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let call = json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] });
        format!("{}{}{DONE}", chunk(&call, None), chunk(&json!({}), Some("tool_calls")))
    };
    Some(Ok(match end {
        ScriptEnd::Outcome(Outcome::Reply(Reply { text, choices: Some(choices), .. })) => tool_call(
            "ask",
            &json!({ "question": text, "choices": choices.options, "free_text": choices.free_text,
                "expires_in": choices.expires.map(|at| at.since(SystemClock.now()).as_secs_f64()) }),
        ),
        ScriptEnd::Outcome(Outcome::Reply(reply)) => {
            let rest = reply.text.strip_prefix(streamed).expect("a reply begins with what was streamed");
            let rest = if rest.is_empty() && !streamed.is_empty() { String::new() } else { content_chunk(rest) };
            format!("{rest}{}{DONE}", chunk(&json!({}), Some("stop")))
        }
        ScriptEnd::Outcome(Outcome::React(emoji)) => tool_call("react", &json!({ "emoji": emoji })),
        ScriptEnd::Outcome(Outcome::Approval(ApprovalRequest { action, details, kind })) => {
            tool_call("request_approval", &json!({ "action": action, "details": details, "kind": kind }))
        }
        ScriptEnd::Outcome(Outcome::Silent(reason)) => tool_call("stay_silent", &json!({ "reason": reason })),
        ScriptEnd::Defer { note, within } => tool_call("defer", &json!({ "note": note, "seconds": within.as_secs() })),
        ScriptEnd::Schedule(call) => tool_call("schedule", &arguments(call)),
        ScriptEnd::Fail(why) => return Some(Err(io::Error::other(why))),
        ScriptEnd::Hang => return None,
        other => panic!("no model server ends like this: {other:?}"),
    }))
}

/// What a model calls its tool for schedules with.
fn arguments(call: ScheduleCall) -> Value {
    match call {
        ScheduleCall::Add { name, when: When::Cron(cron), time_zone, action } => json!({
            "action": "add", "name": name, "cron": cron, "time_zone": time_zone, "task": action.text(),
        }),
        ScheduleCall::Add { name, when: When::At(at), action, .. } => json!({
            "action": "add", "name": name, "message": action.text(),
            "in_minutes": at.since(SystemClock.now()).as_secs_f64() / 60.0,
        }),
        ScheduleCall::List => json!({ "action": "list" }),
        ScheduleCall::Remove { name } => json!({ "action": "remove", "name": name }),
        other @ ScheduleCall::Add { .. } => panic!("no model server calls this: {other:?}"),
    }
}

const DONE: &str = "data: [DONE]\n\n";

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({ "error": { "message": message } }).to_string();
    Response::builder().status(status).body(Body::from(body)).expect("a response")
}

fn content_chunk(text: &str) -> String {
    chunk(&json!({ "content": text }), None)
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    });
    format!("data: {chunk}\n\n")
}
