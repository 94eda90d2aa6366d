//! Servers that fail, refuse, hang, or answer with something else.

use std::time::Duration;

use rejoinder_agents::OpenAiSection;
use rejoinder_core::{AgentError, AgentFile, AgentRuntime, Attachment, Outcome, RunEvents};
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::with_headers;
use crate::double::{Answer, Piece, Server, agent_with, done, event, finish, raw, run, settings, text_chunk, turn};

const SOON: Duration = Duration::from_millis(50);

fn message(error: Result<Outcome, AgentError>) -> String {
    error.expect_err("it failed").to_string()
}

/// A15: exactly one retry.
#[rstest]
#[case(500)]
#[case(502)]
#[case(503)]
#[case(529)]
#[case(429)]
#[tokio::test]
async fn a_server_that_fails_once_is_asked_once_more(#[case] status: u16) {
    let server = Server::answering([Answer::error(status, "busy"), Answer::says(&["Hi"])]).await;
    assert_eq!(server.run().await.reply(), "Hi");

    let server = Server::answering(vec![Answer::error(status, "busy"); 3]).await;
    let said = message(server.run().await.outcome);
    assert!(said.starts_with(&format!("the agent failed: {status}")) && said.ends_with(": busy"), "{said}");
    assert_eq!(server.requests().len(), 2);
}

#[rstest]
#[case(Answer::error(503, "busy").with("retry-after", "0"), 2)]
#[case(Answer::error(429, "tomorrow").with("retry-after", "3600"), 1)]
#[case(Answer::error(400, "too long"), 1)]
#[case(Answer::error(404, "no such model"), 1)]
#[tokio::test]
async fn nobody_is_asked_again_in_vain(#[case] answer: Answer, #[case] requests: usize) {
    let server = Server::answering([answer, Answer::says(&["Hi"])]).await;
    server.run().await;
    assert_eq!(server.requests().len(), requests);
}

/// B7.
#[tokio::test]
async fn an_error_is_short_and_holds_no_key() {
    let long = format!("Incorrect API key provided: sk-secret.\n{}", "x".repeat(1_000));
    let server = Server::answering([Answer::error(401, &long)]).await;
    let agent = agent_with(OpenAiSection { api_key: Some("sk-secret".into()), ..server.settings() });
    let said = message(run(&agent, turn("Hi")).await.outcome);
    assert!(said.contains("provided: [key]. xxx"), "{said}");
    assert!(said.chars().count() < 400);
    assert!(!format!("{agent:?}").contains("sk-secret"));

    let server = Server::answering([Answer::error(403, "gw-secret may not do this for support")]).await;
    let agent = agent_with(with_headers(&server));
    let said = message(run(&agent, turn("Hi")).await.outcome);
    assert!(said.ends_with("[key] may not do this for support"), "{said}");
    assert!(!format!("{agent:?}").contains("gw-secret"));
}

