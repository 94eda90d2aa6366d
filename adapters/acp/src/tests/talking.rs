//! What real agents do: notices among the chunks, conversations that are told again, permissions.

use std::sync::{Arc, atomic::Ordering};

use rejoinder_core::{
    ActivityState, AgentError, AgentFile, AgentMessage, AgentRuntime as _, AgentTurn, Attachment, HistoryLine,
    LineState, Outcome, RunEvent, RunEvents, SessionNotice, SessionNoticeChange, Speaker, ToolUse, Usage,
    conformance::runtime::turn,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::double::{Act, Double, run, run_listening, run_remembering, says};
use crate::{connection::Connection, event::CallError, prompt::Prompt};

pub(super) fn text(outcome: Result<Outcome, AgentError>) -> String {
    match outcome {
        Ok(Outcome::Reply(reply)) => reply.text,
        other => panic!("no reply: {other:?}"),
    }
}

/// What a person saw at the end.
fn seen(events: &[RunEvent]) -> String {
    events.iter().fold(String::new(), |seen, event| match event {
        RunEvent::Text(text) => seen + text,
        RunEvent::Rewrite(text) => text.clone(),
        _ => seen,
    })
}

/// The same turn in another run, with what was said before.
pub(super) fn again(before: &AgentTurn, said: &str) -> AgentTurn {
    let line = |speaker, text: &str| HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: text.to_owned(),
        at: before.now,
        state: LineState::Seen,
    };
    let history = [line(Speaker::Person, &before.message.text), line(Speaker::Agent, "An answer.")];
    turn(said).with(|turn| {
        turn.place.session = before.place.session;
        turn.past.history = history.map(Arc::new).into();
    })
}

/// Codex warns before its answer, Claude after it; neither has an id.
#[tokio::test]
async fn a_notice_is_no_answer() {
    let double = Double::new(|_| {
        let warning = "Warning: Model metadata not found.".to_owned();
        let advert = "**Warning:** We're changing auto mode.".to_owned();
        vec![Act::Says(None, warning), says("Hello"), says(", Ada."), Act::Says(None, advert)]
    });

    let (outcome, events) = run(&double.runtime(), turn("Hi")).await;

    assert_eq!(text(outcome), "Hello, Ada.");
    assert!(matches!(&events[1], RunEvent::Text(text) if text.starts_with("Warning")), "{events:?}");
    assert_eq!(seen(&events), "Hello, Ada.");
}

#[tokio::test]
async fn every_chunk_counts_where_none_has_an_id() {
    let double = Double::new(|_| vec![Act::Says(None, "Hello, ".to_owned()), Act::Says(None, "Ada.".to_owned())]);

    let (outcome, events) = run(&double.runtime(), turn("Hi")).await;

    assert_eq!((text(outcome).as_str(), seen(&events).as_str()), ("Hello, Ada.", "Hello, Ada."));
}

#[tokio::test]
async fn thoughts_are_no_part_of_the_answer_and_tools_and_tokens_are_reported() {
    let double = Double::new(|_| {
        let thought = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "Hm." } });
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "rawInput": "." });
        let done =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawOutput": "a" });
        let news = json!({ "sessionUpdate": "news_of_a_later_version", "x": 1 });
        let told = [thought, call, done, news].into_iter().map(Act::Updates);
        told.chain([Act::Writes("{\"jsonrpc\":\"2.0\",\"method\":\"_auth/status_update\"}".to_owned()), says("Done.")])
            .collect()
    });

    let (outcome, events) = run(&double.runtime(), turn("Hi")).await;

    assert_eq!((text(outcome).as_str(), seen(&events).as_str()), ("Done.", "Done."));
    let tool = ToolUse { name: "ls".to_owned(), arguments: ".".to_owned(), result: "a".to_owned(), duration_ms: None };
    assert!(events.iter().any(|event| matches!(event, RunEvent::Tool(used) if *used == tool)), "{events:?}");
    let of_events = events.iter().filter_map(|event| match event {
        RunEvent::Activity(activity) => Some((activity.title.as_str(), activity.state)),
        _ => None,
    });
    let activities: Vec<_> = of_events.collect();
    assert_eq!(activities, [("ls", ActivityState::Working), ("ls", ActivityState::Done)]);
    assert!(events.iter().any(|event| matches!(event, RunEvent::Thought(thought) if thought == "Hm.")), "{events:?}");
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    assert!(events.iter().any(|event| matches!(event, RunEvent::Usage(used) if *used == usage)), "{events:?}");
}

