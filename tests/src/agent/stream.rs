//! A script as the response to a call.

use std::{io, mem};

use axum::{
    body::Body,
    http::{Response, StatusCode, header},
};
use futures_util::stream;
use rejoinder_core::{
    ApprovalRequest, Attachment, Clock as _, Outcome, Reply, ScheduleCall, SystemClock, When,
    conformance::scripted::{Script, ScriptEnd, ScriptStep},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::format::{DONE, Format, chunk};

/// Performs a script as the response to a call.
pub(super) async fn perform(script: Script, format: Format) -> Response<Body> {
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
        let mut begin = format.begin();
        for step in steps {
            match step {
                ScriptStep::Stream(text) => {
                    streamed.push_str(&text);
                    // The client may have disconnected.
                    let _ = sender.send(Ok(mem::take(&mut begin) + &format.text(&text))).await;
                }
                step => wait(step).await,
            }
        }
        let Some(last) = last_piece(script.end, &streamed, format) else { return std::future::pending().await };
        let (Ok(text) | Err(text)) = &last;
        let _ = sender.send(Ok(begin + text)).await;
        if last.is_err() {
            let _ = sender.send(Err(io::Error::other("cut off"))).await;
        }
    });
    let chunks = stream::unfold(chunks, async |mut chunks| Some((chunks.recv().await?, chunks)));
    let response = Response::builder().header(header::CONTENT_TYPE, format.content_type());
    response.body(Body::from_stream(chunks)).expect("a response")
}

/// Performs a step that produces no output.
pub(super) async fn wait(step: ScriptStep) {
    match step {
        ScriptStep::Take(time) => tokio::time::sleep(time).await,
        ScriptStep::Wait(gate) => gate.wait().await,
        other => panic!("no model server does this: {other:?}"),
    }
}

/// What comes after `streamed`; `None` if the response never ends. An error is the half of a piece, at which it is cut off.
fn last_piece(end: ScriptEnd, streamed: &str, format: Format) -> Option<Result<String, String>> {
    Some(Ok(match end {
        ScriptEnd::Outcome(Outcome::Reply(Reply { text, choices: None, attachments, .. }))
            if attachments.is_empty() || format == Format::Lines =>
        {
            let rest = text.strip_prefix(streamed).expect("a reply begins with what was streamed");
            let rest = if rest.is_empty() && !streamed.is_empty() { String::new() } else { format.text(rest) };
            rest + &format.end(&text, &attachments)
        }
        ScriptEnd::Fail(why) => {
            let mut piece = format.text(&why);
            piece.truncate(piece.len() / 2);
            return Some(Err(piece));
        }
        ScriptEnd::Hang => return None,
        end if format == Format::Completions => tool_call(end),
        other => panic!("no agent ends like this in {format:?}: {other:?}"),
    }))
}

/// The call of a tool of Chat Completions.
fn tool_call(end: ScriptEnd) -> String {
    let (name, arguments) = match end {
        ScriptEnd::Outcome(Outcome::Reply(Reply { text, choices: Some(choices), .. })) => (
            "ask",
            json!({ "question": text, "choices": choices.options, "free_text": choices.free_text,
                "expires_in": choices.expires.map(|at| at.since(SystemClock.now()).as_secs_f64()) }),
        ),
        // Its words come in the next answer.
        ScriptEnd::Outcome(Outcome::Reply(Reply { attachments, .. })) if !attachments.is_empty() => {
            let Attachment { name, media_type, url } = &attachments[0];
            let data = url.split_once(";base64,").map(|(_, data)| data);
            ("send_file", json!({ "name": name, "media_type": media_type, "data": data }))
        }
        ScriptEnd::Outcome(Outcome::React(emoji)) => ("react", json!({ "emoji": emoji })),
        ScriptEnd::Outcome(Outcome::Approval(ApprovalRequest { action, details, kind, choices: None, .. })) => {
            ("request_approval", json!({ "action": action, "details": details, "kind": kind }))
        }
        ScriptEnd::Outcome(Outcome::Silent(reason)) => ("stay_silent", json!({ "reason": reason })),
        ScriptEnd::Defer { note, within } => ("defer", json!({ "note": note, "seconds": within.as_secs() })),
        ScriptEnd::Schedule(call) => ("schedule", arguments(call)),
        other => panic!("no model server ends like this: {other:?}"),
    };
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] });
    format!("{}{}{DONE}", chunk(&call, None), chunk(&json!({}), Some("tool_calls")))
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

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({ "error": { "message": message } }).to_string();
    Response::builder().status(status).body(Body::from(body)).expect("a response")
}
