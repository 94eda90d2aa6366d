//! Deferrals by the agent, which is run again when the time that it named has come.

use rejoinder_core::{
    AgentTurn, Amends, Cause, Clock, InboundEvent, Policy, QueueMode, Queues, Rung, Speaker,
    conformance::scripted::{Fault, Script},
    store::TurnStatus,
};
use rstest::rstest;

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, policy, said, secs},
    texts::LATE,
};

/// A gateway whose agent is stateless: its script follows from its input only.
async fn stateless() -> TestGateway {
    let agent = |turn: &AgentTurn| match (&*turn.message.text, &turn.past.deferred) {
        ("later", None) => Script::defers(Some("Soon."), secs(60)),
        ("later", Some(deferred)) => Script::replies(&format!("As I said: {:?}", deferred.note)),
        (text, deferred) => Script::replies(&format!("{text} {deferred:?}")),
    };
    GatewaySetup::new().agent("main", agent).start().await
}

fn lines(turn: &AgentTurn) -> Vec<(Speaker, &str)> {
    turn.past.history.iter().map(|line| (line.speaker, line.text.as_str())).collect()
}

/// H3. The run that pays the debt gets the deferral as input.
#[tokio::test]
async fn an_agent_that_put_its_answer_off_is_told_so_when_it_is_asked_again() {
    let gateway = stateless().await;
    gateway.receives(said(&chat("ada"), "later")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["Soon."]);

    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["As I said: Some(\"Soon.\")"]);
    let runs = gateway.agent("main").runs();
    assert_eq!(runs.len(), 2);
    assert_eq!(lines(&runs[1].turn), [(Speaker::Person, "later"), (Speaker::Agent, "Soon.")]);
    gateway.at_rest().await;
}

/// What the gateway kept of the turn since it was accepted is not what has become of it.
#[tokio::test]
async fn the_second_run_of_a_turn_that_waited_can_be_stopped() {
    let agent = |turn: &AgentTurn| match (&*turn.message.text, &turn.past.deferred) {
        ("first", _) => Script::replies("first").taking(secs(1)),
        ("later", None) => Script::defers(Some("Soon."), secs(60)),
        ("later", Some(_)) => Script::replies("too late").taking(secs(100_000)),
        (text, _) => Script::replies(text),
    };
    let gateway = GatewaySetup::new().agent("main", agent).start().await;
    gateway.accepts(said(&chat("ada"), "first")).await;
    gateway.accepts(said(&chat("ada"), "later")).await;
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["first", "Soon."]);
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.agent("main").runs().len(), 3);

    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.receives(said(&chat("ada"), "afterwards")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("afterwards"));
    gateway.at_rest().await;
}

/// Until the debt is paid, other turns have the deferral in their history; then the answer replaces it.
#[tokio::test]
async fn a_deferral_is_in_the_transcript_until_the_answer_is() {
    let gateway = stateless().await;
    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.receives(said(&chat("ada"), "meanwhile")).await;
    gateway.advance(secs(60)).await;
    gateway.receives(said(&chat("ada"), "afterwards")).await;

    let runs = gateway.agent("main").runs();
    let asked: Vec<_> = runs.iter().map(|run| run.turn.message.text.as_str()).collect();
    assert_eq!(asked, ["later", "meanwhile", "later", "afterwards"]);
    assert_eq!(lines(&runs[1].turn), [(Speaker::Person, "later"), (Speaker::Agent, "Soon.")]);
    assert_eq!(runs[1].turn.past.deferred, None, "a turn gets its own deferral only");
    let end = [
        (Speaker::Person, "later"),
        (Speaker::Agent, "As I said: Some(\"Soon.\")"),
        (Speaker::Person, "meanwhile"),
        (Speaker::Agent, "meanwhile None"),
    ];
    assert_eq!(lines(&runs[3].turn), end);
    gateway.at_rest().await;
}

/// D9. Crashes before and during the run that pays.
#[tokio::test]
async fn an_agent_is_told_of_its_deferral_after_a_crash_as_well() {
    let mut gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match (turn.attempt, &turn.past.deferred) {
            (1, _) => Script::defers(None, secs(60)),
            (2, Some(_)) => Script::hangs(),
            (_, deferred) => Script::replies(if deferred.is_some() { "paid" } else { "what?" }),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.restart().await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2);

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    gateway.at_rest().await;
}