fn titles(events: &[RunEvent]) -> Vec<&str> {
    let titles = events.iter().filter_map(|event| match event {
        RunEvent::Title(title) => Some(title.as_str()),
        _ => None,
    });
    titles.collect()
}

/// An update that says something else of the session has no title.
#[tokio::test]
async fn a_title_is_reported() {
    let double = Double::new(|_| {
        let info =
            |name: &str, value: Value| Act::Updates(json!({ "sessionUpdate": "session_info_update", name: value }));
        vec![
            info("updatedAt", "2026-01-01T00:00:00Z".into()),
            says("Yes."),
            info("title", "Fix the login".into()),
            info("title", Value::Null),
        ]
    });

    let (outcome, events) = run(&double.runtime(), turn("Hi")).await;

    assert_eq!((text(outcome).as_str(), titles(&events)), ("Yes.", vec!["Fix the login"]));
}

/// Codex takes its first message for a person's, and tells the title again with the conversation.
#[tokio::test]
async fn a_title_that_says_nothing_new_is_not_reported() {
    let double = Double::that_can(json!({ "loadSession": true }), Some(Vec::new()), |prompt| {
        let told = prompt["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
        let title = told.chars().take(80).collect::<String>() + "…";
        vec![Act::Updates(json!({ "sessionUpdate": "session_info_update", "title": title })), says("Yes.")]
    });

    let (one, new) = run(&double.runtime(), turn("Hi")).await;
    let (other, loaded) =
        run(&double.runtime(), turn("More").with(|turn| turn.place.own_session = Some("s1".to_owned()))).await;

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    assert_eq!((titles(&new), titles(&loaded)), (vec![], vec!["More…"]));
}

/// Claude thinks of a title while it answers, and may take longer.
#[tokio::test]
async fn a_title_after_the_end_is_reported_with_the_next_prompt() {
    let double = Double::that_can(json!({ "titlesLate": "Fix the login" }), None, |_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));

    let (one, before) = run(&acp, first.clone()).await;
    let (other, after) = run(&acp, again(&first, "More")).await;

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    assert_eq!((titles(&before), titles(&after)), (vec![], vec!["Fix the login"]));
}

