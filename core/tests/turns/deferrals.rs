//! Deferrals by the agent, which is run again when the time that it named has come.

use rejoinder_core::{AgentTurn, Cause, HistoryLine, Policy, Rung, Speaker, conformance::scripted::Script};

use crate::gateway::{GatewaySetup, LATE, SOFT_DEADLINE, TestGateway, chat, policy, said, secs};

/// A gateway whose agent is stateless: its script follows from its input only.
async fn stateless() -> TestGateway {
    let agent = |turn: &AgentTurn| match (&*turn.text, &turn.deferred) {
        ("later", None) => Script::defers(Some("Soon."), secs(60)),
        ("later", Some(deferred)) => Script::replies(&format!("As I said: {:?}", deferred.note)),
        (text, deferred) => Script::replies(&format!("{text} {deferred:?}")),
    };
    GatewaySetup::new().agent("main", agent).start().await
}

fn lines(turn: &AgentTurn) -> Vec<(Speaker, &str)> {
    turn.history.iter().map(|HistoryLine { speaker, text, .. }| (*speaker, text.as_str())).collect()
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
    let agent = |turn: &AgentTurn| match (&*turn.text, &turn.deferred) {
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
    let asked: Vec<_> = runs.iter().map(|run| run.turn.text.as_str()).collect();
    assert_eq!(asked, ["later", "meanwhile", "later", "afterwards"]);
    assert_eq!(lines(&runs[1].turn), [(Speaker::Person, "later"), (Speaker::Agent, "Soon.")]);
    assert_eq!(runs[1].turn.deferred, None, "a turn gets its own deferral only");
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
        .agent("main", |turn: &AgentTurn| match (turn.attempt, &turn.deferred) {
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
        .agent("main", |turn: &AgentTurn| match &*turn.text {
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
        .agent("boss", |turn: &AgentTurn| Script::replies(&format!("{:?}", turn.deferred)))
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
        .agent("main", |turn: &AgentTurn| match (&*turn.text, turn.attempt) {
            ("one", 1) => Script::hangs(),
            _ => Script::replies(&format!("{:?}", turn.deferred)),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(SOFT_DEADLINE).await;
    gateway.restart().await;
    assert_eq!(gateway.visible(&chat("ada")), ["None"]);

    gateway.receives(said(&chat("ada"), "two")).await;

    let runs = gateway.agent("main").runs();
    assert!(runs[1].turn.history.is_empty());
    assert_eq!(lines(&runs[2].turn), [(Speaker::Person, "one"), (Speaker::Agent, "None")]);
    gateway.at_rest().await;
}
