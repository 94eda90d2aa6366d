//! Rows that cannot be read. Each costs its own turn, which becomes a dead letter, and nothing else.

use rejoinder_core::{
    AgentTurn, QueueMode, Queues, TurnId,
    conformance::scripted::{Fault, Script},
    store::{DeliveryState, TurnFilter, TurnListState},
};

use crate::gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, is_on_postgres, said, secs};

/// Nodes of two versions that live.
const TWO_VERSIONS: &str = "
    insert into nodes (id, name, version, held, channels, agents, draining, clock_ms, since, until)
    select gen_random_uuid(), 'machine', v.version, '{}', '{}', '{}', false, 0, now(), now() + interval '1 hour'
    from unnest(array['1.0.0', '1.1.0']) as v (version)";

async fn with_one_slot() -> TestGateway {
    let echo = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(1));
    GatewaySetup::new().slots(1).agent("main", echo).start().await
}

async fn dead_letters(gateway: &TestGateway) -> Vec<TurnId> {
    let filter = TurnFilter { state: Some(TurnListState::Undeliverable), limit: 10, ..TurnFilter::default() };
    let turns = gateway.store.list_turns(&filter).await.expect("readable");
    turns.into_iter().map(|turn| turn.turn_id).collect()
}

#[tokio::test]
async fn a_waiting_turn_that_cannot_be_read_holds_up_nobody() {
    let gateway = with_one_slot().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let damaged = gateway.accepts(said(&chat("ada"), "two")).await;
    gateway.accepts(said(&chat("ada"), "three")).await;
    gateway.accepts(said(&chat("bob"), "four")).await;
    gateway.damage(damaged).await;

    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "three"]);
    assert_eq!(gateway.visible(&chat("bob")), ["four"]);
    assert_eq!(dead_letters(&gateway).await, [damaged]);
    let explained = gateway.explained(damaged).await;
    assert!(explained.contains("its record cannot be read"), "{explained}");
    gateway.at_rest().await;
}

/// A node of the other version may be able to read it, and may need the permit for that. SQLite has one node.
#[tokio::test]
async fn a_turn_that_is_left_to_another_version_keeps_no_permit() {
    if !is_on_postgres() {
        return;
    }
    let gateway = with_one_slot().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let damaged = gateway.accepts(said(&chat("ada"), "two")).await;
    gateway.accepts(said(&chat("bob"), "three")).await;
    gateway.damage(damaged).await;
    gateway.changes_rows(TWO_VERSIONS).await;

    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("bob")), ["three"]);
    assert!(dead_letters(&gateway).await.is_empty());

    gateway.changes_rows("delete from nodes").await;
    gateway.advance(secs(10)).await;
    assert_eq!(dead_letters(&gateway).await, [damaged]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_due_turn_that_cannot_be_read_is_set_aside() {
    let gateway = TestGateway::with(Script::replies("done").taking(SOFT_DEADLINE * 2)).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let damaged = gateway.receives(said(&chat("ada"), "two")).await;
    gateway.damage(damaged).await;

    gateway.advance(SOFT_DEADLINE).await;

    assert_eq!(dead_letters(&gateway).await, [damaged]);
    gateway.advance(SOFT_DEADLINE * 2).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// An attempt that ends in a turn that has become unreadable has its result, and the conversation goes on.
#[rstest::rstest]
#[case::it_was_delivered(None, "delivered")]
#[case::it_failed(Some(Fault::NotSent), "not_sent")]
#[tokio::test]
async fn a_turn_that_cannot_be_read_when_its_attempt_ends_is_set_aside(
    #[case] fault: Option<Fault>,
    #[case] result: &str,
) {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.hold(true);
    let damaged = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.damage(damaged).await;
    if let Some(fault) = fault.clone() {
        gateway.platform.queue_fault(fault);
    }

    gateway.platform.hold(false);
    gateway.settle().await;
    gateway.receives(said(&chat("ada"), "two")).await;

    let expected = if fault.is_some() { vec!["done"] } else { vec!["done", "done"] };
    assert_eq!(gateway.visible(&chat("ada")), expected);
    assert_eq!(dead_letters(&gateway).await, [damaged]);
    let dossier = gateway.dossier(damaged).await;
    let state = if fault.is_some() { DeliveryState::Dead } else { DeliveryState::Delivered };
    assert_eq!(dossier.deliveries[0].state, state);
    assert_eq!(dossier.attempts[0].result.as_deref(), Some(result));
    gateway.at_rest().await;
}

/// The same after a crash: the attempt does not stay without a result.
#[tokio::test]
async fn a_turn_with_an_attempt_that_cannot_be_read_after_a_crash_is_set_aside() {
    let mut gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.hold(true);
    let damaged = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.life.kill();
    gateway.damage(damaged).await;
    gateway.platform.hold(false);

    gateway.restart().await;
    gateway.receives(said(&chat("ada"), "two")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(dead_letters(&gateway).await, [damaged]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_running_turn_that_cannot_be_read_after_a_crash_is_set_aside() {
    let mut gateway = with_one_slot().await;
    let damaged = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.accepts(said(&chat("ada"), "two")).await;
    gateway.life.kill();
    gateway.damage(damaged).await;

    gateway.restart().await;
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    assert_eq!(dead_letters(&gateway).await, [damaged]);
    gateway.at_rest().await;
}

/// The turns that were merged into one that cannot be read are answered by themselves, at once and after a restart.
#[rstest::rstest]
#[case::while_it_runs(false)]
#[case::after_a_restart(true)]
#[tokio::test]
async fn what_was_merged_into_a_turn_that_cannot_be_read_is_answered(#[case] restarts: bool) {
    let echo = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(SOFT_DEADLINE * 2);
    let queues = Queues { mode: QueueMode::Collect, ..Queues::default() };
    let mut gateway = GatewaySetup { queues, ..GatewaySetup::new().agent("main", echo) }.start().await;
    let damaged = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(secs(5)).await;
    gateway.damage(damaged).await;
    if restarts {
        gateway.restart().await;
    }

    gateway.advance(SOFT_DEADLINE * 10).await;

    assert_eq!(dead_letters(&gateway).await, [damaged]);
    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    gateway.at_rest().await;
}
