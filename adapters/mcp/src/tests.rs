use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use parking_lot::Mutex;
use rejoinder_agents::{CallerTools, SessionTokens};
use rejoinder_core::{
    AgentApproval, AgentError, AgentRuntime, AgentTurn, ApprovalRequest, ApprovalState, Choices, Outcome, Reply,
    RunEvent, RunEvents, ToolAccess, ToolTokens as _, ToolUse, TurnId,
    conformance::runtime::{decision, turn},
};
use rejoinder_kit::{CountedRequest, Place};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{PATH, RouteSettings, Runs, WithTools, routes, runs::Opened};

/// An agent that ends when it is told to.
struct Agent(Mutex<Option<(oneshot::Sender<ToolAccess>, oneshot::Receiver<Outcome>)>>);

#[async_trait]
impl AgentRuntime for Agent {
    fn describe(&self) -> String {
        "a double".to_owned()
    }

    fn has_worker(&self) -> bool {
        false
    }

    fn needs_worker(&self) -> bool {
        true
    }

    fn withdraw(&self, _: TurnId, attempt: u32) -> bool {
        attempt == 1
    }

    async fn run(&self, turn: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        let (access, end) = self.0.lock().take().expect("it runs once");
        access.send(turn.rights.tools.expect("it has tools")).expect("the test waits for it");
        Ok(end.await.expect("the test ends it"))
    }
}

/// What decides an approval that is asked for.
type Deciding = oneshot::Sender<Result<AgentApproval, String>>;

/// A run in flight, and the routes.
struct Run {
    router: Router,
    access: ToolAccess,
    end: oneshot::Sender<Outcome>,
    ended: JoinHandle<Result<Outcome, AgentError>>,
    tools: Arc<Mutex<Vec<ToolUse>>>,
    /// Notified when an approval is asked for.
    asked: Arc<Notify>,
    /// What decides it.
    decision: Arc<Mutex<Option<Deciding>>>,
    stop: CancellationToken,
}

impl Run {
    async fn begin() -> Self {
        let (runs, stop): (Arc<Runs>, _) = (Arc::default(), CancellationToken::new());
        let router = routes(RouteSettings {
            runs: Arc::clone(&runs),
            guesses: Arc::default(),
            body_timeout: Duration::from_secs(5),
            origins: vec!["https://chat.example.org".to_owned()],
            stop_waiting: stop.clone(),
        });
        let (access, told) = oneshot::channel();
        let (end, ends) = oneshot::channel();
        let agent = Arc::new(Agent(Mutex::new(Some((access, ends)))));
        let agent = WithTools::new(agent, runs, "http://127.0.0.1:7420/mcp");
        let (events, mut reported) = RunEvents::channel();
        let asked = turn("Hi").with(|turn| {
            turn.rights.may_ask_approval = true;
            turn.rights.may_ask_person = true;
        });
        let ended = tokio::spawn(async move { agent.run(asked, events, CancellationToken::new()).await });
        let tools: Arc<Mutex<Vec<ToolUse>>> = Arc::default();
        let (seen, asked) = (Arc::clone(&tools), Arc::<Notify>::default());
        let (has_asked, decision) = (Arc::clone(&asked), Arc::<Mutex<_>>::default());
        let decides = Arc::clone(&decision);
        tokio::spawn(async move {
            while let Some(event) = reported.recv().await {
                match event {
                    RunEvent::Tool(call) => seen.lock().push(call),
                    RunEvent::Ask(_, _, answer) => {
                        *decides.lock() = Some(answer);
                        has_asked.notify_one();
                    }
                    _ => {}
                }
            }
        });
        Self { router, access: told.await.expect("it runs"), end, ended, tools, asked, decision, stop }
    }

    fn request(&self) -> axum::http::request::Builder {
        Request::post(PATH)
            .header("authorization", format!("Bearer {}", self.access.tokens.token()))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("host", "127.0.0.1:7420")
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().oneshot(request).await.expect("a response");
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body))))
    }

    /// A method of the generation with `initialize`.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = self.request().header("mcp-protocol-version", "2025-11-25").body(body.into()).unwrap();
        let (status, answer) = self.send(request).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let mut answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        answer["result"].take()
    }

    async fn end(self, outcome: Outcome) -> Result<Outcome, AgentError> {
        self.end.send(outcome).expect("it waits");
        self.ended.await.expect("it does not panic")
    }
}

fn said(text: &str) -> Outcome {
    Outcome::Reply(Reply::text(text))
}

