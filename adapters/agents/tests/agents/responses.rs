//! The `openai` runtime with `api = "responses"` against a server with scripted answers: what differs from Chat Completions.

use rejoinder_agents::{ModelSection as _, OpenAiApi, OpenAiSection};
use rejoinder_core::{AgentError, AgentFile, AgentRuntime as _, Attachment, Outcome, SendResult, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    double::{Answer, FinishedRun, Piece, Server, client, done, raw, run, run_with, turn},
    gpt::{agent, agent_with, begun, call, calls, completed, end, events, message, says, text, thought},
};

async fn ran(server: &Server) -> FinishedRun {
    run(&agent(server), turn("Hi")).await
}

fn why(outcome: Result<Outcome, AgentError>) -> String {
    outcome.expect_err("it failed").to_string()
}

#[tokio::test]
async fn an_answer_is_streamed_and_then_given_whole() {
    let server = Server::answering([says(&["Hel", "lo, ", "Ada."])]).await;
    let ran = ran(&server).await;
    assert_eq!(ran.drafts, "Hello, Ada.");
    assert_eq!(ran.usage, Some(Usage { input_tokens: 42, output_tokens: 5 }));
    assert_eq!(ran.reply(), "Hello, Ada.");
}

/// As the gateway builds the agent of a section.
#[tokio::test]
async fn a_section_with_this_api_asks_by_it_and_stores_nothing() {
    let server = Server::answering([says(&["Hi"]), Answer::says(&["Hi"])]).await;
    let section = OpenAiSection { api_key: Some("sk-secret".into()), ..server.settings() };
    for api in [OpenAiApi::Responses, OpenAiApi::Chat] {
        let agent = OpenAiSection { api, ..section.clone() }.agent("main".into(), client(), None).expect("it is good");
        assert!(agent.describe().starts_with("openai test-model at http://127.0.0.1:"), "{}", agent.describe());
        run(&*agent, turn("Hi")).await.reply();
    }

    let requests = server.requests();
    assert_eq!((&*requests[0].path, &*requests[1].path), ("/v1/responses", "/v1/chat/completions"));
    assert_eq!(requests[0].headers["authorization"], "Bearer sk-secret");
    assert_eq!((&requests[0].body["store"], &requests[0].body["stream"]), (&json!(false), &json!(true)));
    assert_eq!(requests[0].body["input"], json!([{ "type": "message", "role": "user", "content": "Hi" }]));
}

/// A7.
#[tokio::test]
async fn a_thought_is_not_shown_and_goes_back_encrypted_when_a_result_follows() {
    let first = [begun(), thought(0), text(1, "Let me see."), call(2, "web_search", &json!({})), completed()];
    let server = Server::answering([Answer::stream(first), says(&["I cannot search."])]).await;
    let ran = ran(&server).await;

    let input = server.requests()[1].body["input"].clone();
    let expected = json!([
        { "type": "reasoning", "summary": [], "encrypted_content": "gAAA" },
        { "type": "message", "role": "assistant", "content": "Let me see." },
        { "type": "function_call", "call_id": "call_2", "name": "web_search", "arguments": "{}" },
    ]);
    assert_eq!(input.as_array().expect("a list")[1..4], expected.as_array().expect("a list")[..]);
    assert_eq!((&input[4]["type"], &input[4]["call_id"]), (&json!("function_call_output"), &json!("call_2")));
    assert!(input[4]["output"].as_str().is_some_and(|told| told.starts_with("error: ")), "{input}");
    assert_eq!(ran.ever, "Let me see.\n\nI cannot search.");
    assert_eq!(ran.reply(), "Let me see.\n\nI cannot search.");
}

