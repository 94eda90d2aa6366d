//! The `anthropic` runtime against a server with scripted answers: what differs from `openai`.

use rejoinder_agents::{AnthropicSection, ModelSection, ModelStatus};
use rejoinder_core::{AgentError, AgentFile, AgentRuntime, Attachment, Outcome, SendResult, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    claude::{agent, agent_with, call, calls, end, event, says, section, start, text, thought},
    double::{Answer, FinishedRun, Piece, Server, client, run, run_with, turn},
};

async fn ran(server: &Server) -> FinishedRun {
    run(&agent(server), turn("Hi")).await
}

fn message(outcome: Result<Outcome, AgentError>) -> String {
    outcome.expect_err("it failed").to_string()
}

#[tokio::test]
async fn an_answer_is_streamed_and_then_given_whole() {
    let server = Server::answering([says(&["Hel", "lo, ", "Ada."])]).await;
    let ran = ran(&server).await;
    assert_eq!(ran.drafts, "Hello, Ada.");
    assert_eq!(ran.usage, Some(Usage { input_tokens: 42, output_tokens: 5 }), "what is cached is read, too");
    assert_eq!(ran.reply(), "Hello, Ada.");
}

#[tokio::test]
async fn the_server_is_told_the_key_the_version_and_the_turn() {
    let server = Server::answering([says(&["Hi"])]).await;
    let headers = [("anthropic-beta".to_owned(), "context-1m-2025-08-07".into())].into();
    let agent = agent_with(AnthropicSection { api_key: Some("sk-ant-secret".into()), headers, ..section(&server) });
    run(&agent, turn("Hi").with(|turn| turn.attempt = 2)).await.reply();

    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/messages");
    for (name, value) in [
        ("x-api-key", "sk-ant-secret"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "context-1m-2025-08-07"),
        ("x-rejoinder-attempt", "2"),
    ] {
        assert_eq!(request.headers[name], value);
    }
    assert!(request.headers.get("authorization").is_none() && !format!("{agent:?}").contains("sk-ant-secret"));
    assert!(agent.describe().starts_with("anthropic claude at http://127.0.0.1:"), "{}", agent.describe());
}

#[tokio::test]
async fn the_bytes_of_a_file_are_not_given_back() {
    let file = json!({ "name": "a.txt", "media_type": "text/plain", "data": "aGk=" });
    let server = Server::answering([calls("", &[("send_file", file)]), says(&["Here."])]).await;
    let ran = ran(&server).await;

    let given_back = server.requests()[1].body["messages"][1]["content"][0]["input"].clone();
    assert_eq!((&given_back["name"], &given_back["data"]), (&json!("a.txt"), &json!("[4 bytes of Base64]")));
    let Ok(Outcome::Reply(reply)) = ran.outcome else { panic!("not a reply") };
    assert_eq!((&*reply.text, &*reply.attachments[0].url), ("Here.", "data:text/plain;base64,aGk="));
}

/// A7.
#[tokio::test]
async fn a_thought_is_not_shown_and_goes_back_with_its_signature_when_a_result_follows() {
    let first = [start(), thought(0), text(1, "Let me see."), call(2, "web_search", &json!({})), end("tool_use")];
    let server = Server::answering([Answer::stream(first), says(&["I cannot search."])]).await;
    let agent = agent_with(AnthropicSection { thinking: Some(1024), ..section(&server) });
    let ran = run(&agent, turn("Hi")).await;

    let requests = server.requests();
    assert_eq!(requests[0].body["thinking"], json!({ "type": "enabled", "budget_tokens": 1024 }));
    let expected = json!([
        { "type": "thinking", "thinking": "The person greets.", "signature": "EqQBCg" },
        { "type": "text", "text": "Let me see." },
        { "type": "tool_use", "id": "toolu_2", "name": "web_search", "input": {} },
    ]);
    let messages = &requests[1].body["messages"];
    assert_eq!(messages[1], json!({ "role": "assistant", "content": expected }));
    let result = &messages[2]["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("toolu_2")));
    assert!(result["content"].as_str().is_some_and(|told| told.starts_with("error: ")), "{result}");
    assert_eq!(ran.ever, "Let me see.\n\nI cannot search.");
    assert_eq!(ran.reply(), "Let me see.\n\nI cannot search.");
}

#[tokio::test]
async fn a_choice_needs_no_further_request_and_a_message_that_was_not_sent_does() {
    let server = Server::answering([calls("", &[("react", json!({ "emoji": "👍" }))])]).await;
    assert_eq!(ran(&server).await.outcome, Ok(Outcome::React("👍".into())));
    assert_eq!(server.requests().len(), 1);

    let server = Server::answering([calls("", &[("send", json!({ "text": "Done!" }))]), says(&["Fine."])]).await;
    let ran = run_with(&agent(&server), turn("Hi"), |_| SendResult::Suppressed).await;
    assert_eq!((ran.sent.clone(), ran.reply()), (vec!["Done!".to_owned()], "Fine.".to_owned()));
}

/// The end of an answer without room is missing, as of one that is too long.
#[tokio::test]
async fn an_answer_that_reaches_its_most_tokens_says_that_its_end_is_missing() {
    let server = Server::answering([Answer::stream([start(), text(0, "Once upon"), end("max_tokens")])]).await;
    let expected = "Once upon\n\nThe rest is missing.";
    let cut = ran(&server).await;
    assert_eq!(cut.drafts, expected);
    assert_eq!(cut.reply(), expected);

    let server = Server::answering([Answer::stream([start(), thought(0), end("max_tokens")])]).await;
    let said = message(ran(&server).await.outcome);
    assert!(said.contains("ended before any text (max_tokens)"), "{said}");
}

#[tokio::test]
async fn a_refusal_is_an_error_and_not_asked_again() {
    let server = Server::answering([Answer::stream([start(), end("refusal")]), says(&["Hi"])]).await;
    let run = ran(&server).await;
    let message = "the model refuses to answer".to_owned();
    assert_eq!(run.usage, Some(Usage { input_tokens: 42, output_tokens: 5 }));
    assert_eq!(run.outcome, Err(AgentError::Refused { status: "refusal".to_owned(), message }));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_paused_answer_goes_on_with_what_it_had() {
    let paused = || Answer::stream([start(), text(0, "First,"), end("pause_turn")]);
    let server = Server::answering([paused(), says(&["second."])]).await;
    assert_eq!(ran(&server).await.reply(), "First,\n\nsecond.");
    let messages = server.requests()[1].body["messages"].clone();
    assert_eq!(messages[1], json!({ "role": "assistant", "content": [{ "type": "text", "text": "First," }] }));

    let server = Server::answering(vec![paused(); 10]).await;
    assert!(message(ran(&server).await.outcome).contains("paused"), "half an answer is none");
    assert_eq!(server.requests().len(), 5);
}

// Failures.

fn overloaded() -> Value {
    json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } })
}

