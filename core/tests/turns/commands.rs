//! The gateway's own commands.

use rejoinder_core::{AgentTurn, conformance::scripted::Script, store::TurnStatus};

use crate::gateway::{Made, SOFT_DEADLINE, TestGateway, chat, said, secs};

/// D18, B3.
#[tokio::test]
async fn stop_settles_what_runs_and_what_waits_at_once_and_is_acknowledged() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let running = gateway.receives(said(&chat("ada"), "one")).await;
    let waiting = gateway.receives(said(&chat("ada"), "two")).await;
    let elsewhere = gateway.receives(said(&chat("bob"), "three")).await;

    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(waiting).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(elsewhere).await, TurnStatus::Accepted);
    assert_eq!(gateway.dossier(running).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.receives(said(&chat("bob"), "/stop")).await;
    gateway.at_rest().await;
}

/// D18. Also a turn whose answer is a debt.
#[tokio::test]
async fn stop_settles_a_deferred_turn() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let turn = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(SOFT_DEADLINE).await;

    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// D12. What the gateway does by itself is a turn with its rows, like any other.
#[tokio::test]
async fn stop_with_nothing_to_stop_says_so() {
    let gateway = TestGateway::with(Script::replies("hi")).await;

    let turn = gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["There is nothing to stop."]);
    let dossier = gateway.dossier(turn).await;
    assert_eq!((dossier.runs.len(), dossier.deliveries.len(), dossier.attempts.len()), (1, 1, 1));
    gateway.at_rest().await;
}

/// B3. What comes after a stop runs.
#[tokio::test]
async fn after_a_stop_the_next_turn_runs() {
    let gateway = Made::new()
        .agent("main", |turn: &AgentTurn| match turn.text.as_str() {
            "stuck" => Script::hangs(),
            _ => Script::replies("fine"),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "stuck")).await;
    gateway.receives(said(&chat("ada"), "/stop")).await;

    gateway.receives(said(&chat("ada"), "and now?")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped.", "fine"]);
    gateway.at_rest().await;
}

/// A stop that the gateway died on is carried out before what it is about is taken up again.
#[tokio::test]
async fn a_stop_that_was_interrupted_stops_what_was_running() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    // The stop is accepted; what it does is not stored any more.
    gateway.life.crash_at(2, crate::life::Crash::Before);
    let event = said(&chat("ada"), "/stop");
    gateway.accepts(event).await;
    gateway.settle().await;

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.agent("main").runs().len(), 1, "it did not run again");
    gateway.at_rest().await;
}

#[tokio::test]
async fn new_makes_the_agent_forget() {
    let gateway = TestGateway::with(Script::replies("yes")).await;
    gateway.receives(said(&chat("ada"), "remember this")).await;
    gateway.receives(said(&chat("ada"), "/new")).await;

    gateway.receives(said(&chat("ada"), "do you remember?")).await;
    gateway.advance(secs(1)).await;

    let runs = gateway.agent("main").runs();
    assert_ne!(runs[0].turn.session, runs[1].turn.session);
    assert!(runs[1].turn.history.is_empty());
    assert_eq!(gateway.visible(&chat("ada")), ["yes", "A new start.", "yes"]);
    gateway.at_rest().await;
}
