//! An agent that asks for permission, and waits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rejoinder_core::{
    AgentApproval, AgentError, AgentMessage, AgentRuntime as _, ApprovalRequest, ApprovalState, RunEvent, RunEvents,
    SessionNotice, SessionNoticeChange, conformance::runtime::turn,
};
use rstest::rstest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    double::{Act, Double, OPTIONS, run, run_listening, says},
    people::{Decided, asked_for, decision, run_deciding, run_stopped, run_undecided},
    talking::{again, text},
};
use crate::AcpSection;

fn tidies() -> Double {
    Double::new(|prompt| {
        let said = prompt["params"]["prompt"].to_string();
        if said.contains("Tidy up") || said.contains("approved") {
            vec![Act::Asks("rm -r build", OPTIONS)]
        } else if said.contains("die") {
            vec![Act::Dies]
        } else {
            vec![says("Hello.")]
        }
    })
}

#[tokio::test]
async fn what_nobody_can_approve_is_rejected_once() {
    let (outcome, _) = run(&tidies().runtime(), turn("Tidy up")).await;

    assert!(text(outcome).contains("o-reject_once"));
}

#[rstest]
#[case::approved(Ok(ApprovalState::Approved), OPTIONS, "o-allow_once")]
#[case::declined(Ok(ApprovalState::Declined), OPTIONS, "o-reject_once")]
#[case::expired(Ok(ApprovalState::Expired), OPTIONS, "o-reject_once")]
#[case::nobody_was_asked(Err("it asks too often"), OPTIONS, "o-reject_once")]
#[case::only_always(Ok(ApprovalState::Approved), &["allow_always"], "cancelled")]
#[case::no_way_to_reject(Ok(ApprovalState::Declined), &["allow_always", "allow_once"], "cancelled")]
#[tokio::test]
async fn a_decision_is_answered_in_the_same_prompt(
    #[case] state: Result<ApprovalState, &'static str>,
    #[case] options: &'static [&'static str],
    #[case] answered: &str,
) {
    let double = Double::new(move |_| vec![says("I tidy up. "), Act::Asks("rm -r build", options), says(" Done.")]);
    let decide = |request: &ApprovalRequest| Some(state.map(|state| decision(request, state)).map_err(str::to_owned));

    let (outcome, asked) = run_deciding(&double.runtime(), turn("Tidy up"), decide, CancellationToken::new()).await;

    let said = text(outcome);
    assert!(said.starts_with("I tidy up.") && said.contains(answered) && said.ends_with("Done."), "{said}");
    let [request] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((request.action.as_str(), request.kind.as_deref()), ("execute: rm -r build", Some("acp.execute")));
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt"]);
}

/// Gemini lists `allow_always` first.
#[tokio::test]
async fn approvers_read_the_names_of_the_options() {
    let double = Double::new(|_| vec![Act::Asks("rm -r build", OPTIONS)]);
    let decide = |request: &ApprovalRequest| Some(Ok(decision(request, ApprovalState::Approved)));

    let (_, asked) = run_deciding(&double.runtime(), turn("Tidy up"), decide, CancellationToken::new()).await;

    let details: Vec<_> = asked.iter().filter_map(|request| request.details.as_deref()).collect();
    let names =
        "If approved: “allow_once”\nIf declined: “reject_once”\nCan be chosen as well: “allow_always” (allow_always)";
    assert_eq!((details, double.answered()), (vec![names], vec!["o-allow_once".to_owned()]));
}

/// The agent may not ask again, and the gateway does when it asks.
#[tokio::test]
async fn an_approver_chooses_what_the_agent_allows_for_ever() {
    let double = Double::new(|_| vec![Act::Asks("rm -r build", OPTIONS), Act::Asks("rm -r build", OPTIONS)]);
    let decide = |request: &ApprovalRequest| {
        let chosen = request.options.first().map(|option| option.name.clone());
        Some(Ok(AgentApproval { chosen, ..decision(request, ApprovalState::Approved) }))
    };

    let (_, asked) = run_deciding(&double.runtime(), turn("Tidy up"), decide, CancellationToken::new()).await;

    assert_eq!((asked.len(), double.answered()), (2, vec!["o-allow_always".to_owned(); 2]));
}

#[tokio::test]
async fn a_decision_about_something_else_allows_nothing() {
    let double = Double::new(|_| vec![Act::Asks("rm -r build", OPTIONS)]);
    let other = |_: &ApprovalRequest| {
        let request = ApprovalRequest::action("execute: ls");
        Some(Ok(decision(&request, ApprovalState::Approved)))
    };

    run_deciding(&double.runtime(), turn("Tidy up"), other, CancellationToken::new()).await.0.expect("an answer");

    assert_eq!(double.answered(), ["o-reject_once"]);
}

