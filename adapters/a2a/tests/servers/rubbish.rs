//! Servers that break the protocol: each is an error that says what is wrong, in bounded time and memory.

use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use rejoinder_a2a::A2aSection;
use rejoinder_config::Secret;
use rejoinder_core::{AgentRuntime, conformance::runtime::turn};
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{
    Answer, HTTP_JSON, JSON_RPC, Piece, Server, agent, card, event, raw, run, says, status_event, task, task_event,
    text_event,
};

/// A text of this many bytes.
fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[rstest]
#[case::half_a_line(Answer::stream([raw("data: {\"jsonr")]), "it ended before it had answered")]
#[case::no_json(Answer::stream([raw("data: {\"result\": [}\n\n")]), "cannot be read")]
#[case::no_object(Answer::stream([raw("data: 7\n\n")]), "cannot be read")]
#[case::another_type(Answer::stream([event(&json!({ "task": { "id": 7 } }))]), "cannot be read")]
#[case::no_result(Answer::stream([raw("data: {\"jsonrpc\":\"2.0\"}\n\n")]), "neither a `result` nor an `error`")]
#[case::no_utf8(Answer::stream([raw(b"data: \xff\xfe\n\n".to_vec())]), "not UTF-8")]
#[case::nothing(Answer::stream([]), "it ended before it had answered")]
#[case::empty_events(Answer::stream([event(&json!({})), event(&json!({}))]), "it ended before it had answered")]
#[case::an_error_in_the_stream(
    Answer::stream([raw("data: {\"error\":{\"code\":-32603,\"message\":\"out of memory\"}}\n\n")]),
    "error -32603: out of memory"
)]
#[case::an_error_in_place_of_it(Answer::error(-32_601, "no such method"), "error -32601: no such method")]
#[case::an_error_with_a_status(Answer::error(-32_603, "out of memory").with_status(500), "error -32603: out of memory")]
#[case::another_status(Answer::of("text/plain", vec![raw("busy")]).with_status(503), "503 Service Unavailable: busy")]
#[case::one_object(Answer::result(&json!({ "task": task("COMPLETED", None, Some("x")) })), "answers with one object")]
#[case::a_page(Answer::of("text/html", vec![raw("<p>Hello")]), "no event stream")]
#[case::a_redirect(Answer::of("text/plain", vec![]).with_status(307).with("location", "http://127.0.0.1:9/"), "not followed")]
#[case::a_huge_event(Answer::stream([raw(long(5 << 20))]), "more than 4194304 bytes")]
#[case::a_line_without_end(
    Answer::stream((0..5).map(|_| raw(long(1 << 20))).chain([Piece::Stall])),
    "more than 4194304 bytes"
)]
#[case::half_an_answer(
    Answer::stream([task_event("WORKING"), text_event("Let me"), raw("data: {\"jsonr")]),
    "error -32001: there is no such task"
)]
#[case::half_an_answer_and_a_cut(
    Answer::stream([task_event("WORKING"), text_event("Let me"), raw("data: {\"jsonr"), Piece::Cut]),
    "error -32001: there is no such task"
)]
#[case::a_long_id(Answer::stream([event(&json!({ "task": { "id": long(1001), "contextId": "c" } }))]), "more than 1000 bytes")]
#[case::a_bad_file(
    Answer::stream([event(&json!({ "message": { "parts": [{ "raw": "no base64!" }] } }))]),
    "a file of the agent cannot be sent"
)]
#[tokio::test]
async fn rubbish_is_an_error_that_says_what_it_is(#[case] answer: Answer, #[case] said: &str) {
    let server = Server::streaming(move |request| match request.method() {
        "SendStreamingMessage" => answer.clone(),
        _ => Answer::error(-32_001, "there is no such task"),
    })
    .await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    assert!(finished.error().contains(said), "{}", finished.error());
}

/// A `google.rpc.Status`, as HTTP+JSON tells errors.
fn failure(code: u16, error: &Value) -> Answer {
    Answer::json(&json!({ "error": error })).with_status(code)
}

