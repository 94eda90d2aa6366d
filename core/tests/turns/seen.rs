//! A line of what was said counts when it was seen: for the agent, for /history and /export, and for the search.

use rejoinder_core::{
    AgentTurn, Delivery, Farewell, LastAnswer, LineState, OnUnknown, Policy, Speaker, TurnId,
    conformance::scripted::{Fault, Gate, Script, ScriptedAgent, ScriptedChannel},
    store::TurnStatus,
};

use crate::{
    commands::exported_by,
    gateway::{GatewaySetup, TestGateway, chat, operator, policy, said, secs},
    searching::found,
    texts::{FAILED, SILENT},
};

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sent,
    /// The answer is refused, and the ladder's text is sent.
    Refused,
    /// The ladder's text is refused as well.
    RefusedAll,
    /// So is it, and the operator has the answer sent again.
    Retried,
    /// Its first part is seen, and the second one refused.
    Cut,
    /// The platform is down, and the operator gives the turn up.
    GivenUp,
    /// The person stops it while the agent works.
    Stopped,
    /// The person stops it while its answer waits for the platform.
    StoppedLate,
    Silent,
    /// It may have been seen, and is not sent again.
    Unknown,
    /// The agent promises an answer, which is refused.
    PromisedAndRefused,
}

const ENDS: [End; 11] = [
    End::Sent,
    End::Refused,
    End::RefusedAll,
    End::Retried,
    End::Cut,
    End::GivenUp,
    End::Stopped,
    End::StoppedLate,
    End::Silent,
    End::Unknown,
    End::PromisedAndRefused,
];

fn script(turn: &AgentTurn, never: &Gate) -> Script {
    let Some((end, number)) = turn.message.text.split_once(' ') else { return Script::replies("answer at last") };
    let answer = format!("answer {number}");
    match end {
        "Cut" => Script::replies(&[&*answer, "more", "most"].join(ScriptedChannel::CUT)),
        "Stopped" => Script::replies(&answer).waiting(never),
        "Silent" => Script::is_silent("nothing to say"),
        "PromisedAndRefused" if turn.past.deferred.is_none() => {
            Script::defers(Some(&format!("answer {number} soon")), secs(60))
        }
        _ => Script::replies(&answer),
    }
}

async fn start() -> TestGateway {
    start_with(|agent| agent.remembering(40)).await
}

/// What is changed of an agent.
type Change = fn(ScriptedAgent) -> ScriptedAgent;

async fn start_with(change: Change) -> TestGateway {
    let never = Gate::default();
    let mut setup = GatewaySetup::new().policy(Policy { on_unknown: OnUnknown::Hold, ..policy() });
    let director = move |turn: &AgentTurn| script(turn, &never);
    let make = move |clock| change(ScriptedAgent::new(clock, director.clone()));
    setup.agents.push(("main", Box::new(make)));
    let mut gateway = setup.start().await;
    gateway.forgive_partial_answers();
    gateway
}

/// Has a turn end so.
async fn happens(gateway: &TestGateway, end: End, number: usize) -> TurnId {
    let platform = &gateway.platform;
    let of_agent = |delivery: &Delivery| delivery.via().is_some_and(|via| !via.is_gateways());
    match end {
        End::Refused => {
            platform.choose_faults(move |delivery: &Delivery| of_agent(delivery).then_some(Fault::Refuse));
        }
        End::RefusedAll | End::Retried => platform.choose_faults(|_| Some(Fault::Refuse)),
        End::Cut => platform.choose_faults(|delivery: &Delivery| (delivery.part().0 == 2).then_some(Fault::Refuse)),
        End::Unknown => platform.choose_faults(|_| Some(Fault::LoseRequest)),
        End::GivenUp | End::StoppedLate => platform.set_down(true),
        End::Sent | End::Stopped | End::Silent | End::PromisedAndRefused => {}
    }
    let turn = gateway.receives(said(&chat("ada"), &format!("{end:?} {number}"))).await;
    match end {
        End::Retried => {
            platform.clear_faults();
            let letters = gateway.dead_letters().await;
            let letter = letters.iter().find(|letter| letter.turn == turn).expect("it is a dead letter");
            gateway.retry(letter.id).await.expect("it is sent again");
        }
        End::GivenUp => {
            gateway
                .engine()
                .operations()
                .cancel(turn, Farewell::Template, operator("it is too late"))
                .await
                .expect("it is given up");
        }
        End::Stopped | End::StoppedLate => drop(gateway.receives(said(&chat("ada"), "/stop")).await),
        End::PromisedAndRefused => {
            platform.choose_faults(|_| Some(Fault::Refuse));
            gateway.advance(secs(61)).await;
        }
        _ => {}
    }
    platform.clear_faults();
    platform.set_down(false);
    gateway.advance(secs(120)).await;
    turn
}