#[tokio::test]
async fn several_requests_are_asked_one_at_a_time_and_each_gets_its_own_decision() {
    let double = Double::new(|_| {
        vec![Act::AsksAll(&["rm a", "rm b", "rm c"]), Act::Asks("rm a", OPTIONS), Act::Asks("rm b", OPTIONS)]
    });
    let decide = |request: &ApprovalRequest| {
        let is_declined = request.action == "execute: rm b";
        let state = if is_declined { ApprovalState::Declined } else { ApprovalState::Approved };
        Some(Ok(decision(request, state)))
    };

    let (outcome, asked) = run_deciding(&double.runtime(), turn("Tidy up"), decide, CancellationToken::new()).await;

    text(outcome);
    let asked: Vec<_> = asked.iter().map(|request| request.action.trim_start_matches("execute: ")).collect();
    // An approval is for one call, and a no holds.
    assert_eq!(asked, ["rm a", "rm b", "rm c", "rm a"]);
    let answered = ["o-allow_once", "o-reject_once", "o-allow_once", "o-allow_once", "o-reject_once"];
    assert_eq!(double.answered(), answered);
}

#[expect(clippy::unnecessary_wraps, reason = "a decision may be missing")]
fn declines(request: &ApprovalRequest) -> Option<Decided> {
    Some(Ok(decision(request, ApprovalState::Declined)))
}

/// Qwen Code and OpenCode end there, and Codex says that it was cancelled.
#[rstest]
#[case::end("end_turn")]
#[case::cancelled("cancelled")]
#[tokio::test]
async fn an_agent_that_stops_at_a_no_is_told_to_answer(#[case] reason: &'static str) {
    let double = Double::new(move |prompt| {
        let is_told = prompt["params"]["prompt"].to_string().contains("was not allowed");
        if is_told { vec![says("I leave it.")] } else { vec![Act::AsksQuietly("rm -r build"), Act::Stops(reason)] }
    });

    let (outcome, asked) = run_deciding(&double.runtime(), turn("Tidy up"), declines, CancellationToken::new()).await;

    assert_eq!((text(outcome).as_str(), asked.len()), ("I leave it.", 1));
    let told = double.prompt(1);
    assert!(told.len() == 1 && told[0].contains("execute: rm -r build"), "{told:?}");
}

#[tokio::test]
async fn an_agent_that_stops_at_a_no_is_told_once() {
    let double = Double::new(|_| vec![says("I tidy up."), Act::AsksQuietly("rm -r build")]);

    let (outcome, asked) = run_deciding(&double.runtime(), turn("Tidy up"), declines, CancellationToken::new()).await;

    text(outcome);
    assert_eq!((asked.len(), double.answered()), (1, vec!["o-reject_once".to_owned(); 2]));
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt", "session/prompt"]);
}

/// What the agent has said before is an answer, and the error is none, unless it was in the middle of another answer.
#[rstest]
#[case::answered("I tidy up.", vec![Act::Refuses(-32_000, "overloaded")], Some("I tidy up."))]
#[case::dead("I tidy up.", vec![Act::Dies], Some("I tidy up."))]
#[case::nothing("", vec![Act::Refuses(-32_000, "overloaded")], None)]
#[case::thought("<think>I tidy up.</think>", vec![Act::Refuses(-32_000, "overloaded")], None)]
#[case::half("", vec![says("I could no"), Act::Dies], None)]
#[case::half_of_another("I tidy up.", vec![says("I could no"), Act::Dies], None)]
#[case::half_and_a_no("I tidy up.", vec![says("I could no"), Act::AsksQuietly("rm -r target"), Act::Dies], None)]
#[tokio::test]
async fn an_agent_that_fails_once_it_is_told_of_a_no_has_answered(
    #[case] said: &'static str,
    #[case] fails: Vec<Act>,
    #[case] answer: Option<&str>,
) {
    let double = Double::new(move |prompt| {
        let is_told = prompt["params"]["prompt"].to_string().contains("was not allowed");
        if is_told { fails.clone() } else { vec![says(said), Act::AsksQuietly("rm -r build")] }
    });

    let (outcome, _) = run_deciding(&double.runtime(), turn("Tidy up"), declines, CancellationToken::new()).await;

    assert_eq!(double.methods().iter().filter(|method| *method == "session/prompt").count(), 2);
    assert_eq!(outcome.is_ok(), answer.is_some(), "{outcome:?}");
    if let Some(answer) = answer {
        assert_eq!(text(outcome), answer);
    }
}