/// What it takes is known once its process has said so.
#[tokio::test]
async fn an_agent_gets_the_sounds_and_documents_that_it_takes() {
    let can = json!({ "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true } });
    let double = Double::that_can(can, None, |_| vec![says("I see.")]);
    let acp = double.runtime();
    assert_eq!((acp.reads("audio/ogg"), acp.reads("application/pdf")), (None, None));
    let _ = run(&acp, turn("Hi")).await;
    assert!(acp.reads("audio/ogg").is_some() && acp.reads("application/pdf").is_some());
    let file = |name: &str, media_type: &str| {
        let (name, media_type, url) = (name.to_owned(), media_type.to_owned(), "telegram:1".to_owned());
        AgentFile { attachment: Attachment { name, media_type, url }, bytes: Some(b"abc".to_vec().into()), text: None }
    };
    let files = vec![file("a.ogg", "audio/ogg"), file("../a b.pdf", "application/pdf"), file("a.mp4", "video/mp4")];

    let _ = run(&acp, turn("Here").with(|turn| turn.message.attachments = files)).await;

    let given = double.0.given.lock();
    let prompt = given.iter().rfind(|given| given["method"] == "session/prompt").expect("a prompt");
    let parts = prompt["params"]["prompt"].as_array().expect("parts").iter().filter(|part| part["type"] != "text");
    let expected = json!([
        { "type": "audio", "mimeType": "audio/ogg", "data": "YWJj" },
        { "type": "resource", "resource": {
            "uri": "attachment:///..%2Fa%20b.pdf", "mimeType": "application/pdf", "blob": "YWJj" } },
    ]);
    assert_eq!(json!(parts.collect::<Vec<_>>()), expected);
}

/// One that takes no files is given their names.
#[tokio::test]
async fn an_agent_gets_no_file_that_it_does_not_take() {
    let double = Double::new(|_| vec![says("I see.")]);
    let acp = double.runtime();

    let _ = run(&acp, turn("Hi")).await;

    let read =
        ["image/png", "audio/ogg", "application/pdf", "text/plain"].map(|media_type| acp.reads(media_type).is_some());
    assert_eq!(read, [false, false, false, true]);
}

#[tokio::test]
async fn the_tokens_of_all_prompts_of_a_run_count() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let first = turn("Hi");
    let sender = first.message.sender.clone();
    let came = AgentMessage {
        sender,
        text: "More".to_owned(),
        forwarded: None,
        attachments: Vec::new(),
        voice: None,
        quoted: None,
        reaction: None,
    };

    let (outcome, events, _) = run_listening(&double.runtime(), first, vec![came]).await;

    assert_eq!(text(outcome), "Yes.Yes.");
    let used: Vec<_> = events.iter().filter(|event| matches!(event, RunEvent::Usage(_))).collect();
    let total = Usage { input_tokens: 14, output_tokens: 6 };
    assert!(matches!(used.last(), Some(RunEvent::Usage(used)) if *used == total), "{used:?}");
}

/// The agent says what the session has cost until now.
fn has_cost(amount: f64, currency: &str) -> Act {
    let cost = json!({ "amount": amount, "currency": currency });
    Act::Updates(json!({ "sessionUpdate": "usage_update", "used": 53_000, "size": 200_000, "cost": cost }))
}

/// What a run cost, as it says last.
fn cost(events: &[RunEvent]) -> Option<String> {
    events.iter().rev().find_map(|event| match event {
        RunEvent::Cost(cost, _) => Some(cost.to_string()),
        _ => None,
    })
}

/// An agent whose sessions have cost as much as the latest message says.
fn spender(capabilities: Value) -> Double {
    Double::that_can(capabilities, Some(Vec::new()), |prompt| {
        let said = prompt["params"]["prompt"].as_array().and_then(|blocks| blocks.last());
        let said = said.and_then(|said| said["text"].as_str()).unwrap_or_default();
        let amounts = said.split(' ').map(|amount| amount.parse::<f64>().expect("a number"));
        amounts.map(|amount| has_cost(amount, "USD")).chain([says("Yes.")]).collect()
    })
}

#[tokio::test]
async fn a_run_costs_what_it_adds_to_the_cost_of_its_session() {
    let acp = spender(json!({})).runtime();
    let first = turn("0.5 0.75");

    let (_, one) = run(&acp, first.clone()).await;
    let (_, other) = run(&acp, again(&first, "2")).await;
    let (_, of_another_session) = run(&acp, turn("0.25")).await;

    let expected = ["0.75 USD", "1.25 USD", "0.25 USD"].map(|cost| Some(cost.to_owned()));
    assert_eq!([cost(&one), cost(&other), cost(&of_another_session)], expected);
}

#[tokio::test]
async fn a_cost_that_goes_down_and_up_again_counts_once() {
    let acp = spender(json!({})).runtime();
    let first = turn("1 0.5 1");

    let (_, one) = run(&acp, first.clone()).await;
    let (_, other) = run(&acp, again(&first, "0.75 1.25")).await;

    assert_eq!([cost(&one), cost(&other)], ["1.00 USD", "0.25 USD"].map(|cost| Some(cost.to_owned())));
}

/// The first cost may have that of earlier runs in it, or not.
#[rstest]
#[case::resume(json!({ "sessionCapabilities": { "resume": {} } }))]
#[case::load(json!({ "loadSession": true }))]
#[tokio::test]
async fn what_a_session_cost_before_it_was_opened_again_is_no_cost_of_a_run(#[case] capabilities: Value) {
    let double = spender(capabilities);
    let first = turn("0.5");
    run(&double.runtime(), first.clone()).await.0.expect("an answer");

    let acp = double.runtime();
    let next = |said| again(&first, said).with(|turn| turn.place.own_session = Some("s1".to_owned()));
    let (_, opened) = run(&acp, next("2 2.25")).await;
    let (_, later) = run(&acp, next("3")).await;

    assert_eq!((cost(&opened), cost(&later)), (None, Some("0.75 USD".to_owned())));
}

/// It counts for the run, if that has not ended when it comes, or for the next one.
#[tokio::test]
async fn a_cost_after_the_end_counts_once() {
    let late = json!({ "amount": 0.5, "currency": "USD" });
    let acp = spender(json!({ "costsLate": late })).runtime();
    let first = turn("0.25");

    let (_, one) = run(&acp, first.clone()).await;
    let (_, other) = run(&acp, again(&first, "0.75")).await;

    let (one, other) = (cost(&one).expect("a cost"), cost(&other).expect("a cost"));
    assert!(matches!((&*one, &*other), ("0.25 USD", "0.50 USD") | ("0.50 USD", "0.25 USD")), "{one}, {other}");
}

#[rstest]
#[case::no_cost(Act::Updates(json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2 })))]
#[case::null(Act::Updates(json!({ "sessionUpdate": "usage_update", "cost": null })))]
#[case::half(Act::Updates(json!({ "sessionUpdate": "usage_update", "cost": { "amount": null } })))]
#[case::nothing(has_cost(0.0, "USD"))]
#[case::negative(has_cost(-1.0, "USD"))]
#[case::far_too_much(has_cost(1e12, "USD"))]
#[case::no_currency(has_cost(1.0, "tokens"))]
#[case::a_huge_number(Act::Writes(
    r#"{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"usage_update","cost":{"amount":1e999}}}}"#.to_owned()
))]
#[tokio::test]
async fn what_is_no_cost_is_not_reported_and_spoils_no_answer(#[case] act: Act) {
    let double = Double::new(move |_| vec![act.clone(), says("Yes.")]);

    let (outcome, events) = run(&double.runtime(), turn("Hi")).await;

    assert_eq!((text(outcome).as_str(), cost(&events)), ("Yes.", None));
}

