//! An agent that asks the person in the middle of its work.

use rejoinder_core::{AgentTurn, ApprovalRequest, ApprovalState, PersonAnswer, as_stored, conformance::runtime::turn};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    double::{Act, Double, OPTIONS, run, says},
    people::{Asked, answer, asked_for, decision, run_deciding, run_stopped, run_undecided},
    talking::{again, text},
};
use crate::Acp;

fn form(properties: &Value) -> Value {
    let required: Vec<_> = properties.as_object().expect("properties").keys().cloned().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "mode": "form", "message": "Where to?", "requestedSchema": schema })
}

/// Asks for a colour, and then for a number.
fn trip() -> Value {
    form(&json!({ "class": { "type": "string", "enum": ["first", "second"] }, "seats": { "type": "integer" } }))
}

fn asked(text: &str) -> AgentTurn {
    turn(text).with(|turn| turn.rights.may_ask_person = true)
}

/// Runs a turn whose person answers with these words, one after the other, and then with nothing.
async fn run_answering(acp: &Acp, turn: AgentTurn, words: &[Option<&str>]) -> Asked {
    let mut words = words.iter();
    let says = |request: &ApprovalRequest| words.next().map(|words| Ok(answer(request, *words)));
    run_deciding(acp, turn, says, CancellationToken::new()).await
}

#[rstest]
#[case::answers(&[Some("second"), Some("2")], json!({ "action": "accept", "content": { "class": "second", "seats": 2 } }))]
#[case::a_wrong_one(&[Some("first"), Some("two"), Some("3")], json!({ "action": "accept", "content": { "class": "first", "seats": 3 } }))]
#[case::only_wrong_ones(&[Some("first"), Some("two"), Some("three"), Some("four")], json!({ "action": "cancel" }))]
#[case::declined(&[Some("Decline")], json!({ "action": "decline" }))]
#[case::declined_later(&[Some("first"), Some("decline")], json!({ "action": "decline" }))]
#[case::expired(&[None], json!({ "action": "cancel" }))]
#[case::expired_later(&[Some("first"), None], json!({ "action": "cancel" }))]
#[tokio::test]
async fn a_form_is_answered_in_the_same_prompt(#[case] words: &[Option<&str>], #[case] answered: Value) {
    let double = Double::new(|_| vec![says("Let me see. "), Act::Elicits(trip()), says(" Done.")]);

    let (outcome, asked) = run_answering(&double.runtime(), asked("A trip"), words).await;

    let said = text(outcome);
    assert!(said.starts_with("Let me see.") && said.ends_with("Done."), "{said}");
    assert_eq!((double.responses(), asked.len()), (vec![answered], words.len()));
    let first = asked[0].choices.as_ref().expect("it is a question");
    assert_eq!((first.options.len(), asked[0].action.as_str()), (3, "Where to?\n\nclass (1 of 2)"));
    assert_eq!(double.methods(), ["initialize", "session/new", "session/prompt"]);
    let given = double.0.given.lock();
    assert_eq!(given[0]["params"]["clientCapabilities"]["elicitation"], json!({ "form": {}, "url": {} }));
}

#[rstest]
#[case::nobody_to_ask(form(&json!({ "a": { "type": "boolean" } })), json!({ "action": "cancel" }))]
#[case::a_secret(form(&json!({ "password": { "type": "string" } })), json!({ "action": "decline" }))]
#[case::a_link_of_no_web(json!({ "mode": "url", "elicitationId": "e", "message": "Hi", "url": "file:///etc" }), json!({ "action": "decline" }))]
#[case::outside_of_the_session(json!({ "mode": "form", "requestId": 3, "message": "Hi", "requestedSchema": {} }), json!({ "action": "cancel" }))]
#[case::another_session(json!({ "mode": "form", "sessionId": "s9", "message": "Hi", "requestedSchema": {} }), json!({ "action": "cancel" }))]
#[tokio::test]
async fn what_is_not_asked_is_answered_at_once(#[case] params: Value, #[case] answered: Value) {
    let may_ask_person = answered["action"] == "decline";
    let double = Double::new(move |_| vec![Act::Elicits(params.clone())]);

    let (outcome, asked) = run_answering(
        &double.runtime(),
        turn("A trip").with(|turn| turn.rights.may_ask_person = may_ask_person),
        &[Some("Yes")],
    )
    .await;

    text(outcome);
    assert_eq!((double.responses(), asked), (vec![answered], Vec::new()));
}