/// A message that comes meanwhile does not take the place of it.
#[tokio::test]
async fn an_agent_that_is_steered_is_told_of_its_no_as_well() {
    let double = Double::new(|prompt| {
        let is_first = prompt["params"]["prompt"].to_string().contains("Tidy up");
        if is_first { vec![Act::AsksQuietly("rm -r build")] } else { vec![Act::AsksQuietly("rm -r target")] }
    });
    let first = turn("Tidy up");
    let sender = first.message.sender.clone();
    let came = AgentMessage {
        sender,
        text: "Be quick".to_owned(),
        forwarded: None,
        attachments: Vec::new(),
        voice: None,
        quoted: None,
        reaction: None,
    };

    run_listening(&double.runtime(), first, vec![came]).await.0.expect("it has ended");

    let told = double.prompt(1);
    assert!(told.len() == 2 && told[0].contains("Be quick") && told[1].contains("execute: rm -r build"), "{told:?}");
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt", "session/prompt"], "it is told once");
}

/// An agent that asks, and then does this.
fn asks_and(acts: Vec<Act>) -> Double {
    let acts: Vec<_> = [vec![says("I tidy up."), Act::AsksQuietly("rm -r build")], acts].concat();
    Double::new(move |_| acts.clone())
}

fn picture() -> Act {
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    Act::Updates(json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": image }))
}

/// A thought is no answer, and a picture is one.
#[rstest]
#[case::words(says("No"), 1)]
#[case::thought(says("<think>They said no.</think>"), 2)]
#[case::picture(picture(), 1)]
#[tokio::test]
async fn an_agent_that_answers_after_a_no_is_not_told(
    #[case] act: Act,
    #[case] prompts: usize,
    #[values("end_turn", "cancelled")] reason: &'static str,
) {
    let double = asks_and(vec![act, Act::Stops(reason)]);

    let (outcome, _) = run_deciding(&double.runtime(), turn("Tidy up"), declines, CancellationToken::new()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
    let methods = double.methods();
    assert_eq!(methods.iter().filter(|method| *method == "session/prompt").count(), prompts);
}

#[tokio::test]
async fn an_agent_that_stops_after_a_yes_has_ended() {
    let double = Double::new(|_| vec![says("I tidy up."), Act::AsksQuietly("rm -r build")]);
    let approves = |request: &ApprovalRequest| Some(Ok(decision(request, ApprovalState::Approved)));

    let (outcome, _) = run_deciding(&double.runtime(), turn("Tidy up"), approves, CancellationToken::new()).await;

    assert_eq!(text(outcome), "I tidy up.");
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt"]);
}

/// What the agent does in its session once it was told that its prompt is cancelled.
#[tokio::test]
async fn another_turn_of_the_session_takes_the_place_of_one_that_waits() {
    let double = tidies();
    let (acp, first) = (double.runtime(), turn("Tidy up"));

    let next = run(&acp, again(&first, "Hi"));
    let ((asked, _), (next, _)) = Box::pin(run_undecided(&acp, first.clone(), next)).await;

    let request = asked_for(asked);
    assert_eq!(request.action, "execute: rm -r build");
    assert_eq!((text(next).as_str(), double.answered()), ("Hello.", vec!["cancelled".to_owned()]));
    let methods = ["initialize", "session/new", "session/prompt", "session/cancel", "session/prompt"];
    assert_eq!(double.methods(), methods);

    let approvals = vec![decision(&request, ApprovalState::Approved)];
    let last = first.with(|turn| {
        turn.past.approvals = approvals;
        turn.attempt = 2;
        turn.rights.may_ask_approval = true;
    });
    assert!(text(run(&acp, last).await.0).contains("o-allow_once"));
    let told = double.prompt(2);
    assert!(told.len() == 1 && told[0].contains("\"decision\":\"approved\"") && told[0].contains("Grace"), "{told:?}");
}

/// A run that asks while another one waits for the session already.
#[tokio::test]
async fn a_run_that_others_wait_for_does_not_wait_for_a_decision() {
    let waits = CancellationToken::new();
    let acts = vec![Act::Waits(waits.clone()), Act::Asks("rm -r build", OPTIONS)];
    let double = Double::new(move |prompt| {
        let is_first = prompt["params"]["prompt"].to_string().contains("Tidy up");
        if is_first { acts.clone() } else { vec![says("Hello.")] }
    });
    let (acp, first) = (double.runtime(), turn("Tidy up"));
    let next = async {
        double.until_called("session/prompt").await;
        run(&acp, again(&first, "Hi")).await.0
    };
    let releases = async {
        double.until_called("session/prompt").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        waits.cancel();
    };

    let waits = run_deciding(&acp, first.clone(), |_| None, CancellationToken::new());
    let ((asked, _), next, ()) = tokio::join!(waits, next, releases);

    assert_eq!((asked_for(asked).action.as_str(), text(next).as_str()), ("execute: rm -r build", "Hello."));
}

#[rstest]
#[case::removal(SessionNoticeChange::TurnRemoved(turn("").turn))]
#[case::deletion(SessionNoticeChange::Deleted)]
#[tokio::test]
async fn a_run_does_not_wait_in_a_session_that_is_left(#[case] change: SessionNoticeChange) {
    let double = tidies();
    let (acp, first) = (double.runtime(), turn("Tidy up"));

    let removes = acp.session_changed(SessionNotice { session: first.place.session, own_session: None, change });
    let ((asked, _), removed) = run_undecided(&acp, first.clone(), removes).await;
    removed.expect("it forgets");
    let approvals = vec![decision(&asked_for(asked), ApprovalState::Approved)];
    let (outcome, _) = run(
        &acp,
        first.with(|turn| {
            turn.past.approvals = approvals;
            turn.attempt = 2;
            turn.rights.may_ask_approval = true;
        }),
    )
    .await;

    assert!(text(outcome).contains("o-allow_once"));
    assert_eq!(double.methods().iter().filter(|method| *method == "session/new").count(), 2);
}

#[tokio::test]
async fn a_turn_waits_on_if_the_process_ends() {
    let double = tidies();
    let acp = double.runtime();

    let ((asked, _), (other, _)) = Box::pin(run_undecided(&acp, turn("Tidy up"), run(&acp, turn("die")))).await;

    other.expect_err("its process has ended");
    assert_eq!(asked_for(asked).action, "execute: rm -r build");
}

/// A run that waits for days does not keep a process that hangs.
#[tokio::test]
async fn a_process_that_hangs_is_restarted_although_a_run_waits() {
    let capabilities = json!({ "mostSessions": 1 });
    let double = Double::that_can(capabilities, None, |_| vec![Act::Asks("rm -r build", OPTIONS)]);
    let acp = double.with(AcpSection { start_timeout: Duration::from_millis(100), ..AcpSection::default() });
    let runs = Arc::clone(&acp);
    tokio::spawn(async move { runs.keep_running(CancellationToken::new()).await });

    let ((asked, _), (hung, _)) = Box::pin(run_undecided(&acp, turn("Tidy up"), run(&acp, turn("Hi")))).await;

    assert!(matches!(&hung, Err(AgentError::Stalled(_))), "{hung:?}");
    assert_eq!(asked_for(asked).action, "execute: rm -r build");
}

/// `/stop`, or the end of the conversation.
#[tokio::test]
async fn a_run_that_is_cancelled_while_it_waits_tells_the_agent() {
    let double = Double::new(|_| vec![Act::AsksAll(&["rm a", "rm b"])]);

    let (outcome, asked) = run_stopped(&double.runtime(), turn("Tidy up")).await;

    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!((asked.len(), double.answered()), (1, vec!["cancelled".to_owned(); 2]));
    assert!(double.methods().contains(&"session/cancel".to_owned()));
    assert_eq!(double.0.working.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_agent_may_answer_without_the_decision() {
    let double = Double::new(|_| vec![Act::AsksInPassing("rm -r build"), says("I leave it.")]);

    let (outcome, _) = run_deciding(&double.runtime(), turn("Tidy up"), |_| None, CancellationToken::new()).await;

    assert_eq!(text(outcome), "I leave it.");
}

/// What the agent says while it waits is a part of its answer, and no limit holds for its silence.
#[tokio::test]
async fn nothing_is_lost_while_it_waits() {
    let double =
        Double::new(|_| vec![Act::AsksInPassing("rm -r build"), says("One. "), Act::Waits(CancellationToken::new())]);
    let settings = AcpSection { idle_timeout: Duration::from_millis(10), ..AcpSection::default() };
    let acp = double.with(settings);
    let runs = Arc::clone(&acp);
    tokio::spawn(async move { runs.keep_running(CancellationToken::new()).await });
    let (events, mut reported) = RunEvents::channel();
    let texts = Mutex::new(Vec::new());
    let read = async {
        let mut open = None;
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Ask(request, _, answer) => open = Some((request, answer)),
                RunEvent::Remember(_, answer) => drop(answer.send(Ok(()))),
                RunEvent::Text(text) => {
                    texts.lock().push(text);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let (request, answer) = open.take().expect("it asks before it says something");
                    let _ = answer.send(Ok(decision(&request, ApprovalState::Approved)));
                }
                _ => {}
            }
        }
    };
    let turn = turn("Tidy up").with(|turn| turn.rights.may_ask_approval = true);

    let (outcome, ()) = tokio::join!(acp.run(turn, events, CancellationToken::new()), read);

    // The limit holds again after the decision.
    assert!(matches!(&outcome, Err(AgentError::Stalled(_))), "{outcome:?}");
    assert_eq!((texts.into_inner(), double.answered()), (vec!["One.".to_owned()], vec!["o-allow_once".to_owned()]));
}