/// A session is told the instructions once, and remembers the rest.
#[tokio::test]
async fn a_session_goes_on() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));

    let (one, _) = run(&acp, first.clone()).await;
    let (other, _) = run(&acp, again(&first, "More")).await;

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    let methods = ["initialize", "session/new", "session/prompt", "session/prompt"];
    assert_eq!(double.methods(), methods);
    assert_eq!((double.prompt(0).len(), double.prompt(1)), (2, vec!["More".to_owned()]));
}

/// The second run waits until the first has opened the session, and the agent has answered in it.
#[tokio::test]
async fn two_runs_of_one_session_open_it_once() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));

    let ((one, _), (other, _)) = tokio::join!(run(&acp, first.clone()), run(&acp, again(&first, "More")));

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt", "session/prompt"]);
}

const DIES: &str = "die";

/// An agent whose process ends with the answer to [`DIES`].
fn mortal(capabilities: serde_json::Value, load: Option<Vec<&'static str>>) -> Double {
    Double::that_can(capabilities, load, |prompt| {
        let said = prompt["params"]["prompt"].as_array().and_then(|blocks| blocks.last());
        let dies = said.is_some_and(|said| said["text"] == DIES);
        if dies { vec![Act::Dies] } else { vec![says("New.")] }
    })
}