/// The words of the agent that the person can see.
fn seen(gateway: &TestGateway) -> Vec<String> {
    let mut seen = gateway.visible(&chat("ada"));
    seen.retain(|text| text.starts_with("answer"));
    seen
}

/// The words that the last run was shown as those of `speaker`, with what became of them.
fn shown(gateway: &TestGateway, speaker: Speaker) -> Vec<(String, LineState)> {
    let run = gateway.agent("main").runs().pop().expect("a run");
    let lines = run.turn.past.history.iter().filter(|line| line.speaker == speaker);
    lines.map(|line| (line.text.clone(), line.state.clone())).collect()
}

/// What a text of lines has of an agent's.
fn of_agent(told: &str) -> Vec<String> {
    told.trim().split("\n\n").filter_map(|line| Some(line.strip_prefix("**main**: ")?.to_owned())).collect()
}

async fn check(ends: &[End]) {
    let gateway = start().await;
    for (number, end) in ends.iter().enumerate() {
        happens(&gateway, *end, number).await;
    }
    gateway.receives(said(&chat("ada"), "hello")).await;
    let expected = seen(&gateway);

    let mut model = shown(&gateway, Speaker::Agent);
    model.retain(|(_, state)| state.is_said());
    let mut model: Vec<_> = model.into_iter().map(|(text, _)| text).collect();
    model.push("answer at last".to_owned());
    assert_eq!(model, expected, "the model, after {ends:?}");
    let export = gateway.receives(said(&chat("ada"), "/export")).await;
    let exported = exported_by(&gateway, export).await.1.expect("a file");
    assert_eq!(of_agent(&exported), expected, "/export, after {ends:?}");
    gateway.receives(said(&chat("ada"), "/history")).await;
    let history = gateway.visible(&chat("ada")).pop().expect("an answer");
    assert!(exported.trim().ends_with(history.trim()), "/history, after {ends:?}: {history}\n\nof {exported}");
    gateway.advance(secs(30)).await;
    let mut found = found(&gateway, "answer").await;
    found.retain(|text| text.starts_with("answer"));
    found.reverse();
    assert_eq!(found, expected, "the search, after {ends:?}");
    gateway.at_rest().await;
}

/// However turns end, the agent, the person and the search are shown as the agent's words what the person has seen.
#[tokio::test]
async fn what_an_agent_is_said_to_have_said_is_what_was_seen() {
    for first in ENDS {
        for second in ENDS {
            check(&[first, second]).await;
        }
    }
}

/// The model knows what it said in vain, and why.
#[rstest::rstest]
#[case(End::Refused, "refused")]
#[case(End::RefusedAll, "refused")]
#[case(End::GivenUp, "withdrawn")]
#[case(End::StoppedLate, "withdrawn")]
#[case(End::Unknown, "unknown")]
#[tokio::test]
async fn a_model_is_told_why_its_answer_was_not_delivered(#[case] end: End, #[case] reason: &str) {
    let gateway = start().await;
    happens(&gateway, end, 1).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    let expected = ("answer 1".to_owned(), LineState::NotDelivered(reason.to_owned()));
    assert_eq!(shown(&gateway, Speaker::Agent), [expected]);
    gateway.at_rest().await;
}

fn undelivered(reason: &str) -> LastAnswer {
    LastAnswer::NotDelivered(reason.to_owned())
}