#[tokio::test]
async fn the_bytes_of_a_file_are_not_given_back() {
    let file = json!({ "name": "a.txt", "media_type": "text/plain", "data": "aGk=" });
    let server = Server::answering([calls("", &[("send_file", file)]), says(&["Here."])]).await;
    let ran = ran(&server).await;

    let given_back = server.requests()[1].body["input"][1]["arguments"].clone();
    assert!(given_back.as_str().is_some_and(|call| call.contains("[4 bytes of Base64]")), "{given_back}");
    let Ok(Outcome::Reply(reply)) = ran.outcome else { panic!("not a reply") };
    assert_eq!((&*reply.text, &*reply.attachments[0].url), ("Here.", "data:text/plain;base64,aGk="));
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

#[tokio::test]
async fn text_is_whole_however_its_bytes_are_cut() {
    let bytes = [begun(), message(0, &["Grüße, ", "👩‍🚀!"]), completed()].into_iter().flat_map(|piece| match piece {
        Piece::Bytes(bytes) => bytes,
        other => panic!("{other:?} is no event"),
    });
    let server = Server::answering([Answer::stream(bytes.map(|byte| raw([byte])))]).await;
    let ran = ran(&server).await;
    assert_eq!(ran.drafts, "Grüße, 👩‍🚀!");
    assert_eq!(ran.reply(), "Grüße, 👩‍🚀!");
}

#[tokio::test]
async fn an_answer_in_one_piece_is_taken_too() {
    let content = json!([{ "type": "output_text", "text": "Hi" }]);
    let body = json!({
        "object": "response", "status": "completed", "output": [{ "type": "message", "content": content }],
        "usage": { "input_tokens": 5, "output_tokens": 1 },
    });
    let server = Server::answering([Answer::json(200, &body)]).await;
    let ran = ran(&server).await;
    assert_eq!((&*ran.drafts, ran.usage), ("Hi", Some(Usage { input_tokens: 5, output_tokens: 1 })));
    assert_eq!(ran.reply(), "Hi");
}

/// A1: the guard judges an empty answer.
#[tokio::test]
async fn an_empty_answer_is_a_reply_without_text() {
    let server = Server::answering([Answer::stream([begun(), completed(), done()])]).await;
    assert_eq!(ran(&server).await.reply(), "");
    assert_eq!(server.requests().len(), 1);
}

/// The end of an answer without room is missing, as of one that is too long.
#[tokio::test]
async fn an_answer_that_reaches_its_most_tokens_says_that_its_end_is_missing() {
    let full = || end("incomplete", json!({ "incomplete_details": { "reason": "max_output_tokens" } }));
    let server = Server::answering([Answer::stream([begun(), text(0, "Once upon"), full()])]).await;
    assert_eq!(ran(&server).await.reply(), "Once upon\n\nThe rest is missing.");

    let server = Server::answering([Answer::stream([begun(), thought(0), full()])]).await;
    let run = ran(&server).await;
    assert_eq!(run.usage, Some(Usage { input_tokens: 42, output_tokens: 5 }), "its thoughts cost");
    let said = why(run.outcome);
    assert!(said.contains("ended before any text (max_output_tokens)"), "{said}");
}

// Failures.

fn overloaded() -> Value {
    json!({ "error": { "type": "server_error", "message": "Overloaded" } })
}

fn failed() -> Piece {
    end("failed", json!({ "error": { "code": "server_error", "message": "Overloaded" } }))
}

/// A15: exactly one retry.
#[rstest]
#[case::status(Answer::json(503, &overloaded()))]
#[case::an_error(Answer::stream([begun(), events(&[json!({ "type": "error", "message": "Overloaded" })])]))]
#[case::a_failure(Answer::stream([begun(), failed()]))]
#[case::cut_before_any_text(Answer::stream([begun(), Piece::Cut]))]
#[case::no_end(Answer::stream([begun()]))]
#[tokio::test]
async fn a_server_that_fails_once_is_asked_once_more(#[case] failure: Answer) {
    let server = Server::answering([failure.clone(), says(&["Hi"])]).await;
    assert_eq!(ran(&server).await.reply(), "Hi");

    let server = Server::answering([failure.clone(), failure, says(&["Hi"])]).await;
    assert!(ran(&server).await.outcome.is_err());
    assert_eq!(server.requests().len(), 2);
}

/// Also if the text or the stream says that it has ended: only the last event ends an answer.
#[rstest]
#[case::cut(vec![Piece::Cut])]
#[case::no_end(vec![])]
#[case::half_a_line(vec![raw("data: {\"type\":\"response.comp")])]
#[case::only_the_end_of_the_stream(vec![done()])]
#[case::only_the_end_of_the_text(vec![events(&[json!({ "type": "response.output_text.done", "text": "Hello, A" })])])]
#[tokio::test]
async fn half_an_answer_is_not_delivered(#[case] rest: Vec<Piece>) {
    let pieces = [begun(), text(0, "Hello, A")].into_iter().chain(rest);
    let server = Server::answering([Answer::stream(pieces), says(&["Hi"])]).await;
    let ran = ran(&server).await;
    assert_eq!(ran.drafts, "Hello, A");
    let Err(AgentError::Broken(why)) = ran.outcome else { panic!("{:?}", ran.outcome) };
    assert!(why.contains("cut off after 8 characters"), "{why}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_error_after_text_ends_the_run() {
    let server = Server::answering([Answer::stream([begun(), text(0, "Hello"), failed()]), says(&["Hi"])]).await;
    assert_eq!(ran(&server).await.outcome, Err(AgentError::Failed("Overloaded after 5 characters".to_owned())));
    assert_eq!(server.requests().len(), 1);
}

#[rstest]
#[case(Answer::page("text/html", "<!doctype html><p>Please log in.</p>"))]
#[case(Answer::stream([]))]
#[case(Answer::says(&["Hi"]))]
#[case(Answer::json(200, &json!({ "choices": [] })))]
#[case(Answer::stream([begun(), raw("data: {\"type\": \"response.output_text.delta\", \"delta\":\n\n")]))]
#[tokio::test]
async fn what_is_no_answer_is_broken(#[case] answer: Answer) {
    let server = Server::answering([answer]).await;
    let outcome = ran(&server).await.outcome;
    assert!(matches!(outcome, Err(AgentError::Broken(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_model_that_does_not_think_is_asked_again_without_encrypted_thoughts() {
    let refusal = json!({ "error": { "message": "Encrypted content is not supported with this model." } });
    let server = Server::answering([Answer::json(400, &refusal), says(&["Hi"]), says(&["Hi"])]).await;
    let agent = agent(&server);
    run(&agent, turn("Hi")).await.reply();
    run(&agent, turn("Hi")).await.reply();

    let asked: Vec<_> = server.requests().iter().map(|request| request.body.get("include").is_some()).collect();
    assert_eq!(asked, [true, false, false]);
}

/// K3.
#[tokio::test]
async fn a_server_that_refuses_pictures_is_asked_again_without_them() {
    let refusal = json!({ "error": { "message": "input_image is only supported by certain models." } });
    let server = Server::answering([Answer::json(400, &refusal), says(&["A cat?"])]).await;
    let agent = agent_with(OpenAiSection { images: true, ..server.settings() });
    let attachment = Attachment { name: "cat.png".into(), media_type: "image/png".into(), url: "telegram:cat".into() };
    let picture = AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None };

    run(&agent, turn("Look!").with(|turn| turn.message.attachments = vec![picture])).await.reply();

    let requests = server.requests();
    let content = |number: usize| requests[number].body["input"][0]["content"].clone();
    assert_eq!(content(0)[2]["type"], "input_image");
    assert!(content(1).is_string() && agent.reads("image/png").is_none(), "{}", content(1));
}
