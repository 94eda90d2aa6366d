//! Tasks and contexts: what becomes of each state, and what goes on in what.

use std::sync::Arc;

use rejoinder_a2a::A2aSection;
use rejoinder_core::{
    ActivityState, AgentRuntime, AgentTurn, HistoryLine, LineState, RunEvents, SessionNotice, SessionNoticeChange,
    Speaker, conformance::runtime::turn,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    http_json,
    server::{
        Answer, HTTP_JSON, JSON_RPC, Piece, Received, Server, agent, card, event, raw, run, says, status_event, task,
        task_event, text_event,
    },
};

/// An agent that streams this as its answer to every message.
async fn streaming(pieces: Vec<Piece>) -> Server {
    streaming_with(JSON_RPC, pieces).await
}

/// The same with this binding.
async fn streaming_with(binding: &'static str, pieces: Vec<Piece>) -> Server {
    Server::with(binding, true, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(pieces.clone()),
        _ => Answer::result(&task("CANCELED", None, None)),
    })
    .await
}

/// The next turn of the session of `before`, with what is stored of it.
fn next(before: &AgentTurn, text: &str, own_session: Option<String>) -> AgentTurn {
    turn(text).with(|turn| {
        turn.place.session = before.place.session;
        turn.place.own_session = own_session;
    })
}

#[rstest]
#[tokio::test]
async fn an_answer_is_drafted_while_it_comes(#[values(JSON_RPC, HTTP_JSON)] binding: &'static str) {
    let server = streaming_with(
        binding,
        vec![
            task_event("SUBMITTED"),
            status_event("WORKING", Some("looking")),
            status_event("WORKING", Some("looking")),
            text_event("Hello, "),
            status_event("WORKING", Some("writing")),
            text_event("Ada."),
            status_event("COMPLETED", None),
        ],
    )
    .await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    assert_eq!((finished.text(), finished.draft.as_str()), ("Hello, Ada.", "Hello, Ada."));
    let activity = |title: &str, state| (title.to_owned(), state);
    let expected = [
        activity("looking", ActivityState::Working),
        activity("looking", ActivityState::Done),
        activity("writing", ActivityState::Working),
    ];
    assert_eq!(finished.activities, expected);
}

#[tokio::test]
async fn a_message_is_an_answer_too() {
    let parts = json!([{ "text": "Hello." }, { "raw": "YWJj", "filename": "a.txt", "mediaType": "text/plain" }]);
    let server = streaming(vec![event(&json!({ "message": { "contextId": "c1", "parts": parts } }))]).await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    assert_eq!((finished.text(), finished.files().len()), ("Hello.", 1));
    assert!(server.requests("CancelTask").is_empty());
}

#[rstest]
#[case("FAILED", "the agent failed: the task failed: no fuel")]
#[case("REJECTED", "the agent failed: the task is rejected: no fuel")]
#[case("CANCELED", "the agent failed: the task is canceled: no fuel")]
#[tokio::test]
async fn a_task_that_fails_says_why(#[case] state: &str, #[case] said: &str) {
    let server = streaming(vec![task_event("WORKING"), text_event("Let"), status_event(state, Some("no fuel"))]).await;

    assert_eq!(run(&agent(server.section()), turn("Hi")).await.error(), said);
}

#[tokio::test]
async fn a_task_that_needs_an_authorization_is_an_error_and_canceled() {
    let server = streaming(vec![task_event("WORKING"), status_event("AUTH_REQUIRED", Some("log in at x"))]).await;

    let error = run(&agent(server.section()), turn("Hi")).await.error();

    assert!(error.contains("authorization required") && error.contains("log in at x"), "{error}");
    server.until("CancelTask").await;
}

