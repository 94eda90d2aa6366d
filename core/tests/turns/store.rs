//! A store that temporarily cannot write, or cannot be read.

use rejoinder_core::{
    AgentTurn, Budget, IntakeError, PersonRole, QueueMode, Queues, StoreError, TurnId,
    conformance::scripted::{Script, ScriptedAgent},
    store::TurnStatus,
};
use rstest::rstest;

use crate::{
    approvals::person,
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, said, secs},
    texts::{DEFERRAL, FAILED, LATE},
};

/// An agent for whose runs much is read.
fn remembering() -> GatewaySetup {
    let mut setup = GatewaySetup::new();
    let agent = |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).remembering(50).keeping_sessions();
    setup.agents.push(("main", Box::new(agent)));
    setup.budgets.insert("main".into(), Budget { tokens: Some(1_000_000), micros: None });
    setup
}

/// The same after its first answer in a chat, when the next run cannot read the transcript.
async fn waiting_for_the_transcript() -> (TestGateway, TurnId) {
    let gateway = remembering().slots(1).start().await;
    gateway.receives(said(&chat("ada"), "before")).await;
    gateway.life.set_away(Some("transcript"));
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    (gateway, turn)
}

/// E3. An event that cannot be stored is rejected; accepted turns are not lost.
#[tokio::test]
async fn while_the_store_cannot_write_nothing_is_acknowledged_and_nothing_is_lost() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(5))).await;
    gateway.receives(said(&chat("ada"), "before")).await;
    gateway.life.set_store_down(true);
    let event = said(&chat("bob"), "meanwhile");

    let refused = gateway.intake().accept(event.clone()).await;
    assert!(matches!(refused, Err(IntakeError::Store(StoreError::Unavailable(_)))));
    gateway.advance(secs(30)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());

    gateway.life.set_store_down(false);
    gateway.advance(secs(10)).await;
    gateway.receives(event).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.at_rest().await;
}

/// E8. A receipt is kept until it can be stored; the delivery is not sent again.
#[tokio::test]
async fn a_receipt_that_cannot_be_stored_is_not_lost() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.hold(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.life.set_store_down(true);
    gateway.platform.hold(false);
    gateway.advance(secs(60)).await;

    gateway.life.set_store_down(false);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.platform.calls(), 1);
    gateway.at_rest().await;
}

/// A10. Deadlines that pass meanwhile take effect when the store can write again.
#[tokio::test]
async fn deadlines_that_passed_meanwhile_are_kept_afterwards() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text).taking(SOFT_DEADLINE * 3))
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.life.set_store_down(true);
    gateway.advance(SOFT_DEADLINE * 2).await;
    gateway.life.set_store_down(false);
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL, DEFERRAL]);
    gateway.advance(SOFT_DEADLINE * 6).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// The turn has time until its deadline.
#[rstest]
#[case::the_transcript("transcript")]
#[case::the_last_answer("answered_before")]
#[case::the_session_of_the_agent("agent_session")]
#[case::what_the_agent_has_used("agent_use")]
#[tokio::test]
async fn a_run_waits_until_what_it_needs_can_be_read(#[case] method: &'static str) {
    let gateway = remembering().start().await;
    gateway.receives(said(&chat("ada"), "before")).await;
    gateway.life.set_away(Some(method));

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done", DEFERRAL]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.life.set_away(None);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    gateway.at_rest().await;
}

/// A9. The turns behind it do not wait any longer than for an agent that hangs.
#[tokio::test]
async fn a_run_that_waits_for_the_store_ends_at_its_deadline() {
    let (gateway, _) = waiting_for_the_transcript().await;
    gateway.receives(said(&chat("bob"), "next")).await;
    gateway.advance(HARD_DEADLINE).await;
    gateway.life.set_away(None);
    gateway.advance(secs(10)).await;

    let visible = gateway.visible(&chat("ada"));
    assert!(visible.len() == 2 && [FAILED, LATE].contains(&visible[1].as_str()), "{visible:?}");
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    assert_eq!(gateway.agent("main").runs().len(), 2);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_run_that_waits_for_the_store_can_be_stopped() {
    let (gateway, turn) = waiting_for_the_transcript().await;

    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "Stopped."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    assert_eq!(gateway.dossier(turn).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_run_that_waits_for_the_store_begins_again_after_a_shutdown() {
    let (mut gateway, turn) = waiting_for_the_transcript().await;

    gateway.stop(secs(5)).await;
    gateway.begin_life().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    let ends: Vec<_> = gateway.dossier(turn).await.runs.into_iter().map(|run| run.end).collect();
    assert_eq!(ends, [Some("stopped".to_owned()), Some("reply".to_owned())]);
    gateway.at_rest().await;
}

/// Only so many may wait of one person.
#[tokio::test]
async fn a_request_for_approval_waits_until_those_that_wait_can_be_counted() {
    let mut setup = GatewaySetup::new().always(Script::asks_approval("pay the rent", None));
    setup.people = vec![person("Grace", PersonRole::Owner)];
    let gateway = setup.start().await;
    gateway.life.set_away(Some("approvals_for"));

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.life.set_away(None);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Waits for a yes: pay the rent"]);
    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn turns_that_are_answered_together_are_so_also_if_they_cannot_be_read_for_a_while() {
    let queues = Queues { mode: QueueMode::Collect, ..Queues::default() };
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().always(Script::replies("done")) }.start().await;
    gateway.life.set_away(Some("waiting_turns"));
    for text in ["one", "two"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.advance(secs(15)).await;
    assert!(gateway.agent("main").runs().is_empty());

    gateway.life.set_away(None);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.agent("main").runs()[0].turn.more.len(), 1);
    gateway.at_rest().await;
}
