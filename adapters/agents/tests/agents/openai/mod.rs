//! The `openai` runtime against a server with scripted answers.

mod choices;
mod failures;

use rejoinder_agents::{ModelSection as _, ModelStatus, OpenAi, OpenAiSection, PieceName};
use rejoinder_core::{AgentMessage, AgentRuntime, HistoryLine, LineState, Speaker, Timestamp, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use crate::double::{
    Answer, Piece, Server, agent_with, client, done, event, finish, raw, run, settings, text_chunk, turn, used,
};

#[tokio::test]
async fn an_answer_is_streamed_and_then_given_whole() {
    let server = Server::answering([Answer::says(&["Hel", "lo, ", "Ada."])]).await;
    let ran = server.run().await;
    assert_eq!(ran.drafts, "Hello, Ada.");
    assert_eq!(ran.reply(), "Hello, Ada.");
}

#[tokio::test]
async fn the_server_is_told_the_key_and_the_turn() {
    let server = Server::answering([Answer::says(&["Hi"])]).await;
    let agent = agent_with(OpenAiSection { api_key: Some("sk-secret".into()), ..server.settings() });
    let turn = turn("Hi").with(|turn| turn.attempt = 2);
    let id = turn.turn.to_string();
    run(&agent, turn).await.reply();

    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    for (name, value) in
        [("authorization", "Bearer sk-secret"), ("x-rejoinder-turn-id", &id), ("x-rejoinder-attempt", "2")]
    {
        assert_eq!(requests[0].headers[name], value);
    }
    assert_eq!(requests[0].body["messages"][1], json!({"role": "user", "content": "Hi"}));
}

fn with_headers(server: &Server) -> OpenAiSection {
    let headers = [("x-team", "support"), ("X-Gateway-Key", "gw-secret")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.into())).into();
    OpenAiSection { headers, ..server.settings() }
}

/// Also for the list of models, by which it is checked and probed.
#[tokio::test]
async fn the_server_gets_the_headers_of_the_operator() {
    let list = || Answer::json(200, &json!({ "data": [{ "id": "test-model" }] }));
    let server = Server::answering([Answer::says(&["Hi"]), list(), list()]).await;
    let (section, agent) = (with_headers(&server), agent_with(with_headers(&server)));

    run(&agent, turn("Hi")).await.reply();
    assert_eq!(section.check_model(&client()).await, Ok(ModelStatus::Available));
    assert_eq!(agent.probe().await, Some(Ok(())));

    let requests = server.requests();
    assert_eq!(
        requests.iter().map(|request| &*request.path).collect::<Vec<_>>(),
        ["/v1/chat/completions", "/v1/models", "/v1/models"]
    );
    for request in requests {
        assert_eq!(request.headers["x-team"], "support");
        assert_eq!(request.headers["x-gateway-key"], "gw-secret");
    }
}

#[tokio::test]
async fn what_is_left_out_of_the_instructions_is_not_sent() {
    let server = Server::answering([Answer::says(&["Hi"]), Answer::says(&["Hi"])]).await;
    let sparing = OpenAiSection { leave_out: vec![PieceName::Date, PieceName::Legend], ..server.settings() };
    run(&server.agent(), turn("Hi")).await.reply();
    run(&agent_with(sparing), turn("Hi")).await.reply();

    let requests = server.requests();
    let instructions = |number: usize| requests[number].body["messages"][0]["content"].as_str().expect("a text");
    for piece in ["Today is ", "is a JSON object in one line"] {
        assert!(instructions(0).contains(piece) && !instructions(1).contains(piece), "{piece}");
    }
    assert!(
        instructions(1)
            .ends_with("\n\nYou are in a direct chat with one person, on Telegram. You may use simple Markdown.")
    );
}

#[tokio::test]
async fn text_is_whole_however_its_bytes_are_cut() {
    let Piece::Bytes(bytes) = text_chunk("Grüße, 👩‍🚀!") else { unreachable!("a chunk is bytes") };
    let pieces = bytes.chunks(1).map(raw).chain([finish("stop"), done()]);
    let server = Server::answering([Answer::stream(pieces)]).await;
    let ran = server.run().await;
    assert_eq!(ran.drafts, "Grüße, 👩‍🚀!");
    assert_eq!(ran.reply(), "Grüße, 👩‍🚀!");
}

#[rstest]
#[case("data: {}\r\n\r\ndata: [DONE]\r\n\r\n")]
#[case(": keep-alive\n\nevent: message\ndata: {}\n\ndata:[DONE]\n\n")]
#[case("\u{feff}data: {}\n\ndata: [DONE]\n\n")]
#[tokio::test]
async fn servers_write_their_streams_in_different_ways(#[case] stream: &str) {
    let chunk = json!({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}).to_string();
    let server = Server::answering([Answer::stream([raw(stream.replacen("{}", &chunk, 1))])]).await;
    assert_eq!(server.run().await.reply(), "Hi");
}