/// The answer of the person goes on in the task, also after a restart of the gateway.
#[rstest]
#[tokio::test]
async fn a_question_of_a_task_is_answered_by_the_next_message(
    #[values(JSON_RPC, HTTP_JSON)] binding: &'static str,
    #[values(false, true)] is_restarted: bool,
) {
    let server = Server::with(binding, true, |request| match request.message().get("taskId") {
        None => Answer::stream([task_event("WORKING"), status_event("INPUT_REQUIRED", Some("Which day?"))]),
        Some(_) => Answer::stream([
            event(&json!({ "task": task("INPUT_REQUIRED", Some("Which day?"), None) })),
            status_event("WORKING", None),
            text_event("Booked."),
            status_event("COMPLETED", None),
        ]),
    })
    .await;
    let (mut agent, asked) = (agent(server.section()), turn("Book a table"));

    let question = run(&agent, asked.clone()).await;
    if is_restarted {
        agent = crate::server::agent(server.section());
    }
    let own_session = question.own_session.clone();
    let answered = run(&agent, next(&asked, "Tuesday", own_session)).await;
    let after = run(&agent, next(&asked, "Thanks", answered.own_session.clone())).await;

    assert_eq!((question.text(), answered.text(), after.text()), ("Which day?", "Booked.", "Which day?"));
    let sent = server.requests("SendStreamingMessage");
    let where_it_goes =
        |request: &Received| (request.message()["contextId"].clone(), request.message()["taskId"].clone());
    assert_eq!(where_it_goes(&sent[1]), (json!("c1"), json!("t1")));
    assert_eq!(where_it_goes(&sent[2]), (json!("c1"), Value::Null), "the task is over");
    assert_eq!(sent[1].texts(), ["Tuesday"]);
    assert!(server.requests("CancelTask").is_empty());
}

#[tokio::test]
async fn only_a_new_context_is_told_what_was_said() {
    let server = streaming(vec![task_event("WORKING"), text_event("Yes."), status_event("COMPLETED", None)]).await;
    let agent = agent(server.section());
    let line = |speaker, text: &str| {
        let at = turn("").now;
        HistoryLine {
            spoken: false,
            speaker,
            author: None,
            forwarded: None,
            text: text.to_owned(),
            at,
            state: LineState::Seen,
        }
    };
    let history = vec![line(Speaker::Person, "Tea?").into(), line(Speaker::Agent, "Gladly.").into()];
    let first = turn("Hi").with(|turn| turn.past.history = history.clone());

    let finished = run(&agent, first.clone()).await;
    let second = next(&first, "And?", finished.own_session).with(|turn| turn.past.history = history);
    run(&agent, second).await;

    let sent = server.requests("SendStreamingMessage");
    assert!(sent[0].texts().iter().any(|text| text.contains("Gladly.")), "{:?}", sent[0].texts());
    assert_eq!(sent[1].texts(), ["And?"]);
    assert_eq!(sent[1].message()["contextId"], "c1");
    assert_eq!(sent[0].message()["messageId"], format!("{}-1", first.turn));
}

/// What people removed is not in a context that goes on: a new one is told what is left.
#[rstest]
#[case::of_a_turn(SessionNoticeChange::TurnRemoved(turn("").turn))]
#[case::of_the_session(SessionNoticeChange::Deleted)]
#[tokio::test]
async fn a_removal_begins_another_context(#[case] change: SessionNoticeChange) {
    let server = streaming(vec![task_event("WORKING"), text_event("Yes."), status_event("COMPLETED", None)]).await;
    let (agent, first) = (agent(server.section()), turn("Hi"));

    let finished = run(&agent, first.clone()).await;
    let notice = SessionNotice { session: first.place.session, own_session: None, change };
    agent.session_changed(notice).await.expect("it is done");
    // The turn may have been claimed before the removal.
    run(&agent, next(&first, "And?", finished.own_session)).await;

    let sent = server.requests("SendStreamingMessage");
    assert_eq!(sent[1].message().get("contextId"), None);
    assert!(sent[1].texts().len() > 1, "it is introduced: {:?}", sent[1].texts());
}

/// The removal comes while the agent works.
#[tokio::test]
async fn a_context_with_a_removed_turn_is_not_remembered() {
    let server = streaming(vec![task_event("WORKING"), Piece::Stall]).await;
    let (agent, first) = (Arc::new(agent(server.section())), turn("Hi"));
    let (events, mut reported) = RunEvents::channel();
    let cancel = CancellationToken::new();
    let runs = tokio::spawn({
        let (agent, turn, cancel) = (Arc::clone(&agent), first.clone(), cancel.clone());
        async move { agent.run(turn, events, cancel).await }
    });
    let mut stored = Vec::new();
    while let Some(event) = reported.recv().await {
        let rejoinder_core::RunEvent::Remember(id, answer) = event else { continue };
        if stored.is_empty() {
            let change = SessionNoticeChange::TurnRemoved(first.turn);
            let notice = SessionNotice { session: first.place.session, own_session: None, change };
            agent.session_changed(notice).await.expect("it is done");
        } else {
            cancel.cancel();
        }
        stored.push(id);
        answer.send(Ok(())).expect("the run waits for it");
    }

    assert!(runs.await.expect("no panic").is_err());
    assert!(stored.len() == 2 && stored[0].contains("c1") && stored[1].is_empty(), "{stored:?}");
}

