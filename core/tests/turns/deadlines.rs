//! Slow turns, and turns that wait for them.

use rejoinder_core::{
    AgentTurn, Cause, Ladder, Policy, Rung, Support,
    conformance::scripted::{Fault, Script},
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, policy, said, secs},
    texts::{DEFERRAL, LATE},
};

/// G2, H3.
#[tokio::test]
async fn a_deferral_becomes_the_answer_in_place() {
    let gateway = TestGateway::with(Script::replies("done").taking(SOFT_DEADLINE + secs(10))).await;

    gateway.receives(said(&chat("ada"), "status?")).await;
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// A10, B1.
#[tokio::test]
async fn every_turn_that_waits_behind_a_slow_one_gets_a_deferral_and_then_its_answer() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| Script::replies(&format!("re {}", turn.message.text)).taking(secs(60)))
        .start()
        .await;

    for text in ["one", "two", "three"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL, DEFERRAL, DEFERRAL]);
    gateway.advance(secs(180)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["re one", "re two", "re three"]);
    assert_eq!(gateway.agent("main").runs().len(), 3);
    gateway.at_rest().await;
}

/// A9, G2. After the hard deadline the ladder answers, and the next turn runs.
#[tokio::test]
async fn a_stuck_run_ends_at_its_deadline_and_the_next_turn_runs() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match turn.message.text.as_str() {
            "stuck" => Script::hangs().streaming("well"),
            _ => Script::replies("quick"),
        })
        .start()
        .await;

    let stuck = gateway.receives(said(&chat("ada"), "stuck")).await;
    gateway.receives(said(&chat("ada"), "next")).await;
    gateway.advance(HARD_DEADLINE).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE, "quick"]);
    let runs = gateway.dossier(stuck).await.runs;
    assert_eq!(runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

/// H3. An agent that hangs is down like one that fails; one that a person stops is not.
#[tokio::test]
async fn an_agent_that_gives_no_answer_in_time_is_down() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let health = || gateway.engine().agents()[0].1.clone();

    for _ in 0..3 {
        gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.receives(said(&chat("ada"), "/stop")).await;
        gateway.settle().await;
    }
    assert_eq!(health().failures, 0);
    for _ in 0..3 {
        assert!(!health().is_down());
        gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.advance(HARD_DEADLINE + secs(1)).await;
    }

    assert!(health().is_down());
    assert_eq!(health().error.as_deref(), Some("the agent gave no answer in time"));
    gateway.at_rest().await;
}

/// D3. A waiting turn is answered, however many turns before it time out.
#[tokio::test]
async fn waiting_turns_outlive_the_timeouts_before_them() {
    let policy = Policy { max_deferrals: 10, ..policy() };
    let gateway = GatewaySetup::new()
        .policy(policy)
        .agent("main", |turn: &AgentTurn| match turn.message.text.as_str() {
            "stuck" => Script::hangs(),
            _ => Script::replies("at last"),
        })
        .start()
        .await;

    for text in ["stuck", "stuck", "stuck", "fine"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.advance(HARD_DEADLINE * 3 + secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE, LATE, LATE, "at last"]);
    gateway.at_rest().await;
}

/// Stopping a timed-out run does not stop the run of the agent that takes over.
#[tokio::test]
async fn an_agent_that_takes_over_after_a_timeout_is_not_stopped_with_the_first() {
    let ladder = Ladder::empty()
        .with(Cause::Timeout, vec![Rung::Handoff("orchestrator".to_owned()), Rung::Say("late".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(Policy { ladder, ..policy() })
        .always(Script::hangs())
        .agent("orchestrator", |_| Script::replies("taken over").taking(secs(30)))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HARD_DEADLINE + secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["taken over"]);
    gateway.at_rest().await;
}

/// G5. An answer that comes while the deferral is in flight waits for its result.
#[tokio::test]
async fn an_answer_that_meets_its_deferral_on_the_way_follows_it() {
    let gateway = TestGateway::with(Script::replies("done").taking(SOFT_DEADLINE + secs(1))).await;
    gateway.platform.hold(true);

    gateway.receives(said(&chat("ada"), "status?")).await;
    gateway.advance(SOFT_DEADLINE + secs(5)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.platform.hold(false);
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// G5. The answer replaces a deferral that was not sent.
#[tokio::test]
async fn an_answer_takes_the_place_of_a_deferral_that_was_not_sent() {
    let gateway = TestGateway::with(Script::replies("done").taking(SOFT_DEADLINE + secs(30))).await;
    gateway.platform.set_down(true);

    gateway.receives(said(&chat("ada"), "status?")).await;
    gateway.advance(SOFT_DEADLINE + secs(31)).await;
    gateway.platform.set_down(false);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let seen = gateway.platform.seen();
    assert_eq!(seen.len(), 1, "the deferral was never seen: {seen:?}");
    gateway.at_rest().await;
}

/// A refused deferral does not end the run.
#[tokio::test]
async fn a_refused_deferral_does_not_end_the_turn() {
    let gateway = TestGateway::with(Script::replies("done").taking(SOFT_DEADLINE + secs(10))).await;
    gateway.platform.queue_fault(Fault::Refuse);

    gateway.receives(said(&chat("ada"), "status?")).await;
    gateway.advance(SOFT_DEADLINE + secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// G3. An unpaid debt ends with the ladder.
#[tokio::test]
async fn a_debt_that_is_never_paid_ends_with_the_ladder() {
    let gateway =
        GatewaySetup::new().capable(|it| it.edit = Support::No).always(Script::defers(None, secs(60))).start().await;

    let turn = gateway.receives(said(&chat("ada"), "approve?")).await;
    gateway.advance(HARD_DEADLINE * 5).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some(LATE));
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

/// The client's patience is the deadline of the deferral.
#[tokio::test]
async fn a_client_with_little_patience_gets_its_deferral_in_time() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(15))).await;
    let event = rejoinder_core::InboundEvent { patience: Some(secs(5)), ..said(&chat("ada"), "quick!") };

    gateway.receives(event).await;
    gateway.advance(secs(5)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}