/// Claude, Codex and OpenCode tell the old conversation again before the response to `session/load`.
#[rstest]
#[case::resume(json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }), "session/resume")]
#[case::load(json!({ "loadSession": true }), "session/load")]
#[case::load_that_tells_late(json!({ "loadSession": true, "tellsLate": true }), "session/load")]
#[tokio::test]
async fn a_session_of_a_lost_process_is_opened_again_and_says_nothing_twice(
    #[case] capabilities: serde_json::Value,
    #[case] method: &str,
) {
    let double = mortal(capabilities, Some(vec!["Old ", "answer."]));
    let (acp, first) = (double.runtime(), turn(DIES));

    let (lost, _) = run(&acp, first.clone()).await;
    let (outcome, events) = run(&acp, again(&first, "More")).await;

    assert!(matches!(&lost, Err(AgentError::Broken(_))), "{lost:?}");
    assert_eq!((text(outcome).as_str(), seen(&events).as_str()), ("New.", "New."));
    let methods = ["initialize", "session/new", "session/prompt", "initialize", method, "session/prompt"];
    assert_eq!(double.methods(), methods);
    assert_eq!(double.prompt(1), ["More"]);
}

/// Another process of the gateway has the id that the first one stored. What the agent tells again is no answer.
#[rstest]
#[case::resume(json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }), &["session/resume"], true)]
#[case::load(json!({ "loadSession": true }), &["session/load"], true)]
#[case::load_after_a_refusal(
    json!({ "loadSession": true, "sessionCapabilities": { "resume": { "fails": true } } }),
    &["session/resume", "session/load"],
    true
)]
#[case::refused(
    json!({ "sessionCapabilities": { "resume": { "fails": true } } }),
    &["session/resume", "session/new"],
    false
)]
#[case::cannot(json!({}), &["session/new"], false)]
#[tokio::test]
async fn a_session_goes_on_after_a_restart_of_the_gateway(
    #[case] capabilities: serde_json::Value,
    #[case] opens: &[&str],
    #[case] is_known: bool,
) {
    let double = Double::that_can(capabilities, Some(vec!["Old ", "answer."]), |_| vec![says("New.")]);
    let first = turn("Hi");
    let (_, _, stored) = run_remembering(&double.runtime(), first.clone()).await;
    assert_eq!(stored, ["s1"]);

    let next = again(&first, "More").with(|turn| turn.place.own_session = stored.first().cloned());
    let (outcome, events, stored) = run_remembering(&double.runtime(), next).await;

    assert_eq!((text(outcome).as_str(), seen(&events).as_str()), ("New.", "New."));
    let methods: Vec<_> = ["initialize"].iter().chain(opens).chain(&["session/prompt"]).copied().collect();
    assert_eq!(double.methods()[3..], methods);
    let told = double.prompt(1);
    if is_known {
        assert_eq!((told, stored), (vec!["More".to_owned()], Vec::new()));
    } else {
        assert!(told.len() == 3 && told[1].contains("An answer."), "{told:?}");
        assert_eq!(stored, ["s2"]);
    }
}

/// A restarted agent may count its sessions from the beginning.
#[tokio::test]
async fn an_id_that_an_agent_gives_twice_opens_no_other_conversation() {
    let double = Double::that_can(json!({ "sessionCapabilities": { "resume": {} } }), None, |_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));
    run(&acp, first.clone()).await.0.expect("an answer");

    let other = turn("Me too").with(|turn| turn.place.own_session = Some("s1".to_owned()));
    run(&acp, other).await.0.expect("an answer");
    double.0.sessions.store(0, Ordering::SeqCst);
    let (third, _) = run(&acp, turn("And me")).await;

    let methods = ["initialize", "session/new", "session/prompt", "session/new", "session/prompt", "session/new"];
    assert_eq!(double.methods(), methods);
    assert!(matches!(&third, Err(AgentError::Broken(why)) if why.contains("the id of another one")), "{third:?}");
}