#[rstest]
#[tokio::test]
async fn a_run_that_is_stopped_cancels_its_task(#[values(JSON_RPC, HTTP_JSON)] binding: &'static str) {
    let server = streaming_with(binding, vec![task_event("WORKING"), Piece::Stall]).await;
    let agent = agent(server.section());
    let (events, mut reported) = RunEvents::channel();
    let cancel = CancellationToken::new();
    let begun = async {
        while let Some(event) = reported.recv().await {
            if let rejoinder_core::RunEvent::Remember(_, answer) = event {
                answer.send(Ok(())).expect("the run waits for it");
                cancel.cancel();
            }
        }
    };

    let (outcome, ()) = tokio::join!(agent.run(turn("Hi"), events, cancel.clone()), begun);

    assert!(outcome.is_err());
    server.until("CancelTask").await;
    assert_eq!(server.requests("CancelTask")[0].body["params"]["id"], "t1");
}

/// A proxy that ends streams after a minute costs no answer. Some servers say in the next stream what they have said before, and some do
/// not keep the state of a task up to date without its first stream.
#[rstest]
#[case::repeated(&["WORKING", "COMPLETED"], &["Hel", "Hello."], &["Hel", "lo."])]
#[case::not_kept(&["WORKING", "WORKING"], &["Hel", "Hel"], &["lo."])]
#[tokio::test]
async fn a_stream_that_breaks_is_followed_by_another_one(
    #[case] states: &'static [&'static str],
    #[case] texts: &'static [&'static str],
    #[case] streamed: &'static [&'static str],
    #[values(JSON_RPC, HTTP_JSON)] binding: &'static str,
) {
    let mut asked = 0;
    let server = Server::with(binding, true, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream([task_event("WORKING"), text_event("Hel"), Piece::Cut]),
        "SubscribeToTask" => {
            let known = event(&json!({ "task": task("WORKING", None, Some("Hel")) }));
            let more = streamed.iter().map(|text| text_event(text));
            Answer::stream([known].into_iter().chain(more).chain([status_event("COMPLETED", None)]))
        }
        _ => {
            asked += 1;
            Answer::result(&task(states[asked - 1], None, Some(texts[asked - 1])))
        }
    })
    .await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    assert_eq!((finished.text(), finished.draft.as_str()), ("Hello.", "Hello."));
    assert!(server.requests("CancelTask").is_empty());
}

#[rstest]
#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_for_the_state(#[values(JSON_RPC, HTTP_JSON)] binding: &'static str) {
    let mut asked = 0;
    let server = Server::with(binding, false, move |request| match request.method() {
        "SendMessage" => Answer::result(&json!({ "task": task("SUBMITTED", None, None) })),
        "GetTask" => {
            asked += 1;
            Answer::result(&task(["WORKING", "WORKING", "COMPLETED"][asked - 1], None, Some("Done.")))
        }
        other => panic!("not asked for: {other}"),
    })
    .await;

    let finished = run(&agent(server.section()), turn("Hi")).await;

    assert_eq!((finished.text(), finished.draft.as_str()), ("Done.", "Done."));
    assert_eq!(server.requests("SendMessage")[0].body["params"]["configuration"]["returnImmediately"], true);
}

/// After a crash of the gateway the turn runs again: what the agent does for it is followed, and not begun a second time.
#[rstest]
#[case::it_works(&["WORKING", "COMPLETED"], 0)]
#[case::it_has_ended(&["COMPLETED"], 0)]
#[case::it_has_failed(&["FAILED"], 1)]
#[case::it_was_canceled(&["CANCELED"], 1)]
#[tokio::test]
async fn a_task_is_followed_after_a_crash(
    #[case] states: &'static [&'static str],
    #[case] messages: usize,
    #[values(JSON_RPC, HTTP_JSON)] binding: &'static str,
) {
    let mut asked = 0;
    let server = Server::with(binding, false, move |request| {
        if request.method() == "SendMessage" {
            return Answer::result(&json!({ "task": task("COMPLETED", None, Some("Done.")) }));
        }
        asked += 1;
        Answer::result(&task(states[asked - 1], None, Some("Done.")))
    })
    .await;
    let turn = turn("Hi");
    let own = json!({ "context": "c1", "task": { "id": "t1", "turn": turn.turn.to_string(), "messages": 1, "waits": false } });
    let again = turn.with(|turn| {
        turn.attempt = 2;
        turn.place.own_session = Some(own.to_string());
    });

    let finished = run(&agent(server.section()), again).await;

    assert_eq!((finished.text(), server.requests("SendMessage").len()), ("Done.", messages));
}

