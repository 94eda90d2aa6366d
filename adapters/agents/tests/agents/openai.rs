//! The `openai` runtime against a server with scripted answers.

use std::time::Duration;

use rejoinder_agents::{ModelSection as _, ModelStatus, OpenAi, OpenAiSection, PieceName};
use rejoinder_core::{
    AgentError, AgentFile, AgentMessage, AgentRuntime, Attachment, Choices, HistoryLine, LineState, Outcome, Reply,
    RunEvents, SendResult, Speaker, Support, Timestamp, Usage,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::double::{
    Answer, Piece, Server, agent_with, client, done, event, finish, raw, run, run_hearing, run_with, settings,
    text_chunk, turn, used,
};

const SOON: Duration = Duration::from_millis(50);

fn message(error: Result<Outcome, AgentError>) -> String {
    error.expect_err("it failed").to_string()
}

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

// The model's choices.

#[tokio::test]
async fn a_reaction_is_an_answer_and_needs_no_further_request() {
    let server = Server::answering([Answer::calls("", &[("react", json!({"emoji": "👍"}))])]).await;
    let ran = server.run().await;
    assert_eq!(ran.outcome, Ok(Outcome::React("👍".into())));
    assert_eq!((ran.tools, server.requests().len()), (vec!["react".to_owned()], 1));
}

/// B10.
#[tokio::test]
async fn text_beats_a_reaction() {
    let server = Server::answering([Answer::calls("Gladly.", &[("react", json!({"emoji": "👍"}))])]).await;
    assert_eq!(server.run().await.reply(), "Gladly.");
}

fn tea_or_coffee() -> serde_json::Value {
    json!({"question": "Which?", "choices": ["Tea", "Coffee"], "free_text": false, "expires_in": 3600})
}

/// Text that was written beside a question stands before it.
#[tokio::test]
async fn a_question_has_choices_and_a_time() {
    for (text, question) in [("", "Which?"), ("There is both.", "There is both.\n\nWhich?")] {
        let server = Server::answering([Answer::calls(text, &[("ask", tea_or_coffee())])]).await;
        let turn = turn("Hi");
        let expires = Some(turn.now + Duration::from_hours(1));
        let ran = run(&server.agent(), turn).await;
        let choices = Choices { options: vec!["Tea".into(), "Coffee".into()], free_text: false, expires };
        assert_eq!(ran.outcome, Ok(Outcome::Reply(Reply::question(question, choices))));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_model_hears_that_a_question_has_too_few_choices() {
    let alone = json!({"question": "Which?", "choices": ["Tea"]});
    let server =
        Server::answering([Answer::calls("", &[("ask", alone)]), Answer::calls("", &[("ask", tea_or_coffee())])]).await;
    let ran = server.run().await;
    let told = server.requests()[1].body["messages"][3]["content"].clone();
    assert!(told.as_str().is_some_and(|told| told.contains("2 to 8")), "{told}");
    assert!(matches!(ran.outcome, Ok(Outcome::Reply(Reply { choices: Some(_), .. }))));
}

#[tokio::test]
async fn a_deferral_has_a_note_and_a_time() {
    let server = Server::answering([Answer::calls("", &[("defer", json!({"note": "Later.", "minutes": 5}))])]).await;
    let turn = turn("Hi");
    let now = turn.now;
    let ran = run(&server.agent(), turn).await;
    let Ok(Outcome::Defer { note: Some(note), due }) = ran.outcome else { panic!("{:?}", ran.outcome) };
    assert_eq!(note, "Later.");
    assert_eq!(due.since(now).as_secs() / 60, 5, "counted from when it was said");
}

/// A15. What the model names beyond its bound is refused, and it is told what the bound is.
#[tokio::test]
async fn the_model_hears_that_it_may_not_defer_for_so_long() {
    let server = Server::answering([
        Answer::calls("", &[("defer", json!({"note": "In a week.", "minutes": 7 * 24 * 60}))]),
        Answer::calls("", &[("defer", json!({"note": "Tomorrow.", "minutes": 60}))]),
    ])
    .await;
    let ran = run(&server.agent(), turn("Hi")).await;

    let told = &server.requests()[1].body["messages"][3]["content"];
    assert!(told.as_str().is_some_and(|told| told.contains("2023-11-15T22:1")), "{told}");
    assert!(ran.calls[1].result.starts_with("noted: you are asked again at 2023-11-14T23:1"), "{:?}", ran.calls);
    let Ok(Outcome::Defer { note: Some(note), due }) = ran.outcome else { panic!("{:?}", ran.outcome) };
    assert_eq!(note, "Tomorrow.");
    assert_eq!(due.since(turn("").now).as_secs() / 60, 60, "counted from when it was said");
}

/// A message that was sent would be the answer, and the promise would be forgotten.
#[tokio::test]
async fn the_model_hears_that_it_cannot_both_send_and_defer() {
    let send = ("send", json!({"text": "I look into it."}));
    let defer = ("defer", json!({"note": "Soon.", "minutes": 5}));
    let never = ("defer", json!({"note": "Soon.", "minutes": 7 * 24 * 60}));
    for calls in [[send.clone(), defer.clone()], [defer, send.clone()], [send, never]] {
        let last = Answer::calls("", &[("defer", json!({"note": "I look into it. Soon.", "minutes": 5}))]);
        let server = Server::answering([Answer::calls("", &calls), last]).await;
        let ran = run(&server.agent(), turn("Hi")).await;

        assert_eq!(ran.sent, [""; 0]);
        let messages = server.requests()[1].body["messages"].to_string();
        assert!(messages.contains("not sent: you cannot both send and defer"), "{messages}");
        assert!(matches!(&ran.outcome, Ok(Outcome::Defer { note: Some(note), .. }) if note == "I look into it. Soon."));
    }
}

/// B6: the model is not asked again.
#[tokio::test]
async fn a_chosen_silence_is_an_outcome() {
    let server = Server::answering([Answer::calls("", &[("stay_silent", json!({"reason": "not for me"}))])]).await;
    assert_eq!(server.run().await.outcome, Ok(Outcome::Silent("not for me".into())));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_message_that_became_the_answer_ends_the_run() {
    let server = Server::answering([Answer::calls("", &[("send", json!({"text": "Done!"}))])]).await;
    let ran = server.run().await;
    assert_eq!(ran.sent, ["Done!"]);
    assert_eq!(ran.outcome, Ok(Outcome::Silent("answered with the tool `send`".into())));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_model_hears_that_a_message_was_not_sent() {
    let server =
        Server::answering([Answer::calls("", &[("send", json!({"text": "Done!"}))]), Answer::says(&["Fine."])]).await;
    let ran = run_with(&server.agent(), turn("Hi"), |_| SendResult::Suppressed).await;
    let messages = server.requests()[1].body["messages"].clone();
    assert_eq!(messages[2]["tool_calls"][0]["function"]["name"], "send");
    assert_eq!(messages[3]["role"], "tool");
    assert_eq!(messages[3]["tool_call_id"], "id_0");
    assert!(messages[3]["content"].as_str().is_some_and(|told| told.starts_with("not sent")), "{messages}");
    assert_eq!(ran.reply(), "Fine.");
}

#[tokio::test]
async fn the_model_hears_what_was_wrong_with_a_call_and_may_do_better() {
    let server = Server::answering([
        Answer::calls("Let me see.", &[("web_search", json!({"query": "x"})), ("react", json!({"emoji": 1}))]),
        Answer::says(&["I cannot search."]),
    ])
    .await;
    let ran = server.run().await;
    let messages = server.requests()[1].body["messages"].clone();
    for result in [&messages[3], &messages[4]] {
        assert!(result["content"].as_str().is_some_and(|told| told.starts_with("error: ")), "{result}");
    }
    assert_eq!(ran.drafts, "Let me see.\n\nI cannot search.");
    assert_eq!(ran.tools, ["web_search", "react"]);
    assert_eq!(ran.reply(), "Let me see.\n\nI cannot search.");
}

/// The queue mode `steer`: between two rounds, and while the last answer is written.
#[tokio::test]
async fn the_model_hears_what_came_while_it_worked() {
    let came = || {
        vec![AgentMessage {
            sender: turn("").message.sender,
            text: "In Celsius!".to_owned(),
            forwarded: None,
            attachments: Vec::new(),
            quoted: None,
            reaction: None,
        }]
    };
    let calls = Answer::calls("", &[("web_search", json!({"query": "x"}))]);
    for (first, answer) in [(calls, "20."), (Answer::says(&["68."]), "68.\n\n20.")] {
        let server = Server::answering([first, Answer::says(&["20."])]).await;
        let ran = run_hearing(&server.agent(), turn("How warm?"), |_| SendResult::Claimed, came()).await;
        let messages = server.requests()[1].body["messages"].clone();
        let last = messages.as_array().and_then(|all| all.last()).cloned();
        assert_eq!(last, Some(json!({"role": "user", "content": "In Celsius!"})), "{messages}");
        assert_eq!(ran.reply(), answer);
        assert_eq!(server.requests().len(), 2);
    }
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
    let history = vec![HistoryLine {
        speaker: Speaker::Person,
        author: None,
        forwarded: None,
        text: "before".to_owned(),
        at: Timestamp::from_millis(0),
        state: LineState::Seen,
    }];

    let ran = run(&agent_with(section), turn("Hi").with(|turn| turn.past.history = history)).await;

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

/// A13.
#[tokio::test]
async fn tools_without_a_word_are_silence_and_end_some_time() {
    let server = Server::answering(vec![Answer::calls("", &[("web_search", json!({}))]); 10]).await;
    assert_eq!(server.run().await.outcome, Ok(Outcome::Silent("tools only: web_search".into())));
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn what_was_chosen_survives_a_failure_after_it() {
    let calls = [("react", json!({"emoji": "👍"})), ("web_search", json!({}))];
    let server = Server::answering([Answer::calls("", &calls), Answer::error(400, "no")]).await;
    assert_eq!(server.run().await.outcome, Ok(Outcome::React("👍".into())));
}

#[tokio::test]
async fn a_reaction_is_not_offered_where_none_can_be_shown() {
    let server = Server::answering([Answer::says(&["Hi"])]).await;
    let mut turn = turn("Hi");
    turn.place.capabilities.reactions = Support::No;
    run(&server.agent(), turn).await.reply();
    let requests = server.requests();
    let tools = requests[0].body["tools"].as_array().expect("tools are offered");
    assert!(tools.iter().all(|tool| tool["function"]["name"] != "react"));
}

// Failures.

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
    AgentFile { attachment, bytes: Some(b"abc".to_vec().into()) }
}