#[test]
fn an_agent_with_tools_says_of_its_workers_what_it_says_without() {
    let agent = WithTools::new(Arc::new(Agent(Mutex::default())), Arc::default(), "http://127.0.0.1:7420/mcp");

    let turn = turn("Hi").turn;

    assert!(agent.needs_worker() && !agent.has_worker());
    assert!(agent.withdraw(turn, 1) && !agent.withdraw(turn, 2));
}

#[tokio::test]
async fn what_an_agent_calls_for_is_carried_out_recorded_and_its_outcome() {
    let run = Run::begin().await;
    assert_eq!(&*run.access.url, "http://127.0.0.1:7420/mcp");

    let initialized = run
        .ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
        )
        .await;
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(initialized["result"]["serverInfo"]["name"], "rejoinder");
    let listed = run.ask("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().expect("a list").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        ["react", "ask", "stay_silent", "send", "send_file", "defer", "request_approval", "search_history"]
    );
    assert_eq!(listed["result"]["tools"][0]["inputSchema"]["required"], json!(["emoji"]));

    let reacted = run.call("react", json!({"emoji": "👍"})).await;
    assert_eq!((&reacted["isError"], &reacted["content"][0]["text"]), (&json!(false), &json!("noted")));
    let again = run.call("stay_silent", json!({"reason": "enough"})).await;
    assert_eq!(again["isError"], true, "{again}");

    let tools = Arc::clone(&run.tools);
    assert_eq!(run.end(said("I have reacted.")).await, Ok(Outcome::React("👍".to_owned())));
    let tools = tools.lock();
    assert_eq!((tools.len(), &*tools[0].name, &*tools[0].arguments), (2, "react", r#"{"emoji":"👍"}"#));
}

#[tokio::test]
async fn the_generation_without_sessions_is_spoken_as_well() {
    let run = Run::begin().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let ask = async |method: &str, mut params: Value, name: Option<&str>| {
        params["_meta"] = meta.clone();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut request = run.request().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        run.send(request.body(body.into()).unwrap()).await
    };

    let (_, discovered) = ask("server/discover", json!({}), None).await;
    let versions = discovered["result"]["supportedVersions"].as_array().cloned().unwrap_or_default();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{discovered}");
    let (_, listed) = ask("tools/list", json!({}), None).await;
    assert_eq!(listed["result"]["cacheScope"], "private", "{listed}");
    let silence = json!({"name": "stay_silent", "arguments": {"reason": "not for me"}});
    let (_, silent) = ask("tools/call", silence, Some("stay_silent")).await;
    assert_eq!(silent["result"]["resultType"], "complete", "{silent}");

    assert_eq!(run.end(said("")).await, Ok(Outcome::Silent("not for me".to_owned())));
}

#[tokio::test]
async fn a_token_ends_with_its_run() {
    let run = Run::begin().await;
    let list = || json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let (first, second) =
        (run.request().body(Body::from(list())).unwrap(), run.request().body(Body::from(list())).unwrap());
    let router = run.router.clone();
    assert_eq!(router.clone().oneshot(first).await.unwrap().status(), StatusCode::OK);

    run.end(said("Hello.")).await.expect("an outcome");

    let refused = router.oneshot(second).await.unwrap();
    assert_eq!(
        (refused.status(), &refused.headers()["www-authenticate"]),
        (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
    );
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_no_token() {
    let run = Run::begin().await;
    let request = run.request().body(Body::from("{}")).unwrap();

    run.ended.abort();
    let _ = run.ended.await;

    assert_eq!(run.router.oneshot(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn only_the_agent_of_the_run_gets_in() {
    let run = Run::begin().await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let foreign = run.request().header("origin", "https://evil.example").body(list.clone().into()).unwrap();
    let own = run.request().header("origin", "https://chat.example.org").body(list.clone().into()).unwrap();
    let without = Request::post(PATH).body(list.clone().into()).unwrap();
    let guessed = Request::post(PATH).header("authorization", "Bearer guess").body(list.into()).unwrap();

    assert_eq!(run.send(foreign).await.0, StatusCode::FORBIDDEN);
    assert_eq!(run.send(own).await.0, StatusCode::OK);
    let (status, problem) = run.send(without).await;
    assert_eq!((status, &problem["type"]), (StatusCode::UNAUTHORIZED, &json!("urn:rejoinder:problem:unauthorized")));
    assert_eq!(run.send(guessed).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn rubbish_is_refused() {
    let run = Run::begin().await;
    let sent = async |body: String| run.send(run.request().body(body.into()).unwrap()).await;

    assert_eq!(sent("rubbish".to_owned()).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(sent("x".repeat((24 << 20) + 1)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let unknown = run.ask("tools/call", json!({"name": "delete_all", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there are react, ask"), "{unknown}");
    let wrong = run.call("ask", json!({"question": 1})).await;
    assert_eq!(wrong["isError"], true);
    let get = run.request().method("GET").body(Body::empty()).unwrap();
    assert_eq!(run.send(get).await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn only_so_many_calls_of_a_run_wait() {
    let runs: Arc<Runs> = Arc::default();
    let (open, mut arriving) = runs.open(Vec::new());
    let Some(Opened::Run(run)) = runs.of(open.token().as_bytes()) else { panic!("it is not open") };
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let run = run.clone();
            tokio::spawn(async move { run.call("react".to_owned(), "{}".to_owned(), None).await })
        })
        .collect();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(arriving.recv().await.expect("it is open"));
    }

    let refused = run.call("react".to_owned(), "{}".to_owned(), None).await;

    assert!(refused.text.contains("8 calls are not answered yet"), "{refused:?}");
    drop((open, held));
    for call in calls {
        assert_eq!(call.await.unwrap().text, "error: the turn has ended");
    }
}

/// Whether its place is left.
#[derive(Default)]
struct Counted(AtomicBool);

impl CountedRequest for Counted {
    fn leave(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn retake(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Others at its address are not shut out for days.
#[tokio::test]
async fn a_call_that_waits_for_a_decision_leaves_its_place() {
    let run = Run::begin().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "request_approval", "arguments": {"action": "pay the rent"}}});
    let counted = Arc::new(Counted::default());
    let request = run
        .request()
        .extension(Place::of(Arc::clone(&counted)))
        .body(axum::body::Body::from(body.to_string()))
        .unwrap();
    let calling = tokio::spawn(run.router.clone().oneshot(request));
    run.asked.notified().await;

    assert!(counted.0.load(Ordering::SeqCst), "it waits");
    let answer = run.decision.lock().take().expect("it asks");
    answer.send(Err("nobody can decide it".to_owned())).expect("it waits");
    assert_eq!(calling.await.unwrap().expect("a response").status(), StatusCode::OK);
    assert!(!counted.0.load(Ordering::SeqCst), "it is answered");
}

#[tokio::test]
async fn a_call_that_waits_for_the_person_returns_their_answer() {
    let run = Run::begin().await;
    let choices = Choices { options: vec!["a".to_owned(), "b".to_owned()], free_text: true, expires: None };
    let request = ApprovalRequest::question("Which one?", choices);
    let decided = AgentApproval { note: Some("b".to_owned()), ..decision(&request, ApprovalState::Approved) };
    let answers = async {
        run.asked.notified().await;
        let answer = run.decision.lock().take().expect("it is asked");
        answer.send(Ok(decided)).expect("it waits");
    };

    let arguments = json!({"question": "Which one?", "choices": ["a", "b"], "wait": true});
    let (answered, ()) = tokio::join!(run.call("ask", arguments), answers);

    assert_eq!(answered["content"][0]["text"], r#"{"question":"Which one?","answer":"b"}"#);
    assert_eq!(run.end(said("Done.")).await, Ok(said("Done.")));
}

/// A worker that has lost its run still has its token.
#[tokio::test]
async fn what_was_called_with_an_older_token_does_not_count() {
    let run = Run::begin().await;
    let old = run.request().body(Body::from(r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#)).unwrap();
    assert_eq!(run.call("stay_silent", json!({"reason": "it is not for me"})).await["isError"], false);

    run.access.tokens.begin_again();

    assert_eq!(run.send(old).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(run.call("react", json!({"emoji": "👍"})).await["isError"], false, "the first one decides nothing");
    run.access.tokens.begin_again();
    assert_eq!(run.end(said("Hello.")).await, Ok(said("Hello.")));
}

/// It may call again, and again.
#[tokio::test]
async fn a_client_that_gives_up_makes_room_for_its_next_call() {
    let run = Run::begin().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "request_approval", "arguments": {"action": "pay the rent"}}});
    for _ in 0..20 {
        let request = run.request().body(Body::from(body.to_string())).unwrap();
        let given_up = tokio::time::timeout(Duration::from_millis(20), run.router.clone().oneshot(request)).await;
        assert!(given_up.is_err(), "it waits");
    }

    let other = run.call("request_approval", json!({"action": "buy a house"})).await;

    let told = other["content"][0]["text"].as_str().unwrap_or_default();
    assert!(told.contains("another approval is not decided yet"), "{other}");
}

/// The agent has not heard the decision: the turn runs again with it, and nobody is asked again.
#[tokio::test]
async fn a_decision_in_the_moment_of_the_end_is_left_to_the_next_run() {
    let run = Run::begin().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "request_approval", "arguments": {"action": "pay the rent"}}});
    let request = run.request().body(Body::from(body.to_string())).unwrap();
    let waiting = tokio::spawn(run.router.clone().oneshot(request));
    run.asked.notified().await;
    let asked = ApprovalRequest::action("pay the rent");

    let answer = run.decision.lock().take().expect("it is asked");
    answer.send(Ok(decision(&asked, ApprovalState::Approved))).expect("it waits");
    let ended = run.end(said("I gave up.")).await;

    assert_eq!(ended, Ok(Outcome::Approval(asked)));
    waiting.abort();
}

/// Its client gave up before the decision came, and it ended later.
#[tokio::test]
async fn a_decision_that_no_call_has_heard_is_left_to_the_next_run() {
    let run = Run::begin().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "request_approval", "arguments": {"action": "pay the rent"}}});
    let request = run.request().body(Body::from(body.to_string())).unwrap();
    let given_up = tokio::spawn(run.router.clone().oneshot(request));
    run.asked.notified().await;
    given_up.abort();
    assert!(given_up.await.is_err(), "it is gone");
    let asked = ApprovalRequest::action("pay the rent");

    let answer = run.decision.lock().take().expect("it is asked");
    answer.send(Ok(decision(&asked, ApprovalState::Approved))).expect("it waits");
    while run.tools.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let ended = run.end(said("I wait for your decision.")).await;

    assert_eq!(ended, Ok(Outcome::Approval(asked)));
}

/// A file may be larger than what other calls say.
#[tokio::test]
async fn a_large_file_is_taken_and_one_that_is_too_large_is_told() {
    let run = Run::begin().await;
    let send = |size: usize| run.call("send_file", json!({"name": "a.bin", "data": "aaaa".repeat(size / 4)}));

    let (taken, too_large) = (send(2 << 20).await, send(17 << 20).await);

    assert_eq!((&taken["isError"], &too_large["isError"]), (&json!(false), &json!(true)), "{taken}");
    let told = too_large["content"][0]["text"].as_str().unwrap_or_default();
    assert!(told.contains("too large"), "{told}");
    assert!(run.tools.lock().iter().all(|call| call.arguments.len() < 100), "the bytes are not recorded");
    let Ok(Outcome::Reply(reply)) = run.end(said("Here.")).await else { panic!("not a reply") };
    assert_eq!((&*reply.text, reply.attachments.len()), ("Here.", 1));
}

#[tokio::test]
async fn a_call_that_waits_when_the_gateway_stops_is_told_so() {
    let run = Run::begin().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "request_approval", "arguments": {"action": "pay the rent"}}});
    let waiting = run.send(run.request().body(Body::from(body.to_string())).unwrap());
    let stops = async {
        run.asked.notified().await;
        run.stop.cancel();
    };

    let ((status, problem), ()) = tokio::join!(waiting, stops);

    assert_eq!((status, &problem["type"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("urn:rejoinder:problem:stopping")));
}

#[test]
fn the_token_of_a_session_opens_the_run_that_it_has() {
    let runs: Arc<Runs> = Arc::default();
    let tokens: &dyn SessionTokens = &*runs;
    let (session, other) = (tokens.issue(), tokens.issue());
    let opens = |token: &str| match runs.of(token.as_bytes()) {
        Some(Opened::Run(run)) => Some(run.tools().len()),
        Some(Opened::NoRun) => Some(usize::MAX),
        None => None,
    };
    let offered = CallerTools::of(&mut turn("Hi"), RunEvents::channel().0).offered();
    let tools = |count: usize| offered[..count].to_vec();
    assert_eq!([opens(&session), opens("guess")], [Some(usize::MAX), None]);

    let (first, _) = runs.open(tools(1));
    tokens.lend(&session, &first.token());
    assert_eq!([opens(&session), opens(&other)], [Some(1), Some(usize::MAX)]);
    let (second, _) = runs.open(tools(2));
    let token = second.token();
    tokens.lend(&session, &token);
    drop(first);
    assert_eq!(opens(&session), Some(2));
    drop(second);
    assert_eq!(opens(&session), Some(usize::MAX));

    tokens.revoke(&session);
    tokens.lend(&session, &token);
    assert_eq!(opens(&session), None);
}

#[test]
fn no_token_is_shown() {
    let run = Runs::default();
    let (open, _) = Arc::new(run).open(Vec::new());
    let token = open.token();
    let access = ToolAccess { url: "http://127.0.0.1:7420/mcp".into(), tokens: open };

    assert!(!format!("{access:?}").contains(&*token));
}