fn busy() -> Answer {
    Answer::of("text/plain", vec![raw("busy")]).with_status(503)
}

/// The next run of the turn asks again what became of it, in place of the message.
#[rstest]
#[case::cut_after_a_crash(true, Answer::of("application/json", vec![raw("{"), Piece::Cut]))]
#[case::of_a_proxy_after_a_crash(true, busy())]
#[case::of_a_proxy(false, busy())]
#[tokio::test]
async fn a_task_whose_state_is_not_told_is_not_begun_again(#[case] is_after_crash: bool, #[case] fails: Answer) {
    let mut asked = 0;
    let server = Server::with(JSON_RPC, false, move |request| match request.method() {
        "SendMessage" => Answer::result(&json!({ "task": task("WORKING", None, None) })),
        "GetTask" if asked == 1 => Answer::result(&task("COMPLETED", None, Some("Done."))),
        "GetTask" => {
            asked += 1;
            fails.clone()
        }
        _ => fails.clone(),
    })
    .await;
    let (agent, first) = (agent(server.section()), turn("Hi"));
    let own = json!({ "context": "c1", "task": { "id": "t1", "turn": first.turn.to_string(), "messages": 1, "waits": false } });
    let first = first.with(|turn| turn.place.own_session = is_after_crash.then(|| own.to_string()));

    let failed = run(&agent, first.clone()).await;
    let own_session = failed.own_session.clone();
    let again = run(&agent, first.with(|turn| (turn.attempt, turn.place.own_session) = (2, own_session))).await;

    assert!(failed.outcome.is_err(), "{failed:?}");
    assert_eq!((again.text(), server.requests("SendMessage").len()), ("Done.", usize::from(!is_after_crash)));
}

/// A server that has lost its contexts takes no message in one.
#[rstest]
#[case(-32_001)]
#[case(-32_602)]
#[tokio::test]
async fn a_context_that_is_lost_is_begun_again(
    #[case] code: i64,
    #[values(JSON_RPC, HTTP_JSON)] binding: &'static str,
) {
    let server = Server::with(binding, true, move |request| match request.message().get("contextId") {
        Some(_) => Answer::error(code, "unknown"),
        None => says(&["Hello again."]),
    })
    .await;
    let own_session = Some(json!({ "context": "c0" }).to_string());

    let finished = run(&agent(server.section()), turn("Hi").with(|turn| turn.place.own_session = own_session)).await;

    assert_eq!(finished.text(), "Hello again.");
    let sent = server.requests("SendStreamingMessage");
    assert!(sent.len() == 2 && sent[1].texts().len() > 1, "it is introduced: {sent:?}");
    assert!(finished.own_session.is_some_and(|own| own.contains("c1")));
}

#[tokio::test]
async fn without_an_introduction_the_agent_gets_the_words_alone() {
    let server = streaming(vec![task_event("WORKING"), text_event("Yes."), status_event("COMPLETED", None)]).await;
    let agent = agent(A2aSection { introduction: false, ..server.section() });

    run(&agent, turn("Hi")).await;

    assert_eq!(server.requests("SendStreamingMessage")[0].texts(), ["Hi"]);
    assert_eq!(agent.history(), 0);
}

/// The tenant that the card names is in every request: in the path of HTTP+JSON, and in the message.
#[rstest]
#[case(JSON_RPC, ["POST /", "POST /"])]
#[case(HTTP_JSON, ["POST /acme/message:stream", "POST /acme/tasks/t1:cancel"])]
#[tokio::test]
async fn every_request_names_the_tenant_of_the_interface(#[case] binding: &'static str, #[case] lines: [&str; 2]) {
    let works = || Answer::stream([task_event("WORKING"), Piece::Stall]);
    let server = Server::directed(move |request, own| {
        let mut card = card(own, binding, true);
        card["supportedInterfaces"][0]["tenant"] = "acme".into();
        match request.method() {
            "" => Answer::json(&card),
            _ if binding == HTTP_JSON => http_json::answer(works()),
            _ => works(),
        }
    })
    .await;
    let idle_timeout = std::time::Duration::from_millis(100);

    let finished = run(&agent(A2aSection { idle_timeout, ..server.section() }), turn("Hi")).await;

    assert!(finished.outcome.is_err());
    server.until("CancelTask").await;
    let sent = ["SendStreamingMessage", "CancelTask"].map(|method| server.requests(method).remove(0));
    assert_eq!([&*sent[0].line, &*sent[1].line], lines);
    assert!(sent.iter().all(|request| request.body["params"]["tenant"] == "acme"), "{sent:?}");
}
