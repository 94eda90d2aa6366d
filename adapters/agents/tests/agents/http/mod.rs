//! Services that answer.

mod conformance;
mod examples;

use std::time::Duration;

use rejoinder_agents::{Http, HttpSection};
use rejoinder_core::{AgentError, AgentRuntime, Cost, Currency, Outcome, Reply, Usage};
use rstest::rstest;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::double::{Answer, FinishedRun, Piece, Server, client, notice, raw, run, turn};

const SECRET: &str = "whsec_dGhlLWtleS1vZi10aGUtdGVzdHMtb2YtYS1yZWxvYWQ=";
const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";

fn section(server: &Server) -> HttpSection {
    let url = format!("{}/turns", server.base_url).parse().expect("a URL");
    HttpSection { url, secret: Some(SECRET.into()), ..HttpSection::default() }
}

fn agent(section: HttpSection) -> Http {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    Http::new("main".into(), section, client.build().expect("a client"))
}

fn object(object: &Value) -> Piece {
    raw(format!("{object}\n"))
}

async fn run_with(answer: Answer) -> FinishedRun {
    let server = Server::answering([answer]).await;
    run(&agent(section(&server)), turn("Hi")).await
}

#[tokio::test]
async fn the_turn_is_posted_once_with_a_signature_of_the_run() {
    let server = Server::answering([Answer::json(200, &json!({"reply": "Good day."}))]).await;
    let agent = agent(section(&server));
    let turn = turn("Hi").with(|turn| turn.attempt = 2);
    let run = run(&agent, turn.clone()).await;

    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!(request.headers["webhook-id"].to_str().unwrap(), format!("{}-2", turn.turn));
    assert_eq!(request.headers["webhook-timestamp"], "1700000000");
    let signed = Webhook::new(SECRET).unwrap().sign(&format!("{}-2", turn.turn), 1_700_000_000, &request.bytes);
    assert_eq!(request.headers["webhook-signature"].to_str().unwrap(), signed.unwrap());
    assert_eq!(request.body["text"], "Hi");
    assert!(run.shown.clone().expect("the input").messages.contains("\"text\":\"Hi\""));
    assert_eq!(run.reply(), "Good day.");
}

#[tokio::test]
async fn a_change_of_a_session_is_posted_with_a_signature_until_the_service_has_done_it() {
    let server = Server::answering([Answer::error(503, "not now"), Answer::empty(204)]).await;
    let agent = agent(HttpSection { sessions: true, ..section(&server) });
    let notice = notice();

    let refused = agent.session_changed(notice.clone()).await;
    assert!(matches!(refused, Err(AgentError::Refused { .. })), "{refused:?}");
    assert_eq!(agent.session_changed(notice.clone()).await, Ok(()));

    let [first, again] = &server.requests()[..] else { panic!("two requests") };
    let removed = notice.change.turn().expect("a turn");
    let said =
        json!({ "session_id": notice.session.to_string(), "change": "turn_removed", "turn_id": removed.to_string() });
    assert_eq!(again.body, json!({ "session_changed": said }));
    let id = again.headers["webhook-id"].to_str().unwrap();
    assert_eq!(first.headers["webhook-id"], id, "the same change has the same id");
    let seconds = again.headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
    let signed = Webhook::new(SECRET).unwrap().sign(id, seconds, &again.bytes).unwrap();
    assert_eq!(again.headers["webhook-signature"].to_str().unwrap(), signed);
}

#[tokio::test]
async fn without_a_secret_there_is_no_signature() {
    let server = Server::answering([Answer::empty(204)]).await;
    let agent = agent(HttpSection { secret: None, ..section(&server) });
    let outcome = run(&agent, turn("Hi")).await.outcome;

    assert_eq!(outcome, Ok(Outcome::Reply(Reply::text(""))));
    assert!(!server.requests()[0].headers.contains_key("webhook-signature"));
}