#[rstest]
#[case::half_a_line(Answer::stream([raw("data: {\"task\"")]), "it ended before it had answered")]
#[case::no_json(Answer::stream([raw("data: {\"task\": [}\n\n")]), "cannot be read")]
#[case::no_object(Answer::stream([raw("data: 7\n\n")]), "cannot be read")]
#[case::another_type(Answer::stream([raw("data: {\"task\": {\"id\": 7}}\n\n")]), "cannot be read")]
#[case::an_envelope(Answer::stream([raw("data: {\"result\": {}}\n\n")]), "it ended before it had answered")]
#[case::an_error_in_the_stream(
    Answer::stream([raw("event: error\ndata: {\"error\":{\"code\":500,\"status\":\"INTERNAL\",\"message\":\"out of memory\"}}\n\n")]),
    "500 INTERNAL: out of memory"
)]
#[case::an_error_in_place_of_it(Answer::error(-32_603, "out of memory"), "error -32603: out of memory")]
#[case::an_error_without_a_reason(failure(503, &json!({ "status": "UNAVAILABLE", "message": "busy" })), "503 UNAVAILABLE: busy")]
#[case::an_error_of_null(failure(500, &json!({ "code": null, "message": null, "details": null })), "the agent failed: 500")]
#[case::another_status(Answer::of("text/plain", vec![raw("busy")]).with_status(503), "503 Service Unavailable: busy")]
#[case::a_huge_error(Answer::of("text/plain", vec![raw(long(5 << 20))]).with_status(404), "404 Not Found: xxx")]
#[case::one_object(
    Answer::of("application/a2a+json", vec![raw(json!({ "task": task("COMPLETED", None, Some("x")) }).to_string())]),
    "answers with one object"
)]
#[case::a_page(Answer::of("text/html", vec![raw("<p>Hello")]), "no event stream")]
#[case::a_redirect(Answer::of("text/plain", vec![]).with_status(307).with("location", "http://127.0.0.1:9/"), "not followed")]
#[case::a_huge_event(Answer::stream([raw(long(5 << 20))]), "more than 4194304 bytes")]
#[tokio::test]
async fn rubbish_over_http_json_is_an_error_that_says_what_it_is(#[case] answer: Answer, #[case] said: &str) {
    let server = Server::with(HTTP_JSON, true, move |_| answer.clone()).await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    let error = finished.error();
    assert!(error.contains(said) && error.len() < 1_000, "{error}");
}

#[rstest]
#[case::huge(Answer::of("application/json", vec![raw(long((4 << 20) + 1))]), "more than 4194304 bytes")]
#[case::no_json(Answer::of("application/json", vec![raw("<html>")]), "cannot be read")]
#[case::nothing(Answer::of("application/json", vec![]), "cannot be read")]
#[case::no_task(Answer::json(&json!({})), "it ended before it had answered")]
#[case::an_error_that_is_done(failure(200, &json!({ "code": 500, "message": "busy" })), "the agent failed: 500: busy")]
#[case::an_id_that_is_no_id(Answer::json(&json!({ "task": { "id": ".." } })), "cannot be part of a URL")]
#[tokio::test]
async fn a_result_over_http_json_that_is_none_says_what_it_is(#[case] answer: Answer, #[case] said: &str) {
    let server = Server::with(HTTP_JSON, false, move |_| answer.clone()).await;

    let error = run(&agent(server.section()), turn("Hi")).await.error();

    assert!(error.contains(said), "{error}");
}

#[rstest]
#[case::not_there(Answer::of("text/plain", vec![raw("nothing here")]).with_status(404), "404 Not Found: nothing here")]
#[case::no_json(Answer::of("application/json", vec![raw("<html>")]), "its card cannot be read")]
#[case::huge(Answer::of("application/json", vec![raw(long(256 * 1024 + 1))]), "more than 262144 bytes")]
#[case::a_redirect(Answer::of("text/plain", vec![]).with_status(302).with("location", "http://127.0.0.1:9/"), "not followed")]
#[case::another_host(Answer::json(&card("http://127.0.0.2/", JSON_RPC, true)), "http://127.0.0.2/, which is at another address")]
#[case::nothing(Answer::json(&json!({})), "names no interface")]
#[tokio::test]
async fn a_card_that_cannot_be_used_stops_every_request(#[case] answer: Answer, #[case] said: &str) {
    let server = Server::directed(move |request, _| {
        assert_eq!(request.method(), "", "only the card is asked for");
        answer.clone()
    })
    .await;
    let agent = agent(server.section());

    let error = run(&agent, turn("Hi")).await.error();

    assert!(error.starts_with("the agent cannot be reached") && error.contains(said), "{error}");
    assert!(agent.probe().await.is_some_and(|found| found.is_err()));
}