#[tokio::test]
async fn half_an_answer_is_not_delivered() {
    for cut in [vec![text_chunk("Hello, A"), Piece::Cut], vec![text_chunk("Hello, A")]] {
        let server = Server::answering([Answer::stream(cut), Answer::says(&["Hi"])]).await;
        let ran = server.run().await;
        assert_eq!(ran.drafts, "Hello, A");
        let said = message(ran.outcome);
        assert!(said.contains("the stream was cut off after 8 characters"), "{said}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_before_any_text_is_asked_for_once_more() {
    let cut = Answer::stream([text_chunk(""), Piece::Cut]);
    let server = Server::answering([cut.clone(), Answer::says(&["Hi"])]).await;
    assert_eq!(server.run().await.reply(), "Hi");

    let server = Server::answering([cut.clone(), cut]).await;
    assert!(matches!(server.run().await.outcome, Err(AgentError::Broken(_))));
}

#[tokio::test]
async fn an_error_within_the_stream_is_the_servers_failure() {
    let error = event(&json!({"error": {"message": "out of memory"}}));
    let server = Server::answering([Answer::stream([error.clone()]), Answer::says(&["Hi"])]).await;
    assert_eq!(server.run().await.reply(), "Hi");

    let server = Server::answering([Answer::stream([text_chunk("Yes"), error])]).await;
    let failed = AgentError::Failed("out of memory after 3 characters".into());
    assert_eq!(server.run().await.outcome, Err(failed));
}

/// A9.
#[rstest]
#[case(vec![Piece::Stall])]
#[case(vec![raw(": here\n\n"), text_chunk(""), Piece::Stall])]
#[tokio::test]
async fn a_stream_that_never_begins_is_left(#[case] pieces: Vec<Piece>) {
    let server = Server::answering([Answer::stream(pieces)]).await;
    let settings = OpenAiSection { first_token_timeout: SOON, ..server.settings() };
    let ran = run(&agent_with(settings), turn("Hi")).await;
    assert!(matches!(ran.outcome, Err(AgentError::Stalled(_))), "{ran:?}");
    assert_eq!(server.requests().len(), 1);
}

/// A9.
#[tokio::test]
async fn a_stream_that_stops_is_left() {
    let server = Server::answering([Answer::stream([text_chunk("Hello"), Piece::Stall])]).await;
    let settings = OpenAiSection { idle_timeout: SOON, ..server.settings() };
    let ran = run(&agent_with(settings), turn("Hi")).await;
    assert_eq!(ran.outcome, Err(AgentError::Stalled("no data for 50ms after 5 characters".into())));
}

#[tokio::test]
async fn a_finished_answer_does_not_wait_for_the_usage() {
    let server = Server::answering([Answer::stream([text_chunk("Hi"), finish("stop"), Piece::Stall])]).await;
    let settings = OpenAiSection { idle_timeout: 10 * SOON, ..server.settings() };
    assert_eq!(run(&agent_with(settings), turn("Hi")).await.reply(), "Hi");
}

#[rstest]
#[case(vec![raw("data: {\"choices\": 7}\n\n")])]
#[case(vec![raw(b"data: \xff\xfe\n\n".to_vec()), done()])]
#[case(vec![raw("data: "), raw(vec![b'x'; 5_000_000])])]
#[tokio::test]
async fn what_is_no_answer_is_broken(#[case] pieces: Vec<Piece>) {
    let server = Server::answering([Answer::stream(pieces)]).await;
    assert!(matches!(server.run().await.outcome, Err(AgentError::Broken(_))));
    assert_eq!(server.requests().len(), 1);
}

/// A1, D10: what is no completion is an error that says what came instead, and not silence.
#[rstest]
#[case(Answer::page("text/html; charset=utf-8", "<!doctype html><p>Please log in.</p>"), "text/html")]
#[case(Answer::page("text/plain", "It works!"), "text/plain")]
#[case(Answer::page("application/json", ""), "application/json")]
#[case(Answer::page("application/json", "{\"status\":\"ok\"}"), "application/json")]
#[case(Answer::stream([]), "text/event-stream")]
#[tokio::test]
async fn a_page_in_place_of_an_answer_is_named(#[case] answer: Answer, #[case] named: &str) {
    let server = Server::answering([answer]).await;
    let said = message(server.run().await.outcome);
    assert!(said.contains(named) && said.contains("base_url"), "{said}");
    assert_eq!(server.requests().len(), 1);
}

#[rstest]
#[case::in_two_pieces(Answer::says(&[&"x".repeat(700_000), &"x".repeat(700_000), "never read"]))]
#[case::in_one_piece(Answer::json(200, &json!({"choices": [{"message": {"content": "x".repeat(3_000_000)}}]})))]
#[tokio::test]
async fn an_answer_that_is_too_long_is_cut_and_says_so(#[case] answer: Answer) {
    let server = Server::answering([answer]).await;
    let ran = server.run().await;
    let expected = "x".repeat(1 << 20) + "\n\nThe rest is missing.";
    assert!(ran.drafts == expected && ran.reply() == expected);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address")).parse().expect("a URL");
    drop(listener);
    let agent = agent_with(settings(base_url));
    assert!(matches!(run(&agent, turn("Hi")).await.outcome, Err(AgentError::Unreachable(_))));
}

#[tokio::test]
async fn what_a_server_refuses_is_left_out_from_then_on() {
    let server = Server::answering([
        Answer::error(400, "Unrecognized request argument supplied: stream_options"),
        Answer::error(400, "test-model does not support tools"),
        Answer::says(&["One"]),
        Answer::says(&["Two"]),
    ])
    .await;
    let agent = server.agent();
    assert_eq!(run(&agent, turn("Hi")).await.reply(), "One");
    assert_eq!(run(&agent, turn("Hi")).await.reply(), "Two");

    let requests = server.requests();
    let had = |key: &str| requests.iter().map(|request| request.body.get(key).is_some()).collect::<Vec<_>>();
    assert_eq!(had("stream_options"), [true, false, false, false]);
    assert_eq!(had("tools"), [true, true, false, false]);
}

/// One refusal that sounds like it does not turn the tools off for everyone.
#[tokio::test]
async fn a_refusal_that_leaving_out_does_not_help_teaches_nothing() {
    let refusal = "Content policy: instructions on burglary tools are not allowed";
    let server =
        Server::answering([Answer::error(400, refusal), Answer::error(400, refusal), Answer::says(&["Hello"])]).await;
    let agent = server.agent();
    assert!(message(run(&agent, turn("How?")).await.outcome).contains("burglary"));
    assert_eq!(run(&agent, turn("Hi")).await.reply(), "Hello");

    let tools: Vec<_> = server.requests().iter().map(|request| request.body.get("tools").is_some()).collect();
    assert_eq!(tools, [true, false, true]);
}

#[tokio::test]
async fn a_cancelled_run_ends_at_once() {
    let server = Server::answering([Answer::stream([Piece::Stall])]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (events, _reported) = RunEvents::channel();
    let outcome = server.agent().run(turn("Hi"), events, cancel).await;
    assert_eq!(outcome, Err(AgentError::Failed("the run was cancelled".into())));
}

/// K3.
#[tokio::test]
async fn a_server_that_refuses_pictures_is_asked_again_without_them() {
    let refusal = json!({"error": {"message": "test-model is not a multimodal model"}});
    let server =
        Server::answering([Answer::json(400, &refusal), Answer::says(&["A cat?"]), Answer::says(&["Again?"])]).await;
    let agent = agent_with(OpenAiSection { images: true, ..server.settings() });
    assert!(agent.reads("image/png").is_some());
    let shown = || turn("Look!").with(|turn| turn.message.attachments = vec![picture()]);

    assert_eq!(run(&agent, shown()).await.reply(), "A cat?");
    run(&agent, shown()).await.reply();

    let requests = server.requests();
    let content = |number: usize| &requests[number].body["messages"][1]["content"];
    assert_eq!(content(0)[2]["image_url"]["url"], "data:image/png;base64,YWJj");
    assert_eq!(content(1), r#"{"text":"Look!","files":[{"name":"cat.png","type":"image/png"}]}"#);
    assert_eq!(content(2), content(1), "the refusal was remembered");
    assert!(agent.reads("image/png").is_none() && agent.reads("text/plain").is_some());
}

#[tokio::test]
async fn a_server_that_refuses_sounds_is_asked_again_without_them() {
    let refusal = json!({"error": {"message": "audio input is not supported"}});
    let server = Server::answering([Answer::json(400, &refusal), Answer::says(&["A song?"])]).await;
    let agent = agent_with(OpenAiSection { audio: true, ..server.settings() });
    assert!(agent.reads("audio/mpeg").is_some() && agent.reads("audio/ogg").is_none());
    let attachment = Attachment { name: "a.mp3".into(), media_type: "audio/mpeg".into(), url: "telegram:a".into() };
    let song = AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None };

    let ran = run(&agent, turn("Listen!").with(|turn| turn.message.attachments = vec![song])).await;

    assert_eq!(ran.reply(), "A song?");
    let requests = server.requests();
    let content = |number: usize| &requests[number].body["messages"][1]["content"];
    assert_eq!(content(0)[2], json!({"type": "input_audio", "input_audio": {"data": "YWJj", "format": "mp3"}}));
    assert!(content(1).is_string() && agent.reads("audio/mpeg").is_none(), "{}", content(1));
}

/// An agent is reached if its server says anything but that it fails.
#[rstest]
#[case(Answer::json(200, &json!({"data": [{"id": "m"}]})), true)]
#[case(Answer::error(401, "no"), true)]
#[case(Answer::error(404, "no"), true)]
#[case(Answer::error(503, "overloaded"), false)]
#[tokio::test]
async fn a_probe_asks_for_the_list_of_models(#[case] answer: Answer, #[case] is_reached: bool) {
    let server = Server::answering([answer]).await;

    let probed = server.agent().probe().await.expect("there is a server to ask");

    assert_eq!(probed.is_ok(), is_reached, "{probed:?}");
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/models"]);
}

#[tokio::test]
async fn a_server_that_is_gone_is_unreachable() {
    let agent = agent_with(settings("http://127.0.0.1:1/v1".parse().expect("a URL")));

    assert!(matches!(agent.probe().await, Some(Err(AgentError::Unreachable(_)))));
}

fn picture() -> AgentFile {
    let attachment = Attachment { name: "cat.png".into(), media_type: "image/png".into(), url: "telegram:cat".into() };
    AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None }
}