#[rstest]
#[case::text("Good day.", Answer::page("text/plain; charset=utf-8", "Good day."))]
#[case::an_object("Good", Answer::json(200, &json!({"text": "Good", "reply": "Good day."})))]
#[case::lines("Good day.", Answer::of(LINES, [object(&json!({"text": "Good"})), raw("{\"te"), raw("xt\": \" day.\"}\r\n"), raw("{\"end\": true}")]))]
#[case::events("Good day.", Answer::of(EVENTS, [
    raw(": hello\n\nevent: text\ndata: {\"text\":\ndata: \"Good\"}\n\ndata:"),
    raw("{\"text\": \" day.\"}\r\n\r\ndata: {\"end\": true}\n\n"),
    Piece::Stall,
]))]
#[tokio::test]
async fn an_answer_comes_in_four_forms(#[case] drafts: &str, #[case] answer: Answer) {
    let run = run_with(answer).await;
    assert_eq!(run.drafts, drafts);
    assert_eq!(run.reply(), "Good day.");
}

#[tokio::test]
async fn tools_and_tokens_are_reported() {
    let cost = json!({"amount": 0.25, "currency": "USD"});
    let usage = json!({"usage": {"input_tokens": 7, "output_tokens": 3, "cost": cost}});
    let tool = json!({"tool": {"name": "weather", "result": "sunny"}});
    let run = run_with(Answer::of(LINES, [object(&tool), object(&usage), object(&json!({"react": "👍"}))])).await;

    assert_eq!((run.usage, run.tools), (Some(Usage { input_tokens: 7, output_tokens: 3 }), vec!["weather".to_owned()]));
    assert_eq!(run.costs, [Cost { micros: 250_000, currency: Currency::USD }]);
    assert_eq!(run.outcome, Ok(Outcome::React("👍".into())));
}

#[rstest]
#[case::half_an_object(Answer::page("application/json", "{\"reply\": \"Go"), "it is cut off")]
#[case::no_end(Answer::of(LINES, [object(&json!({"text": "Half"}))]), "it ended after 4 characters without")]
#[case::no_end_of_events(Answer::of(EVENTS, [raw("data: {\"end\": true}\n")]), "it ended without an object")]
#[case::cut(Answer::of(LINES, [object(&json!({"text": "Half"})), Piece::Cut]), "the response was cut off after 4 characters")]
#[case::half_a_text(Answer::of("text/plain", [raw("Half"), Piece::Cut]), "the response was cut off after 4 characters")]
#[case::a_page(Answer::page("text/html", "<p>Sign in"), "the response has text/html, and none of")]
#[case::nothing(Answer::empty(200), "the response has no content type")]
#[tokio::test]
async fn an_answer_that_is_not_as_described_is_broken(#[case] answer: Answer, #[case] why: &str) {
    let Err(AgentError::Broken(said)) = run_with(answer).await.outcome else { panic!("it is not broken") };
    assert!(said.starts_with(why), "{said}");
}

/// Runs a turn whose response is these bytes and the end of the connection.
async fn run_with_bytes(response: &'static str) -> FinishedRun {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address")).parse().expect("a URL");
    let answering = async move {
        let (mut connection, _) = listener.accept().await.expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            connection.read_buf(&mut request).await.expect("the turn");
        }
        connection.write_all(response.as_bytes()).await.expect("it reads the response");
        connection.shutdown().await.expect("it was open");
        // A connection that is closed with unread bytes is reset.
        while connection.read_buf(&mut request).await.is_ok_and(|read| read > 0) {}
    };
    let agent = agent(HttpSection { url, ..HttpSection::default() });
    tokio::join!(run(&agent, turn("Hi")), answering).0
}

#[rstest]
#[case::of_http_1_0("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nHalf")]
#[case::of_http_1_1("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nHalf")]
#[tokio::test]
async fn a_text_that_only_the_connection_ends_is_refused(#[case] response: &'static str) {
    let run = run_with_bytes(response).await;
    let Err(AgentError::Broken(why)) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(why.contains("`Content-Length`") && run.ever.is_empty(), "{why} {}", run.ever);
}

#[rstest]
#[case::text("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nHalf", Ok("Half"))]
#[case::an_object("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"reply\": \"Half\"}", Ok("Half"))]
#[case::half_an_object("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"reply\": \"Ha", Err(()))]
#[case::half_a_text("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nHalf", Err(()))]
#[tokio::test]
async fn an_answer_that_shows_its_end_may_end_with_its_connection(
    #[case] response: &'static str,
    #[case] reply: Result<&str, ()>,
) {
    let outcome = run_with_bytes(response).await.outcome;
    match reply {
        Ok(text) => assert_eq!(outcome, Ok(Outcome::Reply(Reply::text(text)))),
        Err(()) => assert!(matches!(outcome, Err(AgentError::Broken(_))), "{outcome:?}"),
    }
}

