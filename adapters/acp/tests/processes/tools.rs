//! A real process that calls the gateway's tools over HTTP.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use rejoinder_acp::{Acp, AcpSection};
use rejoinder_core::{
    AgentError, AgentRuntime as _, AgentTurn, Outcome, RunEvent, RunEvents, conformance::runtime::turn,
};
use rejoinder_mcp::{PATH, RouteSettings, Runs, WithTools, routes};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

use super::supervisor;

/// An agent with tools, and their server.
struct Gateway {
    agent: WithTools,
    router: Router,
    /// The chat.
    hi: AgentTurn,
    _folder: TempDir,
    _stop: DropGuard,
}

impl Gateway {
    async fn with(arguments: &[&str]) -> Self {
        let (runs, stop) = (Arc::<Runs>::default(), CancellationToken::new());
        let router = routes(RouteSettings {
            runs: Arc::clone(&runs),
            guesses: Arc::default(),
            body_timeout: Duration::from_secs(5),
            origins: Vec::new(),
            stop_waiting: stop.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}{PATH}", listener.local_addr().expect("an address"));
        tokio::spawn(axum::serve(listener, router.clone()).into_future());
        let folder = tempfile::tempdir().expect("a folder");
        let program = [env!("CARGO_BIN_EXE_rejoinder-acp-program"), "agent"];
        let section = AcpSection {
            command: program.iter().chain(arguments).map(ToString::to_string).collect(),
            cwd: Some(folder.path().display().to_string()),
            mcp: true,
            ..AcpSection::default()
        };
        let acp = Arc::new(Acp::new("main".into(), section, supervisor()).with_tools(Arc::clone(&runs) as _));
        let (keeps, ends) = (Arc::clone(&acp), stop.clone());
        tokio::spawn(async move { keeps.keep_running(ends).await });
        let agent = WithTools::new(acp, runs, &url);
        Self { agent, router, hi: turn("Hi"), _folder: folder, _stop: stop.drop_guard() }
    }

    async fn run(&self, text: &str) -> Result<Outcome, AgentError> {
        let (events, mut reported) = RunEvents::channel();
        let turn = turn(text).with(|turn| turn.place.session = self.hi.place.session);
        let read = async {
            while let Some(event) = reported.recv().await {
                match event {
                    RunEvent::Listen(answer) => drop(answer.send(Vec::new())),
                    RunEvent::Remember(_, answer) => drop(answer.send(Ok(()))),
                    _ => {}
                }
            }
        };
        tokio::join!(self.agent.run(turn, events, CancellationToken::new()), read).0
    }

    async fn says(&self, text: &str) -> String {
        match self.run(text).await {
            Ok(Outcome::Reply(reply)) => reply.text,
            other => panic!("no reply: {other:?}"),
        }
    }

    async fn ask(&self, token: &str, method: &str) -> (StatusCode, Value) {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {} }).to_string();
        let request = Request::post(PATH)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("host", "127.0.0.1:7420")
            .header("mcp-protocol-version", "2025-11-25")
            .body(Body::from(body));
        let response = self.router.clone().oneshot(request.expect("a request")).await.expect("a response");
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

#[tokio::test]
async fn a_session_calls_the_tools_of_each_of_its_runs_and_of_none_between_them() {
    let gateway = Gateway::with(&[]).await;

    assert_eq!(gateway.run("Please react").await, Ok(Outcome::React("👍".into())));
    let token = gateway.says("Your token").await;
    assert_eq!(gateway.run("Again, react").await, Ok(Outcome::React("👍".into())));
    assert_eq!(gateway.says("Your token").await, token, "the session goes on");

    let (status, refused) = gateway.ask(&token, "tools/list").await;
    assert_eq!((status, &refused["id"], &refused["error"]["code"]), (StatusCode::OK, &7.into(), &(-32_600).into()));
    let why = refused["error"]["message"].as_str().expect("a text");
    assert!(why.contains("no turn of this session is answered now"), "{why}");
}

#[tokio::test]
async fn a_session_that_is_opened_again_in_another_process_has_another_token() {
    let gateway = Gateway::with(&[]).await;
    let former = gateway.says("Your token").await;

    gateway.run("Now die").await.expect_err("its process has ended");
    let token = gateway.says("Your token").await;

    assert_ne!(token, former);
    assert_eq!(gateway.ask(&former, "tools/list").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(gateway.ask(&token, "tools/list").await.0, StatusCode::OK);
    assert_eq!(gateway.run("Please react").await, Ok(Outcome::React("👍".into())));
}

#[tokio::test]
async fn an_agent_without_servers_over_http_is_told_none() {
    assert_eq!(Gateway::with(&["bare"]).await.says("How many").await, "0");
}