#[tokio::test]
async fn a_prompt_takes_no_other_ones_session() {
    let (connection, _written) = Connection::new(1, Arc::default());
    let permit = || Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a permit");
    let _first = Prompt::send(Arc::clone(&connection), "s1".into(), json!({}), permit()).expect("it is sent");

    let second = Prompt::send(Arc::clone(&connection), "s1".into(), json!({}), permit());

    assert!(matches!(second.err(), Some(CallError::Refused(_))));
}

#[tokio::test]
async fn files_of_an_answer_are_sent() {
    let chunk = |id: Option<&str>, data: &str| {
        let image = json!({ "type": "image", "data": data, "mimeType": "image/png" });
        Act::Updates(json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": image }))
    };
    let (notice, first, second) = (chunk(None, "bm8="), chunk(Some("m1"), "aGk="), chunk(Some("m1"), "eW91"));
    let script = [notice.clone(), first, says("Here."), notice, second];
    let double = Double::new(move |_| script.to_vec());

    let (outcome, _) = run(&double.runtime(), turn("Hi")).await;

    let Ok(Outcome::Reply(reply)) = outcome else { panic!("{outcome:?}") };
    let urls: Vec<_> = reply.attachments.iter().map(|file| &*file.url).collect();
    assert_eq!((&*reply.text, urls), ("Here.", vec!["data:image/png;base64,aGk=", "data:image/png;base64,eW91"]));
}

/// What is stored may be of before a turn was removed.
#[tokio::test]
async fn a_session_from_which_a_turn_was_removed_is_not_opened_again() {
    let double = Double::that_can(json!({ "sessionCapabilities": { "resume": {} } }), None, |_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));
    let change = SessionNoticeChange::TurnRemoved(first.turn);
    let notice = SessionNotice { session: first.place.session, own_session: Some("s0".to_owned()), change };
    acp.session_changed(notice).await.expect("it forgets");

    let (outcome, _) = run(&acp, first.with(|turn| turn.place.own_session = Some("s0".to_owned()))).await;

    assert_eq!(text(outcome), "Yes.");
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt"]);
    assert!(!acp.forgets_turns());
}

#[rstest]
#[case::it_can(json!({ "delete": {} }), true, true)]
#[case::it_cannot(json!({}), false, true)]
#[case::it_fails(json!({ "delete": { "fails": true } }), true, false)]
#[tokio::test]
async fn a_session_that_is_not_used_any_more_is_deleted(
    #[case] capabilities: Value,
    #[case] is_asked: bool,
    #[case] is_done: bool,
) {
    let double = Double::that_can(json!({ "sessionCapabilities": capabilities }), None, |_| vec![says("Yes.")]);
    let (acp, first) = (double.runtime(), turn("Hi"));
    let (_, _, stored) = run_remembering(&acp, first.clone()).await;
    let notice = |change| SessionNotice { session: first.place.session, own_session: stored.first().cloned(), change };

    acp.session_changed(notice(SessionNoticeChange::Left)).await.expect("it is only left");
    let removed = acp.session_changed(notice(SessionNoticeChange::TurnRemoved(first.turn))).await;
    let again = acp.session_changed(notice(SessionNoticeChange::TurnRemoved(turn("Hi").turn))).await;
    let told = acp.session_changed(notice(SessionNoticeChange::Deleted)).await;

    assert_eq!([removed, again], [Ok(()), Ok(())], "the next turn has another session in any case");
    assert_eq!(told.is_ok(), is_done, "{told:?}");
    let deleted = double.methods().iter().filter(|method| *method == "session/delete").count();
    assert_eq!(deleted, if is_asked { 2 } else { 0 });
}

