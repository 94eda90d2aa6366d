//! What the model chooses with tools, and what it hears of that.

use std::time::Duration;

use rejoinder_core::{AgentMessage, Attachment, Choices, Outcome, Reply, SendResult, Support};
use serde_json::json;

use crate::double::{Answer, Server, run, run_hearing, run_with, turn};

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

/// A file without words is an answer.
#[tokio::test]
async fn a_file_goes_with_the_answer() {
    let file = json!({"name": "a.png", "media_type": "image/png", "data": "aGk="});
    for words in ["Here it is.", ""] {
        let server =
            Server::answering([Answer::calls("", &[("send_file", file.clone())]), Answer::says(&[words])]).await;
        let ran = server.run().await;
        assert_eq!(ran.calls[0].result, "noted: a.png goes with your answer");
        let url = "data:image/png;base64,aGk=".to_owned();
        let attachments = vec![Attachment { name: "a.png".into(), media_type: "image/png".into(), url }];
        assert_eq!(ran.outcome, Ok(Outcome::Reply(Reply { attachments, ..Reply::text(words) })));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_sent_is_told_and_the_run_goes_on() {
    let calls = [
        ("send_file", json!({"name": "a.png", "data": "a picture!"})),
        ("send_file", json!({"data": "aGk="})),
        ("send_file", json!({"name": "a.png", "url": "http://10.0.0.1/a.png"})),
    ];
    let server = Server::answering([Answer::calls("", &calls), Answer::says(&["I have none."])]).await;
    let ran = server.run().await;
    assert!(ran.calls.iter().all(|call| call.result.starts_with("error: ")), "{:?}", ran.calls);
    assert_eq!(ran.outcome, Ok(Outcome::Reply(Reply::text("I have none."))));
}

#[tokio::test]
async fn what_is_sent_takes_the_files_along_in_any_order() {
    let (send, file) = (("send", json!({"text": "Done!"})), ("send_file", json!({"name": "a.png", "data": "aGk="})));
    for calls in [[send.clone(), file.clone()], [file, send]] {
        let server = Server::answering([Answer::calls("", &calls)]).await;
        assert_eq!(server.run().await.sent, ["Done! + a.png"]);
    }
}

#[tokio::test]
async fn a_file_and_the_words_beside_it_survive_a_failure_after_it() {
    let calls = [("send_file", json!({"name": "a.png", "data": "aGk="}))];
    let server = Server::answering([Answer::calls("Here.", &calls), Answer::error(400, "no")]).await;
    let Ok(Outcome::Reply(reply)) = server.run().await.outcome else { panic!("not a reply") };
    assert_eq!((&*reply.text, reply.attachments.len()), ("Here.", 1));
}

/// Also one that is larger than a text may be. Its bytes are shown in no draft.
#[tokio::test]
async fn a_picture_in_the_text_is_a_file_of_the_answer() {
    let data = "R0lGODlh".repeat(200_000);
    let (begin, end) = data.split_at(10);
    let begin = format!("Look: ![a cat](data:image/gif;base64,{begin}");
    let server = Server::answering([Answer::says(&[&*begin, end, ") Nice!"])]).await;

    let ran = server.run().await;

    assert_eq!(ran.drafts, "Look: a cat Nice!");
    let Ok(Outcome::Reply(reply)) = ran.outcome else { panic!("not a reply") };
    let url = format!("data:image/gif;base64,{data}");
    let cat = Attachment { name: "a cat.gif".into(), media_type: "image/gif".into(), url };
    assert_eq!(reply.text, "Look: a cat Nice!");
    assert!(reply.attachments == [cat], "{} files", reply.attachments.len());
}

#[tokio::test]
async fn a_picture_that_breaks_off_leaves_its_words_and_the_operator_reads_why() {
    let text = format!("![a cat](data:image/gif;base64,{}", "R0lGODlh".repeat(20));
    let server = Server::answering([Answer::says(&[&*text])]).await;

    let ran = server.run().await;

    assert_eq!((&*ran.drafts, &*ran.calls[0].arguments), ("a cat", "a cat.gif"));
    assert_eq!(ran.calls[0].result, "failed: its data breaks off");
    assert_eq!(ran.reply(), "a cat");
}

/// They would be read again with each request, and stand in the record of the run.
#[tokio::test]
async fn the_bytes_of_a_file_are_neither_given_back_nor_recorded() {
    let data = "aGVs".repeat(100);
    let calls = [("send_file", json!({"name": "a.png", "data": data}))];
    let server = Server::answering([Answer::calls("", &calls), Answer::says(&["Here."])]).await;
    let ran = server.run().await;
    let given_back = server.requests()[1].body.to_string();
    let shown = ran.shown.expect("the input is reported").messages;
    for kept in [&given_back, &shown, &ran.calls[0].arguments] {
        assert!(!kept.contains("aGVsaGVs") && kept.contains("[400 bytes of Base64]"), "{kept}");
    }
    let Ok(Outcome::Reply(reply)) = ran.outcome else { panic!("not a reply") };
    assert!(reply.attachments[0].url.ends_with(&data));
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
            voice: None,
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