#[rstest]
#[case(Answer::error(503, "try\n later"), "503 Service Unavailable", "later")]
#[case(Answer::empty(302).with("location", "http://127.0.0.1:9/"), "302 Found", "it says no more")]
#[tokio::test]
async fn another_status_is_a_refusal_and_is_not_tried_again(
    #[case] answer: Answer,
    #[case] status: &str,
    #[case] why: &str,
) {
    let server = Server::answering([answer]).await;
    let outcome = run(&agent(section(&server)), turn("Hi")).await.outcome;

    let Err(AgentError::Refused { status: said, message }) = outcome else { panic!("it is not refused") };
    assert!(said == status && message.contains(why), "{said}: {message}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable() {
    let url = "http://127.0.0.1:9/secret-path".parse().expect("a URL");
    let outcome = run(&agent(HttpSection { url, ..HttpSection::default() }), turn("Hi")).await.outcome;

    let Err(AgentError::Unreachable(why)) = outcome else { panic!("it is reachable") };
    assert!(!why.contains("secret-path"), "{why}");
}

#[tokio::test]
async fn a_service_may_be_slow_within_three_limits() {
    let hangs = || Answer::of(LINES, [object(&json!({"text": "Half"})), Piece::Stall]);
    let server = Server::directed(move |_| hangs()).await;
    let short = Duration::from_millis(100);
    for (section, why) in [
        (HttpSection { idle_timeout: short, ..section(&server) }, "no data for 100ms after 4 characters"),
        (HttpSection { timeout: Some(short), ..section(&server) }, "the answer has not ended within 100ms"),
    ] {
        let outcome = run(&agent(section), turn("Hi")).await.outcome;
        assert_eq!(outcome, Err(AgentError::Stalled(why.to_owned())));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address")).parse().expect("a URL");
    let silent = agent(HttpSection { url, response_timeout: short, ..HttpSection::default() });
    let outcome = run(&silent, turn("Hi")).await.outcome;
    assert_eq!(outcome, Err(AgentError::Stalled("no response for 100ms".to_owned())));
}

#[tokio::test]
async fn a_flood_of_text_is_cut_off() {
    let piece = raw("x".repeat(64 * 1024));
    let reply = run_with(Answer::of("text/plain", std::iter::repeat_n(piece, 1600))).await.reply();
    assert!(reply.ends_with("\n\nThe rest is missing.") && reply.len() < 1024 * 1024 + 100, "{} bytes", reply.len());
}

#[tokio::test]
async fn a_line_without_an_end_is_broken() {
    let piece = raw("x".repeat(1024 * 1024));
    let outcome = run_with(Answer::of(LINES, std::iter::repeat_n(piece, 100))).await.outcome;
    assert_eq!(outcome, Err(AgentError::Broken("a line is longer than 16777216 bytes".to_owned())));
}

#[tokio::test]
async fn a_probe_is_a_connection_without_a_request() {
    let server = Server::answering([]).await;
    let service = agent(section(&server));
    assert_eq!(service.probe().await, None, "a proxy may be in between");

    assert_eq!(service.with_probe().probe().await, Some(Ok(())));
    assert!(server.requests().is_empty());
}

#[rstest]
#[case("http://127.0.0.1:1/turns")]
#[case("http://[::1]:1/turns")]
#[case("http://localhost:1")]
#[tokio::test]
async fn a_probe_of_a_service_that_is_gone_fails(#[case] url: &str) {
    let section = HttpSection { url: url.parse().expect("a URL"), ..HttpSection::default() };

    let probed = agent(section).with_probe().probe().await;

    let Some(Err(AgentError::Unreachable(why))) = probed else { panic!("{probed:?}") };
    assert!(!why.contains("lookup"), "{why}");
}

#[test]
fn the_address_is_shown_without_what_may_be_secret() {
    let url = "https://example.org/turns?key=hunter2".parse().expect("a URL");
    let agent = Http::new("main".into(), HttpSection { url, ..HttpSection::default() }, client());
    assert_eq!(agent.describe(), "http at https://example.org/turns");
    assert!(!format!("{agent:?}").contains("hunter2"));
}
