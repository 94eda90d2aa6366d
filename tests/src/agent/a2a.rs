//! A scripted agent behind a server with the Agent2Agent protocol, version 1, over JSON-RPC. Each message begins a task, which goes on
//! without the stream in which it began.

use std::{
    collections::VecDeque,
    io,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, Response, header},
    response::IntoResponse,
};
use futures_util::{FutureExt as _, stream};
use rejoinder_core::{
    Outcome, Reply,
    conformance::scripted::{Script, ScriptEnd, ScriptStep},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Shared, stream::wait};

const WORKING: &str = "TASK_STATE_WORKING";
const COMPLETED: &str = "TASK_STATE_COMPLETED";
const FAILED: &str = "TASK_STATE_FAILED";
pub(super) const CANCELED: &str = "TASK_STATE_CANCELED";

/// The tasks of an agent, which are never removed.
#[derive(Default)]
pub(super) struct Tasks(Mutex<Vec<Arc<Task>>>);

struct Task {
    id: String,
    context: String,
    progress: watch::Sender<Progress>,
}

struct Progress {
    state: &'static str,
    /// The pieces of its artifact.
    said: Vec<String>,
    /// Why it has failed.
    why: Option<String>,
    /// Whether its script could not be performed.
    is_broken: bool,
}

/// The card of an agent whose server listens on this port.
pub(super) fn card(port: u16) -> Value {
    let url = format!("http://127.0.0.1:{port}/a2a");
    json!({
        "name": "scripted", "version": "1", "capabilities": { "streaming": true }, "defaultInputModes": ["text/plain"],
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
    })
}

/// Answers a request of the protocol. A message is a call of the agent.
pub(super) fn respond(shared: &Shared, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let params = &request["params"];
    let method = request["method"].as_str().unwrap_or_default();
    if method == "SendStreamingMessage" {
        let task = shared.tasks.begin(params["message"]["contextId"].as_str());
        let response = follow(&task);
        let script = shared.script(headers, request);
        tokio::spawn(async move {
            if AssertUnwindSafe(perform(script, &task)).catch_unwind().await.is_err() {
                task.break_off();
            }
        });
        return response;
    }
    let Some(task) = params["id"].as_str().and_then(|id| shared.tasks.find(id)) else {
        return error(-32_001, "there is no such task");
    };
    match method {
        "GetTask" => result(&task.snapshot(&task.progress.borrow())),
        "SubscribeToTask" => follow(&task),
        "CancelTask" => {
            task.end(CANCELED, None);
            result(&task.about(json!({ "id": task.id, "status": task.progress.borrow().status() })))
        }
        _ => error(-32_601, "there is no such method"),
    }
}

impl Tasks {
    /// Begins a task in this context, or in one of its own.
    fn begin(&self, context: Option<&str>) -> Arc<Task> {
        let mut tasks = self.0.lock().expect("never poisoned");
        let id = format!("t{}", tasks.len());
        let context = context.map_or_else(|| format!("context-of-{id}"), ToOwned::to_owned);
        let progress = watch::Sender::new(Progress { state: WORKING, said: Vec::new(), why: None, is_broken: false });
        let task = Arc::new(Task { id, context, progress });
        tasks.push(Arc::clone(&task));
        task
    }

    fn find(&self, id: &str) -> Option<Arc<Task>> {
        self.0.lock().expect("never poisoned").iter().find(|task| task.id == id).cloned()
    }

    /// The state of the last task.
    pub(super) fn last_state(&self) -> Option<&'static str> {
        self.0.lock().expect("never poisoned").last().map(|task| task.progress.borrow().state)
    }

    /// Whether the script of a task could not be performed.
    pub(super) fn is_any_broken(&self) -> bool {
        self.0.lock().expect("never poisoned").iter().any(|task| task.progress.borrow().is_broken)
    }
}

impl Task {
    fn say(&self, text: String) {
        self.progress.send_modify(|progress| {
            if progress.state == WORKING {
                progress.said.push(text);
            }
        });
    }

    fn end(&self, state: &'static str, why: Option<String>) {
        self.progress.send_modify(|progress| {
            if progress.state == WORKING {
                (progress.state, progress.why) = (state, why);
            }
        });
    }