#[rstest]
#[tokio::test]
async fn the_secrets_are_sent_and_are_in_no_error(#[values(JSON_RPC, HTTP_JSON)] binding: &'static str) {
    let server = Server::with(binding, true, |request| {
        let sent = |name| request.headers[name].to_str().expect("a text").to_owned();
        Answer::error(-32_603, &format!("{} and {} are wrong", sent("authorization"), sent("x-tenant")))
    })
    .await;
    let headers = [("X-Tenant".to_owned(), Secret::from("tenant-secret"))].into();
    let section = A2aSection { token: Some("token-secret".into()), headers, ..server.section() };

    let finished = run(&agent(section), turn("Hi")).await;

    assert_eq!(finished.error(), "the agent failed: error -32603: Bearer [key] and [key] are wrong");
    let sent = [&server.requests("")[0].headers, &server.requests("SendStreamingMessage")[0].headers];
    let are_right = |sent: &HeaderMap| sent["authorization"] == "Bearer token-secret" && sent["a2a-version"] == "1.0";
    assert!(sent.into_iter().all(are_right), "{sent:?}");
}

/// An error of HTTP+JSON has a name of the server's choice, in capital letters.
#[tokio::test]
async fn a_secret_is_not_in_the_name_of_an_error() {
    let server = Server::with(HTTP_JSON, true, |request| {
        let sent = request.headers["authorization"].to_str().expect("a text").to_owned();
        failure(500, &json!({ "status": sent, "message": "no" }))
    })
    .await;
    let section = A2aSection { token: Some("token-secret".into()), ..server.section() };

    assert_eq!(run(&agent(section), turn("Hi")).await.error(), "the agent failed: 500: no");
}

#[rstest]
#[case::before_the_response(vec![Piece::Stall], true)]
#[case::in_the_middle(vec![task_event("WORKING"), text_event("Let me"), Piece::Stall], false)]
#[tokio::test]
async fn a_server_that_hangs_is_left(#[case] pieces: Vec<Piece>, #[case] is_first: bool) {
    let server = Server::streaming(move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(pieces.clone()),
        _ => Answer::result(&task("CANCELED", None, None)),
    })
    .await;
    let idle_timeout = Duration::from_millis(200);
    let began = Instant::now();

    let finished = run(&agent(A2aSection { idle_timeout, ..server.section() }), turn("Hi")).await;

    assert!(finished.error().contains("nothing came for 200ms (`idle_timeout`)"), "{}", finished.error());
    assert!(began.elapsed() < Duration::from_secs(5));
    if !is_first {
        server.until("CancelTask").await;
    }
}

/// It has the request, and nobody knows what it does with it.
#[rstest]
#[case::no_response(true, Answer::silence(), "no response for 200ms")]
#[case::no_response_without_a_stream(false, Answer::silence(), "no response for 200ms")]
#[case::half_a_response(
    false,
    Answer::of("application/json", vec![raw("{\"result\":"), Piece::Stall]),
    "has not ended within 200ms"
)]
#[tokio::test]
async fn a_server_that_does_not_respond_is_left(#[case] streams: bool, #[case] answer: Answer, #[case] said: &str) {
    let server = Server::with(JSON_RPC, streams, move |_| answer.clone()).await;
    let response_timeout = Duration::from_millis(200);
    let began = Instant::now();

    let finished = run(&agent(A2aSection { response_timeout, ..server.section() }), turn("Hi")).await;

    assert!(finished.error().contains(said), "{}", finished.error());
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// Its machine takes connections, and no program reads them.
#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_not_reached() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address")).parse().expect("a URL");

    let error = run(&agent(A2aSection { url, ..A2aSection::default() }), turn("Hi")).await.error();

    let said = "the agent cannot be reached: its card cannot be read: the agent stalled: no response for 10s";
    assert_eq!(error, said);
}