#[tokio::test]
async fn an_answer_in_one_piece_is_taken_too() {
    let body = json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    });
    let server = Server::answering([Answer::json(200, &body)]).await;
    let ran = server.run().await;
    assert_eq!(ran.drafts, "Hi");
    assert_eq!(ran.usage, Some(Usage { input_tokens: 5, output_tokens: 1 }));
    assert_eq!(ran.reply(), "Hi");
}

/// A1: the guard judges an empty answer.
#[rstest]
#[case(Answer::stream([done()]))]
#[case(Answer::stream([text_chunk(""), finish("stop"), done()]))]
#[case(Answer::stream([event(&json!({"choices": []})), done()]))]
#[case(Answer::json(200, &json!({"choices": []})))]
#[tokio::test]
async fn an_empty_answer_is_a_reply_without_text(#[case] answer: Answer) {
    let server = Server::answering([answer]).await;
    let ran = server.run().await;
    assert_eq!((ran.drafts.as_str(), server.requests().len()), ("", 1));
    assert_eq!(ran.reply(), "");
}

/// A20, C1.
#[tokio::test]
async fn a_silence_marker_is_never_drafted_and_left_to_the_guard() {
    let server = Server::answering([Answer::says(&["NO", "_REP", "LY"])]).await;
    let ran = server.run().await;
    assert_eq!(ran.drafts, "");
    assert_eq!(ran.reply(), "NO_REPLY");
}

/// A7.
#[tokio::test]
async fn reasoning_is_not_text() {
    let thought = |key: &str| event(&json!({"choices": [{"delta": {key: "The person greets."}}]}));
    let pieces = [thought("reasoning_content"), thought("reasoning"), text_chunk("Hi"), finish("stop"), done()];
    let server = Server::answering([Answer::stream(pieces)]).await;
    let ran = server.run().await;
    assert_eq!(ran.drafts, "Hi");
    assert_eq!(ran.reply(), "Hi");
}

/// The answer of a model whose template writes `<think>` itself.
const THINKS: [&str; 5] = ["Let me ", "see.\n</thi", "nk>\n", "\nYes", "."];

/// A7.
#[tokio::test]
async fn a_thought_without_a_beginning_is_taken_back_and_from_then_on_not_reported() {
    let server = Server::answering([Answer::says(&THINKS), Answer::says(&THINKS), Answer::says(&["No", "."])]).await;
    let agent = server.agent();

    let ran = run(&agent, turn("Is it?")).await;
    assert_eq!((ran.drafts.as_str(), ran.ever.starts_with("Let me see.")), ("Yes.", true));
    let ran = run(&agent, turn("Is it?")).await;
    assert_eq!((ran.drafts.as_str(), ran.ever.as_str()), ("Yes.", "Yes."));
    assert_eq!(ran.reply(), THINKS.concat(), "the guard judges the raw text");
    // An answer without a thought is reported when it ends.
    assert_eq!(run(&agent, turn("Is it?")).await.ever, "No.");
}

/// A7.
#[tokio::test]
async fn a_model_that_is_known_to_think_first_is_not_reported_before_it_answers() {
    let pieces = [text_chunk("Let me see."), text_chunk("</think>Yes"), Piece::Cut];
    let server = Server::answering([Answer::says(&THINKS), Answer::stream(pieces)]).await;
    let agent = agent_with(OpenAiSection { thinks_first: true, ..server.settings() });

    assert_eq!(run(&agent, turn("Is it?")).await.ever, "Yes.");
    assert_eq!(run(&agent, turn("Is it?")).await.ever, "Yes");
}

/// A7: every round of a run may begin with a thought.
#[tokio::test]
async fn a_thought_between_two_tools_takes_nothing_back_that_was_said_before() {
    let looks_up = |text| Answer::calls(text, &[("look_up", json!({}))]);
    for thinks_first in [false, true] {
        let server = Server::answering([
            looks_up("One."),
            looks_up("Hm.</think>"),
            Answer::says(&["Let me see.", "</think>", "Two", "."]),
        ]);
        let server = server.await;
        let agent = agent_with(OpenAiSection { thinks_first, ..server.settings() });

        let ran = run(&agent, turn("Count")).await;
        assert_eq!(ran.drafts, "One.\n\nTwo.");
        assert_eq!(ran.reply(), "One.\n\nTwo.");
    }
}