    /// Ends it because its script cannot be performed. The test fails.
    fn break_off(&self) {
        self.progress.send_modify(|progress| progress.is_broken = true);
        self.end(FAILED, Some("its script cannot be performed".to_owned()));
    }

    fn snapshot(&self, progress: &Progress) -> Value {
        let artifacts = if progress.said.is_empty() { Vec::new() } else { vec![artifact(&progress.said.concat())] };
        self.about(json!({ "id": self.id, "status": progress.status(), "artifacts": artifacts }))
    }

    /// Adds its context.
    fn about(&self, mut object: Value) -> Value {
        object["contextId"] = self.context.as_str().into();
        object
    }
}

impl Progress {
    fn status(&self) -> Value {
        let message =
            self.why.as_ref().map(|why| json!({ "messageId": "m1", "role": "ROLE_AGENT", "parts": [{ "text": why }] }));
        json!({ "state": self.state, "message": message })
    }
}

/// Performs a script as the work on a task.
async fn perform(script: Script, task: &Task) {
    for step in script.steps {
        match step {
            ScriptStep::Stream(text) => task.say(text),
            step => wait(step).await,
        }
    }
    match script.end {
        ScriptEnd::Outcome(Outcome::Reply(Reply { text, choices: None, .. })) => {
            let streamed = task.progress.borrow().said.concat();
            let rest = text.strip_prefix(&*streamed).expect("a reply begins with what was streamed");
            if !rest.is_empty() {
                task.say(rest.to_owned());
            }
            task.end(COMPLETED, None);
        }
        ScriptEnd::Fail(why) => task.end(FAILED, Some(why)),
        ScriptEnd::Hang => {}
        other => panic!("no task ends like this: {other:?}"),
    }
}

/// A stream of a task: its state now, and each change until its end. If it fails, the connection breaks in the middle of saying so.
fn follow(task: &Arc<Task>) -> Response<Body> {
    let progress = task.progress.subscribe();
    let (snapshot, seen) = {
        let now = progress.borrow();
        (task.snapshot(&now), now.said.len())
    };
    let waiting = VecDeque::from([Ok(event(&json!({ "task": snapshot })))]);
    let follower = Follower { task: Arc::clone(task), progress, seen, waiting, is_over: false };
    let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
    response.body(Body::from_stream(stream::unfold(follower, Follower::next))).expect("a response")
}

struct Follower {
    task: Arc<Task>,
    progress: watch::Receiver<Progress>,
    /// The number of pieces that were sent.
    seen: usize,
    waiting: VecDeque<io::Result<String>>,
    is_over: bool,
}

impl Follower {
    async fn next(mut self) -> Option<(io::Result<String>, Self)> {
        if self.waiting.is_empty() && !self.is_over {
            self.read().await;
        }
        if self.waiting.front().is_some_and(Result::is_err) {
            // Lets the half of an event go out before the connection breaks.
            tokio::task::yield_now().await;
        }
        let piece = self.waiting.pop_front()?;
        Some((piece, self))
    }

    /// Waits for the next piece of text or the end.
    async fn read(&mut self) {
        let Self { task, progress, seen, waiting, is_over } = self;
        let sent = *seen;
        let changed = progress.wait_for(|now| now.said.len() > sent || now.state != WORKING).await;
        let now = changed.expect("the task is kept");
        if let Some(text) = now.said.get(sent) {
            *seen += 1;
            let update = task.about(json!({ "taskId": task.id, "artifact": artifact(text), "append": true }));
            waiting.push_back(Ok(event(&json!({ "artifactUpdate": update }))));
            return;
        }
        *is_over = true;
        let update = task.about(json!({ "taskId": task.id, "status": now.status() }));
        let mut last = event(&json!({ "statusUpdate": update }));
        if now.state == FAILED {
            last.truncate(last.len() / 2);
            waiting.extend([Ok(last), Err(io::Error::other("cut off"))]);
        } else {
            waiting.push_back(Ok(last));
        }
    }
}

fn artifact(text: &str) -> Value {
    json!({ "artifactId": "answer", "parts": [{ "text": text }] })
}

fn event(result: &Value) -> String {
    format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
}

fn result(result: &Value) -> Response<Body> {
    Json(json!({ "jsonrpc": "2.0", "id": 1, "result": result })).into_response()
}

fn error(code: i64, message: &str) -> Response<Body> {
    Json(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } })).into_response()
}