/// Its run is let go on: its answer is wanted.
#[tokio::test]
async fn a_session_is_not_deleted_while_the_agent_works_in_it() {
    let goes_on = CancellationToken::new();
    let script = [Act::Waits(goes_on.clone()), says("Yes.")];
    let double = Double::that_can(json!({ "sessionCapabilities": { "delete": {} } }), None, move |_| script.to_vec());
    let (acp, first) = (double.runtime(), turn("Hi"));
    let change = SessionNoticeChange::Deleted;
    let notice = SessionNotice { session: first.place.session, own_session: Some("s1".to_owned()), change };
    let deletes = async {
        double.until_called("session/prompt").await;
        let waits =
            tokio::time::timeout(std::time::Duration::from_millis(50), acp.session_changed(notice.clone())).await;
        let again = acp.session_changed(notice.clone()).await;
        let asked = double.methods().iter().filter(|method| *method == "session/delete").count();
        goes_on.cancel();
        (waits.is_err(), again.is_err(), asked)
    };

    let ((outcome, _), refused) = tokio::join!(run(&acp, first.clone()), deletes);

    assert_eq!((text(outcome).as_str(), refused), ("Yes.", (true, true, 0)));
    assert_eq!(acp.session_changed(notice).await, Ok(()));
    assert_eq!(double.methods().last().map(String::as_str), Some("session/delete"));
}

#[tokio::test]
async fn a_session_from_which_a_turn_is_removed_while_it_is_loaded_is_not_used() {
    let double = Double::that_can(json!({ "loadSession": true }), Some(Vec::new()), |_| vec![says("Yes.")]);
    let (acp, first, loads) = (double.runtime(), turn("Hi"), CancellationToken::new());
    *double.0.loads.lock() = Some(loads.clone());
    let removes = async {
        double.until_called("session/load").await;
        let change = SessionNoticeChange::TurnRemoved(first.turn);
        let notice = SessionNotice { session: first.place.session, own_session: None, change };
        acp.session_changed(notice).await.expect("it forgets");
        loads.cancel();
    };
    let given = first.clone().with(|turn| turn.place.own_session = Some("s0".to_owned()));

    let ((outcome, _, stored), ()) = tokio::join!(run_remembering(&acp, given), removes);

    assert_eq!((text(outcome).as_str(), stored), ("Yes.", vec![String::new()]));
    assert_eq!(double.methods(), ["initialize", "session/load", "session/new", "session/prompt"]);
}

/// The run has the transcript of before.
#[tokio::test]
async fn what_is_removed_while_the_process_starts_is_in_no_session_that_is_kept() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let (acp, first) = (double.idle(), turn("Hi"));
    let removes = async {
        let change = SessionNoticeChange::TurnRemoved(first.turn);
        let notice = SessionNotice { session: first.place.session, own_session: None, change };
        acp.session_changed(notice).await.expect("it forgets");
        let runs = Arc::clone(&acp);
        tokio::spawn(async move { runs.keep_running(CancellationToken::new()).await });
    };

    // The run begins first.
    let ((one, _, stored), ()) = tokio::join!(biased; run_remembering(&acp, first.clone()), removes);
    let (other, _) = run(&acp, again(&first, "More")).await;

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    assert_eq!(stored, [""]);
    let methods = ["initialize", "session/new", "session/prompt", "session/new", "session/prompt"];
    assert_eq!(double.methods(), methods);
}

#[tokio::test]
async fn no_id_is_stored_if_that_of_a_new_session_cannot_be() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let (acp, (events, mut reported)) = (double.runtime(), RunEvents::channel());
    let fails = async {
        let mut tried = Vec::new();
        while let Some(event) = reported.recv().await {
            if let RunEvent::Remember(id, answer) = event {
                tried.push(id);
                let _ = answer.send(if tried.len() < 3 { Err("the disk is full".to_owned()) } else { Ok(()) });
            }
        }
        tried
    };

    let (outcome, tried) = tokio::join!(acp.run(turn("Hi"), events, CancellationToken::new()), fails);

    assert_eq!(text(outcome), "Yes.");
    assert_eq!(tried, ["s1", "", ""]);
}