/// A15: exactly one retry.
#[rstest]
#[case::status(Answer::json(529, &overloaded()))]
#[case::rate_limit(Answer::json(429, &overloaded()).with("retry-after", "0"))]
#[case::within_the_stream(Answer::stream([start(), event(&overloaded())]))]
#[case::cut_before_any_text(Answer::stream([start(), Piece::Cut]))]
#[tokio::test]
async fn a_server_that_fails_once_is_asked_once_more(#[case] failure: Answer) {
    let server = Server::answering([failure.clone(), says(&["Hi"])]).await;
    assert_eq!(ran(&server).await.reply(), "Hi");

    let server = Server::answering([failure.clone(), failure, says(&["Hi"])]).await;
    assert!(ran(&server).await.outcome.is_err());
    assert_eq!(server.requests().len(), 2);
}

#[rstest]
#[case(Answer::json(429, &overloaded()).with("retry-after", "3600"))]
#[case(Answer::json(400, &overloaded()))]
#[tokio::test]
async fn nobody_is_asked_again_in_vain(#[case] failure: Answer) {
    let server = Server::answering([failure, says(&["Hi"])]).await;
    let said = message(ran(&server).await.outcome);
    assert!(said.ends_with("Overloaded"), "{said}");
    assert_eq!(server.requests().len(), 1);
}

/// Also if the model says that it has finished: only the last event ends a stream.
#[tokio::test]
async fn half_an_answer_is_not_delivered() {
    let finished = event(&json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }));
    for rest in [vec![Piece::Cut], vec![], vec![finished]] {
        let pieces = [start(), text(0, "Hello, A")].into_iter().chain(rest);
        let server = Server::answering([Answer::stream(pieces), says(&["Hi"])]).await;
        let ran = ran(&server).await;
        assert_eq!(ran.drafts, "Hello, A");
        let Err(AgentError::Broken(why)) = ran.outcome else { panic!("{:?}", ran.outcome) };
        assert!(why.contains("cut off after 8 characters"), "{why}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[rstest]
#[case(Answer::page("text/html", "<!doctype html><p>Please log in.</p>"))]
#[case(Answer::stream([]))]
#[case(Answer::says(&["Hi"]))]
#[tokio::test]
async fn what_is_no_answer_is_broken(#[case] answer: Answer) {
    let server = Server::answering([answer]).await;
    let outcome = ran(&server).await.outcome;
    assert!(matches!(outcome, Err(AgentError::Broken(_))), "{outcome:?}");
}

/// K3.
#[tokio::test]
async fn a_server_that_refuses_pictures_is_asked_again_without_them() {
    let refusal = json!({ "type": "error", "error": { "message": "this model does not support images" } });
    let server = Server::answering([Answer::json(400, &refusal), says(&["A cat?"])]).await;
    let agent = agent(&server);
    let attachment = Attachment { name: "cat.png".into(), media_type: "image/png".into(), url: "telegram:cat".into() };
    let picture = AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None };
    assert_eq!(agent.reads("image/png"), Some(3_932_160), "the API takes no larger one");

    run(&agent, turn("Look!").with(|turn| turn.message.attachments = vec![picture])).await.reply();

    let requests = server.requests();
    let blocks = |number: usize| requests[number].body["messages"][0]["content"].as_array().map(Vec::len);
    assert_eq!((blocks(0), blocks(1)), (Some(3), Some(1)));
    assert!(agent.reads("image/png").is_none());
}

/// `rejoinder doctor`.
#[tokio::test]
async fn the_server_is_asked_whether_it_has_the_model() {
    let list = || Answer::json(200, &json!({ "data": [{ "type": "model", "id": "claude-haiku" }], "has_more": true }));
    let known = Answer::json(200, &json!({ "type": "model", "id": "claude-1" }));
    let unknown = json!({ "type": "error", "error": { "type": "not_found_error", "message": "model: claude" } });
    let server = Server::answering([list(), known, list(), Answer::json(404, &unknown)]).await;
    let section = AnthropicSection { api_key: Some("sk-ant-secret".into()), ..section(&server) };

    assert_eq!(section.check_model(&client()).await, Ok(ModelStatus::Available));
    assert_eq!(section.check_model(&client()).await, Ok(ModelStatus::Missing(vec!["claude-haiku".into()])));
    let requests = server.requests();
    assert_eq!((&*requests[0].path, &*requests[1].path), ("/v1/models", "/v1/models/claude"));
    assert_eq!(requests[0].headers["x-api-key"], "sk-ant-secret");
}