/// A retry is allowed, because no text for the person was shown.
#[tokio::test]
async fn an_answer_that_is_cut_after_its_thought_is_asked_for_once_more() {
    let pieces = [text_chunk("Let me see."), text_chunk("</think>"), Piece::Cut];
    let server = Server::answering([Answer::stream(pieces), Answer::says(&["Yes."])]).await;

    let ran = server.run().await;
    assert_eq!(ran.drafts, "Yes.");
    assert_eq!(ran.reply(), "Yes.");
}

#[tokio::test]
async fn what_was_consumed_is_reported() {
    let server = Server::answering([
        Answer::stream([
            event(&json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "look_up"}}]}}]})),
            finish("tool_calls"),
            used(10, 2),
            done(),
        ]),
        Answer::stream([text_chunk("Hi"), finish("stop"), used(20, 3), done()]),
    ])
    .await;
    assert_eq!(server.run().await.usage, Some(Usage { input_tokens: 30, output_tokens: 5 }));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::answering(vec![Answer::says(&["Hi"]); 5]).await;
    let agent = server.agent();
    for _ in 0..5 {
        run(&agent, turn("Hi")).await.reply();
    }
    let requests = server.requests();
    assert!(requests.iter().all(|one| one.from == requests[0].from), "{requests:?}");
}

/// Messages that are answered together are put before the model in their order.
#[tokio::test]
async fn the_model_gets_all_messages_that_it_answers() {
    let server = Server::answering([Answer::says(&["Both."])]).await;
    let more = AgentMessage {
        sender: turn("").message.sender,
        text: "And two?".to_owned(),
        forwarded: None,
        attachments: Vec::new(),
        voice: None,
        quoted: None,
        reaction: None,
    };
    run(&server.agent(), turn("One?").with(|turn| turn.more = vec![more])).await;
    assert_eq!(server.requests()[0].body["messages"][1]["content"], "One?\n\nAnd two?");
}

/// I3. The operator sees the last request, which contains the earlier ones of the run, and every tool call.
#[tokio::test]
async fn the_operator_sees_what_the_model_was_shown_and_did() {
    let arguments = json!({"query": "x"});
    let server = Server::answering([Answer::calls("", &[("web_search", arguments.clone())]), Answer::says(&["No."])]);
    let server = server.await;
    let section = OpenAiSection { api_key: Some("sk-secret-key".into()), ..server.settings() };
    let line = HistoryLine {
        spoken: false,
        speaker: Speaker::Person,
        author: None,
        forwarded: None,
        text: "before".to_owned(),
        at: Timestamp::from_millis(0),
        state: LineState::Seen,
    };

    let ran = run(&agent_with(section), turn("Hi").with(|turn| turn.past.history = vec![line.into()])).await;

    let shown = ran.shown.clone().expect("it is reported");
    let settings: Value = serde_json::from_str(&shown.settings).expect("JSON");
    let messages: Value = serde_json::from_str(&shown.messages).expect("JSON");
    let sent = server.requests()[1].body.clone();
    assert_eq!(settings["system"], sent["messages"][0]["content"]);
    assert_eq!((&settings["model"], &settings["tools"]), (&sent["model"], &sent["tools"]));
    assert_eq!(messages.as_array().map(Vec::as_slice), sent["messages"].as_array().map(|sent| &sent[1..]));
    assert_eq!(messages[0], json!({"role": "user", "content": "before\n\nHi"}));
    let [call] = &ran.calls[..] else { panic!("one call: {:?}", ran.calls) };
    assert_eq!((&*call.name, &*call.arguments), ("web_search", &*arguments.to_string()));
    assert_eq!(messages[2]["content"], call.result);
    assert!(!format!("{shown:?}{:?}", ran.calls).contains("sk-secret-key"));
}

/// I3. Also if the server cannot be reached.
#[tokio::test]
async fn the_operator_sees_what_was_to_be_sent_to_a_server_that_is_down() {
    let server = Server::answering([Answer::error(400, "no"), Answer::error(400, "no")]).await;

    let ran = server.run().await;

    assert!(ran.outcome.is_err() && ran.shown.is_some_and(|shown| shown.messages.contains("Hi")));
}

#[test]
fn settings_that_cannot_work_are_refused_and_described_without_secrets() {
    let with = |base_url: &str| settings(base_url.parse().expect("a URL"));
    let made = |settings| OpenAi::new("main".into(), settings, client());
    assert!(made(with("ftp://127.0.0.1/v1")).is_err());
    assert!(made(OpenAiSection { api_key: Some("a\nb".into()), ..with("http://127.0.0.1/v1") }).is_err());
    let agent = agent_with(with("https://user:hunter2@host/v1/?key=hunter2"));
    assert_eq!(agent.describe(), "openai test-model at https://host/v1/");
    assert!(!format!("{agent:?}").contains("hunter2"));
}