/// The transcript keeps the agent's deferral and the fallback that followed.
#[tokio::test]
async fn a_deferral_that_is_not_paid_stays_in_the_transcript_before_the_fallback() {
    let gateway = GatewaySetup::new()
        .policy(Policy { max_deferrals: 1, ..policy() })
        .agent("main", |turn: &AgentTurn| match &*turn.message.text {
            "later" => Script::defers(Some("Soon."), secs(60)),
            text => Script::replies(text),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), [LATE]);

    gateway.receives(said(&chat("ada"), "hello")).await;

    let runs = gateway.agent("main").runs();
    let end = [(Speaker::Person, "later"), (Speaker::Agent, "Soon."), (Speaker::Gateway, LATE)];
    assert_eq!(lines(&runs[2].turn), end);
    gateway.at_rest().await;
}

/// The agent of a handoff does not get the first agent's deferral as its own.
#[tokio::test]
async fn an_agent_is_not_told_of_another_ones_deferral_as_its_own() {
    let ladder = policy().ladder.with(Cause::Timeout, vec![Rung::Handoff("boss".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(Policy { max_deferrals: 1, ladder, ..policy() })
        .always(Script::defers(Some("Soon."), secs(60)))
        .agent("boss", |turn: &AgentTurn| Script::replies(&format!("{:?}", turn.past.deferred)))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["None"]);
    gateway.at_rest().await;
}

/// The gateway's own deferral is neither in the agent's input nor in the transcript.
#[tokio::test]
async fn the_gateways_own_deferral_is_not_put_into_the_agents_mouth() {
    let mut gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match (&*turn.message.text, turn.attempt) {
            ("one", 1) => Script::hangs(),
            _ => Script::replies(&format!("{:?}", turn.past.deferred)),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(SOFT_DEADLINE).await;
    gateway.restart().await;
    assert_eq!(gateway.visible(&chat("ada")), ["None"]);

    gateway.receives(said(&chat("ada"), "two")).await;

    let runs = gateway.agent("main").runs();
    assert!(runs[1].turn.past.history.is_empty());
    assert_eq!(lines(&runs[2].turn), [(Speaker::Person, "one"), (Speaker::Agent, "None")]);
    gateway.at_rest().await;
}

/// A18. The promise holds without its note, and is no signal that anybody saw.
#[tokio::test]
async fn an_agent_is_asked_again_though_its_note_was_refused() {
    let gateway = stateless().await;
    gateway.platform.queue_fault(Fault::Refuse);
    let turn = gateway.receives(said(&chat("ada"), "later")).await;
    assert_eq!(gateway.visible(&chat("ada")), [""; 0]);

    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["As I said: Some(\"Soon.\")"]);
    assert!(!gateway.topics(turn).await.contains(&"turn.deferred".to_owned()));
    gateway.at_rest().await;
}

/// G2. What waited to be said has been overtaken by the answer.
#[tokio::test]
async fn an_agent_is_asked_at_its_time_though_its_channel_is_down() {
    let gateway = stateless().await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "it is asked at its time");

    gateway.platform.set_down(false);
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["As I said: Some(\"Soon.\")"]);
    assert_eq!(gateway.platform.posts(&chat("ada")).len(), 1, "the note was not sent any more");
    gateway.at_rest().await;
}

