//! A double of an agent, on a pipe in memory.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rejoinder_core::{AgentError, AgentMessage, AgentRuntime as _, AgentTurn, Outcome, RunEvent, RunEvents};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf, duplex, empty, split},
    sync::oneshot,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Acp, AcpSection,
    launch::{Launch, Launched},
};

/// Gemini lists `allow_always` first.
pub(super) const OPTIONS: &[&str] = &["allow_always", "allow_once", "reject_once"];

/// What the agent does while it works on a prompt, one after the other.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// It says this, with the id of a message.
    Says(Option<&'static str>, String),
    /// It sends this update.
    Updates(Value),
    /// It writes this line.
    Writes(String),
    /// It asks for permission to do this, with these kinds of options, and says what it was answered.
    Asks(&'static str, &'static [&'static str]),
    /// It asks for permission to do all of this at once, and says what it was answered.
    AsksAll(&'static [&'static str]),
    /// It asks for permission to do this, and says nothing when it is answered.
    AsksQuietly(&'static str),
    /// It asks for permission to do this, and goes on without an answer.
    AsksInPassing(&'static str),
    /// It asks the person for this, with these parameters, and says what it was answered. The session is its own unless they name one, or a
    /// request.
    Elicits(Value),
    /// The same, and it goes on without an answer.
    ElicitsInPassing(Value),
    /// Once this is cancelled, it takes back its latest request, or one so many before.
    TakesBack(CancellationToken, u64),
    /// It does nothing until it is cancelled.
    Hangs,
    /// It does nothing until this is cancelled.
    Waits(CancellationToken),
    /// It cancels this.
    Releases(CancellationToken),
    /// Its process ends.
    Dies,
    /// It ends with this reason.
    Stops(&'static str),
    /// It answers with this error.
    Refuses(i64, &'static str),
}

pub(super) fn says(text: &str) -> Act {
    Act::Says(Some("m1"), text.to_owned())
}

/// Decides what the agent does on a prompt.
type Script = Box<dyn Fn(&Value) -> Vec<Act> + Send + Sync>;

/// What the agent can and does.
pub(super) struct Agent {
    capabilities: Value,
    /// What it answers to `session/load`: the chunks that it tells again, or an error.
    load: Option<Vec<&'static str>>,
    /// It answers no `session/load` until this is cancelled.
    pub(super) loads: Mutex<Option<CancellationToken>>,
    script: Script,
    pub(super) given: Mutex<Vec<Value>>,
    pub(super) working: AtomicUsize,
    /// How often it has asked for permission.
    asked: AtomicU64,
    /// When its processes were started.
    launches: Mutex<Vec<Instant>>,
    /// How many sessions it has begun: the number is in the id of the next one.
    pub(super) sessions: AtomicUsize,
}

#[derive(Clone)]
pub(super) struct Double(pub(super) Arc<Agent>);

impl Double {
    pub(super) fn new(script: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::that_can(json!({}), None, script)
    }

    pub(super) fn that_can(
        capabilities: Value,
        load: Option<Vec<&'static str>>,
        script: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let (working, launches, sessions) = (AtomicUsize::new(0), Mutex::default(), AtomicUsize::new(0));
        let (script, given, loads, asked) = (Box::new(script), Mutex::default(), Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Agent { capabilities, load, loads, script, given, working, asked, launches, sessions }))
    }

    /// A runtime that is connected to it, and kept running.
    pub(super) fn runtime(&self) -> Arc<Acp> {
        let acp = self.idle();
        let runs = Arc::clone(&acp);
        tokio::spawn(async move { runs.keep_running(CancellationToken::new()).await });
        acp
    }

    /// A runtime that starts it when it is kept running.
    pub(super) fn idle(&self) -> Arc<Acp> {
        self.with(AcpSection::default())
    }

    /// The same with these settings.
    pub(super) fn with(&self, settings: AcpSection) -> Arc<Acp> {
        let settings = AcpSection { command: vec!["double".to_owned()], cwd: Some("/".to_owned()), ..settings };
        Arc::new(Acp::with_launcher("main".into(), settings, Box::new(self.clone())))
    }

    /// What its requests for permission were answered, in order.
    pub(super) fn answered(&self) -> Vec<String> {
        let given = self.0.given.lock();
        let outcomes = given.iter().map(|given| &given["result"]["outcome"]).filter(|outcome| outcome.is_object());
        outcomes.map(|it| it["optionId"].as_str().or(it["outcome"].as_str()).unwrap_or_default().to_owned()).collect()
    }

    /// What its requests for what a person is to say were answered, in order.
    pub(super) fn responses(&self) -> Vec<Value> {
        let given = self.0.given.lock();
        given.iter().map(|given| &given["result"]).filter(|result| result["action"].is_string()).cloned().collect()
    }

    /// How long after each start of its process the next one was.
    pub(super) fn between_starts(&self) -> Vec<Duration> {
        self.0.launches.lock().windows(2).map(|starts| starts[1] - starts[0]).collect()
    }

    /// With which errors its requests were refused, in order.
    pub(super) fn refusals(&self) -> Vec<i64> {
        self.0.given.lock().iter().filter_map(|given| given["error"]["code"].as_i64()).collect()
    }

    /// Waits until this method was called.
    pub(super) async fn until_called(&self, method: &str) {
        while !self.methods().iter().any(|called| called == method) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// The methods that were called, in order.
    pub(super) fn methods(&self) -> Vec<String> {
        let given = self.0.given.lock();
        given.iter().filter_map(|given| given["method"].as_str().map(str::to_owned)).collect()
    }

    /// The texts of the prompt with this number, counted from 0.
    pub(super) fn prompt(&self, number: usize) -> Vec<String> {
        let given = self.0.given.lock();
        let prompt = given.iter().filter(|given| given["method"] == "session/prompt").nth(number).expect("a prompt");
        let blocks = prompt["params"]["prompt"].as_array().expect("blocks");
        blocks.iter().map(|block| block["text"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Launch for Double {
    fn launch(&self) -> Result<Launched, String> {
        self.0.launches.lock().push(Instant::now());
        let (ours, agents) = duplex(1 << 16);
        tokio::spawn(serve(Arc::clone(&self.0), agents));
        let (output, input) = split(ours);
        let (input, output, errors) = (Box::new(input), Box::new(output), Box::new(empty()));
        Ok(Launched { input, output, errors, process: None, tail: Arc::default() })
    }
}

/// A connection, as the agent sees it.
struct Served {
    agent: Arc<Agent>,
    output: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    dead: CancellationToken,
    prompts: Mutex<HashMap<String, CancellationToken>>,
    asked: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
}

async fn serve(agent: Arc<Agent>, stream: DuplexStream) {
    let (input, output) = split(stream);
    let served = Arc::new(Served {
        agent,
        output: tokio::sync::Mutex::new(output),
        dead: CancellationToken::new(),
        prompts: Mutex::default(),
        asked: Mutex::default(),
    });
    let mut lines = BufReader::new(input).lines();
    while let Some(Ok(Some(line))) = served.dead.run_until_cancelled(lines.next_line()).await {
        let message: Value = serde_json::from_str(&line).expect("the gateway writes JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        served.agent.given.lock().push(message.clone());
        Served::handle(&served, message).await;
    }
    served.dead.cancel();
}

impl Served {
    async fn handle(served: &Arc<Self>, message: Value) {
        let (id, params) = (message["id"].clone(), &message["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str() {
            Some("initialize") => {
                let capabilities = &served.agent.capabilities;
                let info = json!({ "name": "double", "version": "1" });
                let result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info });
                served.answer(&id, &result).await;
            }
            // A process may hang.
            Some("session/new")
                if served.agent.capabilities["mostSessions"] == served.agent.sessions.load(Ordering::SeqCst) => {}
            Some("session/new") => {
                let number = served.agent.sessions.fetch_add(1, Ordering::SeqCst) + 1;
                let begin = served.agent.capabilities["sessionsBegin"].as_str().unwrap_or_default();
                let session = format!("{begin}s{number}");
                // Belongs to no prompt.
                let notice = json!({ "content": { "type": "text", "text": "Welcome!" } });
                served.update(&session, "agent_message_chunk", notice).await;
                served.answer(&id, &json!({ "sessionId": session })).await;
            }
            Some("session/load") => {
                let waits = served.agent.loads.lock().take();
                if let Some(waits) = waits {
                    waits.cancelled().await;
                }
                let Some(told) = &served.agent.load else {
                    return served.refuse(&id, -32_602, "Invalid session identifier").await;
                };
                let is_late = served.agent.capabilities["tellsLate"] == true;
                if is_late {
                    served.answer(&id, &Value::Null).await;
                }
                for text in told {
                    if is_late {
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    }
                    let chunk = json!({ "messageId": "m1", "content": { "type": "text", "text": text } });
                    served.update(&session, "agent_message_chunk", chunk).await;
                }
                served.update(&session, "session_info_update", json!({ "title": "Told again" })).await;
                if !is_late {
                    served.answer(&id, &Value::Null).await;
                }
            }
            Some("session/resume") if served.agent.capabilities["sessionCapabilities"]["resume"]["fails"] == true => {
                served.refuse(&id, -32_603, "it cannot be resumed").await;
            }
            Some("session/delete") if served.agent.capabilities["sessionCapabilities"]["delete"]["fails"] == true => {
                served.refuse(&id, -32_603, "it cannot be deleted").await;
            }
            Some("session/resume" | "session/set_mode" | "session/delete") => served.answer(&id, &json!({})).await,
            Some("session/cancel") => {
                if let Some(prompt) = served.prompts.lock().get(&session) {
                    prompt.cancel();
                }
            }
            Some("session/prompt") => {
                let cancelled = CancellationToken::new();
                let other = served.prompts.lock().insert(session.clone(), cancelled.clone());
                assert!(other.is_none(), "two prompts at once in {session}");
                served.agent.working.fetch_add(1, Ordering::SeqCst);
                let served = Arc::clone(served);
                tokio::spawn(async move {
                    let dead = served.dead.clone();
                    dead.run_until_cancelled(served.work(message, session.clone(), cancelled)).await;
                    served.agent.working.fetch_sub(1, Ordering::SeqCst);
                });
            }
            Some(method) => panic!("the agent does not know {method}"),
            None => {
                let asked = id.as_u64().and_then(|id| served.asked.lock().remove(&id));
                if let Some(asked) = asked {
                    let answered = [&message["result"]["outcome"], &message["error"], &message["result"]]
                        .into_iter()
                        .find(|it| !it.is_null());
                    let _ = asked.send(answered.cloned().unwrap_or_default());
                }
            }
        }
    }

    async fn work(&self, prompt: Value, session: String, cancelled: CancellationToken) {
        let mut end = Ok("end_turn");
        for act in (self.agent.script)(&prompt) {
            match act {
                Act::Says(id, text) => {
                    let chunk = json!({ "messageId": id, "content": { "type": "text", "text": text } });
                    self.update(&session, "agent_message_chunk", chunk).await;
                }
                Act::Updates(update) => {
                    let params = json!({ "sessionId": session, "update": update });
                    self.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
                }
                Act::Writes(line) => self.write_line(&line).await,
                Act::Asks(title, kinds) => {
                    let answer = self.asks(&session, title, kinds).await;
                    self.tells(&session, answer).await;
                }
                Act::AsksAll(titles) => {
                    let mut answers = Vec::new();
                    for title in titles {
                        answers.push(self.asks(&session, title, OPTIONS).await);
                    }
                    for answer in answers {
                        self.tells(&session, answer).await;
                    }
                }
                Act::AsksQuietly(title) => {
                    self.asks(&session, title, OPTIONS).await.await.expect("every request is answered");
                }
                Act::AsksInPassing(title) => drop(self.asks(&session, title, OPTIONS).await),
                Act::Elicits(params) => {
                    let answer = self.elicits(&session, params).await;
                    self.tells(&session, answer).await;
                }
                Act::ElicitsInPassing(params) => drop(self.elicits(&session, params).await),
                Act::TakesBack(token, before) => {
                    token.cancelled().await;
                    let params = json!({ "requestId": self.agent.asked.load(Ordering::SeqCst) - 1 - before });
                    self.write(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params })).await;
                }
                Act::Hangs => cancelled.cancelled().await,
                Act::Waits(token) => token.cancelled().await,
                Act::Releases(token) => token.cancel(),
                Act::Dies => return self.dead.cancel(),
                Act::Stops(reason) => end = Ok(reason),
                Act::Refuses(code, message) => end = Err((code, message)),
            }
            if cancelled.is_cancelled() {
                end = Ok("cancelled");
                break;
            }
        }
        self.prompts.lock().remove(&session);
        match end {
            Ok(reason) => {
                let usage = json!({ "inputTokens": 7, "outputTokens": 3, "totalTokens": 10 });
                self.answer(&prompt["id"], &json!({ "stopReason": reason, "usage": usage })).await;
                if let Some(cost) = self.agent.capabilities.get("costsLate") {
                    self.update(&session, "usage_update", json!({ "cost": cost })).await;
                }
                if let Some(title) = self.agent.capabilities.get("titlesLate") {
                    self.update(&session, "session_info_update", json!({ "title": title })).await;
                }
            }
            Err((code, message)) => self.refuse(&prompt["id"], code, message).await,
        }
    }

    /// Asks for permission. Returns what will have the answer.
    async fn asks(&self, session: &str, title: &str, kinds: &[&str]) -> oneshot::Receiver<Value> {
        let call = json!({ "toolCallId": title, "title": title, "kind": "execute", "status": "pending" });
        let options = kinds.iter().map(|kind| json!({ "optionId": format!("o-{kind}"), "name": kind, "kind": kind }));
        let params = json!({ "sessionId": session, "toolCall": call, "options": options.collect::<Vec<_>>() });
        self.requests("session/request_permission", &params).await
    }

    async fn elicits(&self, session: &str, mut params: Value) -> oneshot::Receiver<Value> {
        if params["sessionId"].is_null() && params["requestId"].is_null() {
            params["sessionId"] = session.into();
        }
        self.requests("elicitation/create", &params).await
    }

    async fn requests(&self, method: &str, params: &Value) -> oneshot::Receiver<Value> {
        let (answer, answered) = oneshot::channel();
        let id = self.agent.asked.fetch_add(1, Ordering::SeqCst);
        self.asked.lock().insert(id, answer);
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        answered
    }

    /// Says what it was answered.
    async fn tells(&self, session: &str, answer: oneshot::Receiver<Value>) {
        let answer = answer.await.expect("every request is answered");
        let chunk = json!({ "messageId": "m1", "content": { "type": "text", "text": answer.to_string() } });
        self.update(session, "agent_message_chunk", chunk).await;
    }

    async fn update(&self, session: &str, kind: &str, mut update: Value) {
        update["sessionUpdate"] = kind.into();
        let params = json!({ "sessionId": session, "update": update });
        self.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
    }

    async fn answer(&self, id: &Value, result: &Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    async fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })).await;
    }

    async fn write(&self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    async fn write_line(&self, line: &str) {
        let mut output = self.output.lock().await;
        // It fails if the gateway has gone.
        let _ = output.write_all(format!("{line}\n").as_bytes()).await;
    }
}

/// Runs a turn, and returns its outcome and what was reported.
pub(super) async fn run(acp: &Acp, turn: AgentTurn) -> (Result<Outcome, AgentError>, Vec<RunEvent>) {
    let (outcome, events, _) = run_remembering(acp, turn).await;
    (outcome, events)
}

/// The same, and which ids of the session were to be stored.
pub(super) async fn run_remembering(
    acp: &Acp,
    turn: AgentTurn,
) -> (Result<Outcome, AgentError>, Vec<RunEvent>, Vec<String>) {
    run_listening(acp, turn, Vec::new()).await
}

/// The same; these messages come meanwhile.
pub(super) async fn run_listening(
    acp: &Acp,
    turn: AgentTurn,
    mut more: Vec<AgentMessage>,
) -> (Result<Outcome, AgentError>, Vec<RunEvent>, Vec<String>) {
    let (events, mut reported) = RunEvents::channel();
    let read = async {
        let (mut all, mut remembered) = (Vec::new(), Vec::new());
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Listen(answer) => drop(answer.send(std::mem::take(&mut more))),
                RunEvent::Remember(id, answer) => {
                    remembered.push(id);
                    let _ = answer.send(Ok(()));
                }
                event => all.push(event),
            }
        }
        (all, remembered)
    };
    let (outcome, (events, remembered)) = tokio::join!(acp.run(turn, events, CancellationToken::new()), read);
    (outcome, events, remembered)
}