/// An agent that gets the transcript, or remembers by itself, is told what became of its last answer. It is told once.
#[rstest::rstest]
#[case(End::Sent, None)]
#[case(End::Silent, Some(LastAnswer::Replaced(SILENT.to_owned())))]
#[case(End::Retried, None)]
#[case(End::Refused, Some(LastAnswer::Replaced(FAILED.to_owned())))]
#[case(End::RefusedAll, Some(undelivered("refused")))]
#[case(End::Cut, Some(LastAnswer::Partly(Vec::new())))]
#[case(End::GivenUp, Some(LastAnswer::Replaced("No answer comes.".to_owned())))]
#[case(End::Stopped, Some(LastAnswer::Stopped))]
#[case(End::StoppedLate, Some(undelivered("withdrawn")))]
#[case(End::Unknown, Some(undelivered("unknown")))]
#[tokio::test]
async fn an_agent_is_told_what_became_of_its_last_answer(#[case] end: End, #[case] expected: Option<LastAnswer>) {
    let made: [(Change, bool); 3] =
        [(|it| it.remembering(40), true), (ScriptedAgent::keeping_sessions, true), (|it| it, false)];
    for (made, is_told) in made {
        let gateway = start_with(made).await;
        gateway.receives(said(&chat("ada"), "hi")).await;
        happens(&gateway, end, 1).await;

        gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.receives(said(&chat("ada"), "and now?")).await;

        let runs = gateway.agent("main").runs();
        let told = |text: &str| {
            runs.iter().rfind(|run| run.turn.message.text == text).expect("a run").turn.past.last_answer.clone()
        };
        assert_eq!(told("hello"), expected.clone().filter(|_| is_told));
        assert_eq!(told("and now?"), None);
        gateway.at_rest().await;
    }
}

/// The runs of a turn that said something itself are told of the answer before it.
#[tokio::test]
async fn a_deferral_is_not_the_answer_before() {
    let gateway = start_with(ScriptedAgent::keeping_sessions).await;
    happens(&gateway, End::RefusedAll, 1).await;

    happens(&gateway, End::PromisedAndRefused, 2).await;

    let runs = gateway.agent("main").runs();
    let told: Vec<_> = runs.iter().map(|run| run.turn.past.last_answer.clone()).collect();
    assert_eq!(told, [None, Some(undelivered("refused")), Some(undelivered("refused"))]);
    gateway.at_rest().await;
}

/// What the gateway said in place of the agent is nobody else's.
#[tokio::test]
async fn what_the_gateway_said_is_not_said_by_the_agent() {
    let gateway = start().await;
    happens(&gateway, End::Refused, 1).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("ada"), "/history")).await;

    assert_eq!(shown(&gateway, Speaker::Gateway), [(FAILED.to_owned(), LineState::Seen)]);
    let history = gateway.visible(&chat("ada")).pop().expect("an answer");
    let expected =
        ["**ada**: Refused 1", &format!("**Notice**: {FAILED}"), "**ada**: hello", "**main**: answer at last"];
    assert_eq!(history.split("\n\n").collect::<Vec<_>>(), expected);
    gateway.at_rest().await;
}

/// Until the platform has it, an answer is on its way, and after two minutes the agent is told that it was not seen.
#[tokio::test]
async fn an_answer_that_waits_for_the_platform_is_on_its_way_and_then_not_delivered_yet() {
    let gateway = start().await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "Sent 1")).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    assert_eq!(shown(&gateway, Speaker::Agent), [("answer 1".to_owned(), LineState::OnItsWay)]);
    gateway.advance(secs(121)).await;
    gateway.receives(said(&chat("ada"), "well?")).await;
    let late =
        ["answer 1", "answer at last"].map(|text| (text.to_owned(), LineState::NotDelivered("not_yet".to_owned())));
    assert_eq!(shown(&gateway, Speaker::Agent), late);
    gateway.platform.set_down(false);
    gateway.advance(secs(120)).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    let expected = ["answer 1", "answer at last", "answer at last"].map(|text| (text.to_owned(), LineState::Seen));
    assert_eq!(shown(&gateway, Speaker::Agent), expected);
    gateway.at_rest().await;
}

/// A stop and its answer are no part of what the agent is shown; what was stopped is.
#[tokio::test]
async fn a_model_is_shown_the_question_that_was_stopped_and_not_the_stop() {
    let gateway = start().await;
    let stopped = happens(&gateway, End::Stopped, 1).await;
    gateway.receives(said(&chat("ada"), "/status")).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.status(stopped).await, TurnStatus::Cancelled);
    let run = gateway.agent("main").runs().pop().expect("a run");
    let lines: Vec<_> = run.turn.past.history.iter().map(|line| (line.text.as_str(), &line.state)).collect();
    assert_eq!(lines, [("Stopped 1", &LineState::Stopped)]);
    gateway.at_rest().await;
}