#[rstest]
#[case::mode(json!({ "mode": "_voice", "message": "Hi" }))]
#[case::no_form(json!({ "mode": "form", "message": "Hi" }))]
#[tokio::test]
async fn what_is_no_request_is_refused(#[case] params: Value) {
    let double = Double::new(move |_| vec![Act::Elicits(params.clone())]);

    let (outcome, _) = run_answering(&double.runtime(), asked("A trip"), &[]).await;

    let said = text(outcome);
    assert!(said.contains("-32602"), "{said}");
}

#[tokio::test]
async fn nobody_was_asked_after_all() {
    let double = Double::new(|_| vec![Act::Elicits(trip())]);
    let refuses = |_: &ApprovalRequest| Some(Err("it asks too often".to_owned()));

    run_deciding(&double.runtime(), asked("A trip"), refuses, CancellationToken::new()).await.0.expect("an answer");

    assert_eq!(double.responses(), [json!({ "action": "cancel" })]);
}

#[tokio::test]
async fn an_answer_to_something_else_is_not_used() {
    let double = Double::new(|_| vec![Act::Elicits(form(&json!({ "a": { "type": "boolean" } })))]);
    let other = |request: &ApprovalRequest| {
        Some(Ok(answer(&ApprovalRequest { action: "Delete all?".to_owned(), ..request.clone() }, Some("Yes"))))
    };

    run_deciding(&double.runtime(), asked("A trip"), other, CancellationToken::new()).await.0.expect("an answer");

    assert_eq!(double.responses(), [json!({ "action": "cancel" })]);
}

/// They share one queue with permissions.
#[tokio::test]
async fn several_requests_are_asked_one_at_a_time() {
    let yes_or_no = |name: &str| form(&json!({ name: { "type": "boolean", "title": name } }));
    let acts = vec![
        Act::ElicitsInPassing(trip()),
        Act::AsksInPassing("rm a"),
        Act::ElicitsInPassing(yes_or_no("b")),
        Act::Asks("rm b", OPTIONS),
    ];
    let double = Double::new(move |_| acts.clone());
    let words = [Some("first"), Some("1"), None, Some("Yes"), None];
    let turn = asked("A trip").with(|turn| turn.rights.may_ask_approval = true);

    let (outcome, asked) = run_answering(&double.runtime(), turn, &words).await;

    text(outcome);
    let asked: Vec<_> = asked.iter().map(|request| request.action.lines().last().unwrap_or_default()).collect();
    let hint = "Please write a whole number; or “decline” to refuse.";
    assert_eq!(asked, ["class (1 of 2)", hint, "execute: rm a", "b", "execute: rm b"]);
    let accepted = [json!({ "class": "first", "seats": 1 }), json!({ "b": true })];
    assert_eq!(double.responses(), accepted.map(|content| json!({ "action": "accept", "content": content })));
    assert_eq!(double.answered(), ["o-reject_once", "o-reject_once"]);
}

/// Runs a turn in which nothing else than this is approved. Cancels `is_asked` when something is asked.
async fn run_approving(acp: &Acp, command: &str, is_asked: &CancellationToken) -> Asked {
    let decide = |request: &ApprovalRequest| {
        is_asked.cancel();
        let is_approved = request.action == format!("execute: {command}");
        is_approved.then(|| Ok(decision(request, ApprovalState::Approved)))
    };
    run_deciding(acp, asked("A trip"), decide, CancellationToken::new()).await
}

/// The person need not answer any more, and the run goes on.
#[rstest]
#[case::form(Act::ElicitsInPassing(trip()))]
#[case::permission(Act::AsksInPassing("rm a"))]
#[tokio::test]
async fn a_request_that_the_agent_takes_back_is_over(#[case] asks: Act) {
    let is_asked = CancellationToken::new();
    let acts = vec![asks, Act::TakesBack(is_asked.clone(), 0), Act::Asks("rm b", OPTIONS), says(" Done.")];
    let double = Double::new(move |_| acts.clone());

    let (outcome, all) = run_approving(&double.runtime(), "rm b", &is_asked).await;

    let said = text(outcome);
    assert!(said.ends_with("Done."), "{said}");
    assert_eq!(
        (double.refusals(), double.responses(), double.answered()),
        (vec![-32_800], Vec::new(), vec!["o-allow_once".to_owned()])
    );
    assert_eq!(all.len(), 2);
}