/// An agent that never stops is stopped, also in a stream that follows another one: the answer has what there is room for. The state of
/// its task may not tell that.
#[rstest]
#[case::in_its_first_stream(false, false)]
#[case::in_another_stream(true, false)]
#[case::with_a_stale_state(true, true)]
#[tokio::test]
async fn an_endless_answer_ends_the_run_and_its_task(#[case] is_followed: bool, #[case] is_stale: bool) {
    let flood = || (0..20).map(|_| text_event(&long(64 * 1024))).chain([Piece::Stall]);
    let mut asked = 0;
    let server = Server::streaming(move |request| match request.method() {
        "SendStreamingMessage" if is_followed => Answer::stream([task_event("WORKING"), Piece::Cut]),
        "SendStreamingMessage" => Answer::stream([task_event("WORKING")].into_iter().chain(flood())),
        "SubscribeToTask" => Answer::stream(flood()),
        "GetTask" => {
            asked += 1;
            let text = (asked > 1 && !is_stale).then(|| long((1 << 20) + 1));
            Answer::result(&task("WORKING", None, text.as_deref()))
        }
        _ => Answer::result(&task("CANCELED", None, None)),
    })
    .await;
    let idle_timeout = Duration::from_secs(5);

    let finished = run(&agent(A2aSection { idle_timeout, ..server.section() }), turn("Hi")).await;

    let text = finished.text();
    assert!(text.len() < 1_100_000 && text.ends_with("\n\nThe rest is missing."), "{}", text.len());
    server.until("CancelTask").await;
}

/// Tokens of a flood are not all kept: an answer has an end, and says that the rest is missing.
#[tokio::test]
async fn a_flood_is_cut() {
    let server = Server::streaming(|_| {
        let texts = (0..40).map(|_| text_event(&long(64 * 1024)));
        Answer::stream([task_event("WORKING")].into_iter().chain(texts).chain([status_event("COMPLETED", None)]))
    })
    .await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    let text = finished.text();
    assert!(text.len() < 1_100_000 && text.ends_with("\n\nThe rest is missing."), "{}", text.len());
    assert_eq!(server.requests("CancelTask").len(), 0, "the agent has ended its task");
}

/// A later version may say more.
#[tokio::test]
async fn what_is_not_known_is_left_out() {
    let server = Server::streaming(|_| {
        let parts: Value = json!([{ "text": "Hi." }, { "hologram": "…" }, { "text": null, "url": null }]);
        let artifact = json!({ "artifactId": "a", "parts": parts, "extensions": null });
        let later = json!({ "artifactUpdate": { "taskId": "t1", "contextId": "c1", "artifact": artifact, "append": null } });
        let other = json!({ "artifactUpdate": { "taskId": "t2", "contextId": "c1", "artifact": { "artifactId": "b", "parts": [{ "text": "no" }] } } });
        Answer::stream([
            raw(": a comment\n\n"),
            task_event("PONDERING"),
            event(&later),
            event(&other),
            event(&json!({ "telepathy": {} })),
            status_event("COMPLETED", None),
            raw("data: what comes after the end is not read\n\n"),
        ])
    })
    .await;

    assert_eq!(run(&agent(server.section()), turn("Hi")).await.text(), "Hi.");
}

/// The next turn of an agent that was broken works.
#[tokio::test]
async fn a_broken_agent_is_asked_again_by_the_next_turn() {
    let mut calls = 0;
    let server = Server::streaming(move |request| match request.method() {
        "SendStreamingMessage" => {
            calls += 1;
            if calls == 1 { Answer::stream([Piece::Cut]) } else { says(&["Better."]) }
        }
        _ => Answer::error(-32_001, "there is no such task"),
    })
    .await;
    let agent = agent(server.section());

    assert!(run(&agent, turn("Hi")).await.outcome.is_err());
    assert_eq!(run(&agent, turn("Hi")).await.text(), "Better.");
}