/// The log names the time that the person read, and not until when the run may take.
#[tokio::test]
async fn a_note_that_arrives_when_the_agent_has_been_asked_is_logged_with_its_time() {
    let agent = |turn: &AgentTurn| match turn.past.deferred {
        None => Script::defers(Some("Soon."), secs(5)),
        Some(_) => Script::replies("done").taking(secs(10)),
    };
    let gateway = GatewaySetup::new().agent("main", agent).start().await;
    gateway.platform.hold(true);
    let turn = gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(4)).await;
    let asked_at = gateway.store.turn(turn).await.expect("readable").expect("it is there").obligation.asked_at();
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2);

    gateway.platform.hold(false);
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Soon."]);
    let log = gateway.log().await;
    let deferred = &log.iter().find(|entry| entry.topic == "turn.deferred").expect("it is logged").data;
    let asked_at = jiff::Timestamp::from_millisecond(asked_at.expect("it waits").as_millis()).expect("it is a time");
    assert_eq!(deferred["due"], format!("{asked_at:.3}"), "{deferred}");
    gateway.advance(secs(20)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// The agent is told what it has promised, and how often it may do so again.
#[tokio::test]
async fn an_agent_knows_its_bounds() {
    let gateway = GatewaySetup::new()
        .policy(Policy { max_deferrals: 2, max_defer: secs(30), ..policy() })
        .always(Script::defers(Some("Soon."), secs(60)))
        .start()
        .await;
    let start = gateway.clock.now();
    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(30)).await;
    gateway.advance(secs(30)).await;

    let runs = gateway.agent("main").runs();
    let told: Vec<_> =
        runs.iter().map(|run| (run.turn.rights.may_defer.left, run.turn.rights.may_defer.longest)).collect();
    assert_eq!(told, [(2, secs(30)), (1, secs(30)), (0, secs(30))]);
    let due: Vec<_> = runs.iter().map(|run| run.turn.past.deferred.as_ref().map(|deferred| deferred.due)).collect();
    assert_eq!(due, [None, Some(start + secs(30)), Some(start + secs(60))]);
    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.at_rest().await;
}

/// B2. What comes when the time has come is no part of what was promised before.
#[rstest]
#[tokio::test]
async fn what_comes_later_is_not_answered_with_what_was_put_off(
    #[values(QueueMode::Collect, QueueMode::Steer, QueueMode::Interrupt)] mode: QueueMode,
) {
    let agent = |turn: &AgentTurn| match (&*turn.message.text, &turn.past.deferred) {
        ("later", None) => Script::defers(Some("Soon."), secs(60)),
        ("later", Some(_)) => Script::replies(&format!("later + {}", turn.more.len())).taking(secs(20)).listening(),
        (text, _) => Script::replies(text),
    };
    let queues = Queues { mode, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().agent("main", agent) }.start().await;
    let now = |text: &str| InboundEvent { received_at: gateway.clock.now(), ..said(&chat("ada"), text) };
    gateway.receives(now("later")).await;
    // With `collect` the first run begins now, else it has begun before, and so has the second one after a minute.
    gateway.advance(secs(2)).await;
    gateway.advance(secs(59)).await;
    gateway.receives(now("hello")).await;
    gateway.advance(secs(1)).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["later + 0", "hello"]);
    let runs = gateway.agent("main").runs();
    assert!(runs.iter().all(|run| run.heard.is_empty()), "no run took it in");
    assert_eq!(runs.len(), 3, "no run was stopped");
    gateway.at_rest().await;
}

/// B8. Nothing is owed for a question that its author has taken back.
#[tokio::test]
async fn a_deferral_ends_when_its_question_is_deleted() {
    let gateway = stateless().await;
    let event = said(&chat("ada"), "later");
    let turn = gateway.receives(event.clone()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["Soon."]);

    let deletion = InboundEvent { revision: 1, amends: Some(Amends::Withdraws), text: String::new(), ..event };
    gateway.intake().accept(deletion).await.expect("it is accepted");
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    assert_eq!(gateway.visible(&chat("ada")), [""; 0], "the note is removed");
    gateway.advance(secs(120)).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// B8. It is not known yet which message it is.
#[tokio::test]
async fn a_note_that_is_on_its_way_when_its_question_is_deleted_is_removed() {
    let gateway = stateless().await;
    gateway.platform.hold(true);
    let event = said(&chat("ada"), "later");
    let turn = gateway.receives(event.clone()).await;
    let deletion = InboundEvent { revision: 1, amends: Some(Amends::Withdraws), text: String::new(), ..event };
    gateway.intake().accept(deletion).await.expect("it is accepted");
    gateway.settle().await;
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);

    gateway.platform.hold(false);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.platform.seen().len(), 2, "it is sent and removed");
    assert_eq!(gateway.visible(&chat("ada")), [""; 0]);
    gateway.at_rest().await;
}