/// Nothing is decided that would let the turn run again.
#[tokio::test]
async fn an_agent_that_takes_its_request_back_and_fails_has_failed() {
    let is_asked = CancellationToken::new();
    let acts = vec![
        Act::AsksInPassing("rm a"),
        Act::TakesBack(is_asked.clone(), 0),
        Act::Refuses(-32_603, "no memory is left"),
    ];
    let double = Double::new(move |_| acts.clone());

    let (outcome, _) = run_approving(&double.runtime(), "rm b", &is_asked).await;

    let error = outcome.expect_err("it has failed").to_string();
    assert!(error.contains("no memory is left"), "{error}");
}

/// One that is asked, one that waits for it and is never asked, and one that was answered before.
#[tokio::test]
async fn each_request_that_the_agent_takes_back_is_answered_once() {
    let (is_asked, now) = (CancellationToken::new(), CancellationToken::new());
    now.cancel();
    let elsewhere = json!({ "mode": "form", "sessionId": "s9", "message": "Hi", "requestedSchema": {} });
    let acts = vec![
        Act::AsksInPassing("rm a"),
        Act::ElicitsInPassing(trip()),
        Act::TakesBack(is_asked.clone(), 0),
        Act::ElicitsInPassing(elsewhere),
        Act::TakesBack(now.clone(), 0),
        Act::TakesBack(now, 2),
        Act::Asks("rm b", OPTIONS),
    ];
    let double = Double::new(move |_| acts.clone());

    let (outcome, all) = run_approving(&double.runtime(), "rm b", &is_asked).await;

    text(outcome);
    let answered = (vec![-32_800; 2], vec![json!({ "action": "cancel" })], vec!["o-allow_once".to_owned()]);
    assert_eq!((double.refusals(), double.responses(), double.answered()), answered);
    assert_eq!(all.len(), 2);
}

/// Another turn of the session, after which the same turn runs again with the answers that it has.
#[tokio::test]
async fn a_turn_that_runs_again_is_not_asked_twice() {
    let double = Double::new(|prompt| {
        let is_trip = prompt["params"]["prompt"].to_string().contains("A trip");
        if is_trip { vec![Act::Elicits(trip()), Act::Elicits(trip())] } else { vec![says("Hello.")] }
    });
    let (acp, first, asks) = (double.runtime(), asked("A trip"), Notify::new());
    let mut questions = 0;
    let first_answer = |request: &ApprovalRequest| {
        questions += 1;
        if questions == 1 {
            return Some(Ok(answer(request, Some("second"))));
        }
        asks.notify_one();
        None
    };
    let next = async {
        asks.notified().await;
        run(&acp, again(&first, "Hi")).await.0
    };
    let waits = run_deciding(&acp, first.clone(), first_answer, CancellationToken::new());

    let ((outcome, all), next) = tokio::join!(waits, next);

    assert_eq!((text(next).as_str(), double.responses()), ("Hello.", vec![json!({ "action": "cancel" })]));
    assert_eq!(asked_for(outcome), all[1]);
    let told = |request: &ApprovalRequest, words: &str| PersonAnswer {
        question: as_stored(request),
        answer: Some(words.to_owned()),
    };
    let answers = vec![told(&all[0], "second"), told(&all[1], "4")];
    let (outcome, asked_again) = run_answering(
        &acp,
        first.with(|turn| {
            turn.past.answers = answers;
            turn.attempt = 2;
        }),
        &[],
    )
    .await;

    text(outcome);
    assert_eq!(asked_again, []);
    let accepted = json!({ "action": "accept", "content": { "class": "second", "seats": 4 } });
    assert_eq!(double.responses()[1..], [accepted.clone(), accepted]);
}

/// `/stop`, while one waits and another one is not asked yet.
#[tokio::test]
async fn a_run_that_is_cancelled_while_it_waits_tells_the_agent() {
    let acts = vec![Act::ElicitsInPassing(trip()), Act::Elicits(trip())];
    let double = Double::new(move |_| acts.clone());

    let (outcome, all) = run_stopped(&double.runtime(), asked("A trip")).await;

    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!((all.len(), double.responses()), (1, vec![json!({ "action": "cancel" }); 2]));
    assert!(double.methods().contains(&"session/cancel".to_owned()));
}

#[tokio::test]
async fn a_turn_waits_on_if_the_process_ends() {
    let double = Double::new(|prompt| {
        let dies = prompt["params"]["prompt"].to_string().contains("die");
        if dies { vec![Act::Dies] } else { vec![Act::Elicits(trip())] }
    });
    let acp = double.runtime();

    let ((outcome, all), (other, _)) = Box::pin(run_undecided(&acp, asked("A trip"), run(&acp, turn("die")))).await;

    other.expect_err("its process has ended");
    assert_eq!(asked_for(outcome), all[0]);
}