/// Gemini says that it can load sessions, and refuses.
#[rstest]
#[case::says_that_it_can(json!({ "loadSession": true }), Some("session/load"))]
#[case::cannot(json!({}), None)]
#[tokio::test]
async fn a_session_that_cannot_be_opened_again_is_told_what_was_said(
    #[case] capabilities: serde_json::Value,
    #[case] tried: Option<&str>,
) {
    let double = mortal(capabilities, None);
    let (acp, first) = (double.runtime(), turn(DIES));

    let (lost, _) = run(&acp, first.clone()).await;
    let (outcome, _) = run(&acp, again(&first, "More")).await;

    assert!(lost.is_err(), "{lost:?}");
    assert_eq!(text(outcome), "New.");
    let begins = ["initialize", "session/new", "session/prompt", "initialize"];
    let methods: Vec<_> = begins.into_iter().chain(tried).chain(["session/new", "session/prompt"]).collect();
    assert_eq!(double.methods(), methods);
    let told = double.prompt(1);
    assert!(told.len() == 3 && told[1].contains("An answer.") && told[2] == "More", "{told:?}");
}

/// The next run in a session waits until the agent has ended its work on the prompt before.
#[tokio::test]
async fn a_cancelled_prompt_is_told_to_the_agent() {
    let double = Double::new(|_| vec![says("Let me"), Act::Hangs]);
    let (acp, cancel) = (double.runtime(), CancellationToken::new());
    let (events, mut reported) = RunEvents::channel();
    let works = async {
        while let Some(event) = reported.recv().await {
            if matches!(event, RunEvent::Text(_)) {
                cancel.cancel();
            }
        }
    };

    let (outcome, ()) = tokio::join!(acp.run(turn("Hi"), events, cancel.clone()), works);

    assert!(outcome.is_err());
    assert_eq!(double.methods().last().map(String::as_str), Some("session/cancel"));
    assert_eq!(double.0.working.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_mode_is_set_in_each_new_session() {
    let double = Double::new(|_| vec![says("Yes.")]);
    let settings = crate::AcpSection {
        mode: Some("default".to_owned()),
        cwd: Some("/".to_owned()),
        ..crate::AcpSection::default()
    };
    let acp = std::sync::Arc::new(crate::Acp::with_launcher("main".into(), settings, Box::new(double.clone())));
    let runs = std::sync::Arc::clone(&acp);
    tokio::spawn(async move { runs.keep_running(CancellationToken::new()).await });

    let (outcome, _) = run(&acp, turn("Hi")).await;

    assert_eq!(text(outcome), "Yes.");
    let methods = ["initialize", "session/new", "session/set_mode", "session/prompt"];
    assert_eq!(double.methods(), methods);
}

/// An agent that asks all the same gets the answer that the protocol wants.
#[tokio::test]
async fn files_are_not_offered() {
    let params = json!({ "sessionId": "s1", "path": "/a" });
    let asks = json!({ "jsonrpc": "2.0", "id": "a", "method": "fs/read_text_file", "params": params }).to_string();
    let double = Double::new(move |_| vec![Act::Writes(asks.clone()), says("Yes.")]);

    let (acp, first) = (double.runtime(), turn("Hi"));

    let (one, _) = run(&acp, first.clone()).await;
    // What it is given comes in order.
    let (other, _) = run(&acp, again(&first, "More")).await;

    assert_eq!([text(one), text(other)], ["Yes.", "Yes."]);
    let given = double.0.given.lock();
    let answer = given.iter().find(|given| given["id"] == "a").expect("it is answered");
    assert_eq!(answer["error"]["code"], -32_601);
    assert_eq!(
        given[0]["params"]["clientCapabilities"]["fs"],
        json!({ "readTextFile": false, "writeTextFile": false })
    );
}
