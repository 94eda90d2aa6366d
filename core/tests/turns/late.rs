//! Runs that go on past their deadline, and clocks that are set ahead.

use std::time::Duration;

use rejoinder_core::{
    AgentTurn, Clock, LateAnswer, Policy, Support,
    conformance::scripted::Script,
    store::{TurnFilter, TurnListState, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, policy, said, secs},
    texts::{DEFERRAL, LATE},
};

const WINDOW: Duration = secs(120);

/// A gateway whose agent takes `over` longer than its deadline for a slow turn, and answers any other at once.
async fn slow(late_answer: LateAnswer, over: Duration) -> TestGateway {
    let policy = Policy { late_answer, late_window: WINDOW, ..policy() };
    let director = move |turn: &AgentTurn| match turn.message.text.as_str() {
        "slow" => Script::replies("at last").taking(HARD_DEADLINE + over),
        text => Script::replies(&format!("re {text}")),
    };
    GatewaySetup::new().policy(policy).agent("main", director).start().await
}

/// D3.
#[tokio::test]
async fn an_answer_that_comes_after_the_fallback_is_delivered() {
    let gateway = slow(LateAnswer::Deliver, secs(60)).await;

    gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(HARD_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE, "at last"]);
    gateway.at_rest().await;
}

/// D3.
#[tokio::test]
async fn an_answer_that_comes_after_the_fallback_is_recorded() {
    let gateway = slow(LateAnswer::Record, secs(60)).await;

    let turn = gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(HARD_DEADLINE + secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.runs[0].end.as_deref(), Some("reply"));
    assert!(dossier.remarks.iter().any(|entry| entry.detail.ends_with("at last")), "{:#?}", dossier.remarks);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_late_run_holds_up_no_turn_behind_it() {
    let gateway = slow(LateAnswer::Deliver, secs(60)).await;

    gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.receives(said(&chat("ada"), "waiting")).await;
    gateway.advance(HARD_DEADLINE).await;
    gateway.receives(said(&chat("ada"), "new")).await;
    assert_eq!(gateway.visible(&chat("ada")), [LATE, "re waiting", "re new"]);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE, "re waiting", "re new", "at last"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_late_run_is_stopped_at_the_end_of_its_window() {
    let gateway = slow(LateAnswer::Deliver, WINDOW + secs(1)).await;

    let turn = gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(HARD_DEADLINE + WINDOW).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    assert_eq!(gateway.dossier(turn).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

/// A gateway whose agent hangs when it is told to, is late, or answers at once.
async fn crowded(slots: usize) -> TestGateway {
    let policy = Policy { late_answer: LateAnswer::Deliver, late_window: WINDOW, ..policy() };
    let director = |turn: &AgentTurn| match turn.message.text.as_str() {
        "hang" => Script::hangs(),
        "slow" => Script::replies("at last").taking(HARD_DEADLINE + secs(60)),
        text => Script::replies(&format!("re {text}")),
    };
    GatewaySetup::new().policy(policy).slots(slots).agent("main", director).start().await
}

#[tokio::test]
async fn a_late_run_ends_for_a_person_who_waits() {
    let gateway = crowded(1).await;

    let hung = gateway.receives(said(&chat("ada"), "hang")).await;
    gateway.receives(said(&chat("bob"), "before")).await;
    gateway.advance(HARD_DEADLINE).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    assert_eq!(gateway.visible(&chat("bob")), ["re before"]);
    assert_eq!(gateway.dossier(hung).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_late_run_ends_for_a_person_who_writes_while_it_goes_on() {
    let gateway = crowded(1).await;

    gateway.receives(said(&chat("ada"), "hang")).await;
    gateway.advance(HARD_DEADLINE + secs(30)).await;
    gateway.receives(said(&chat("bob"), "after")).await;

    assert_eq!(gateway.visible(&chat("bob")), ["re after"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn only_the_oldest_late_run_ends_for_one_person_who_waits() {
    let gateway = crowded(2).await;

    let oldest = gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(secs(1)).await;
    gateway.receives(said(&chat("bob"), "slow")).await;
    gateway.advance(HARD_DEADLINE).await;
    gateway.receives(said(&chat("eve"), "hello")).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    assert_eq!(gateway.visible(&chat("bob")), [LATE, "at last"]);
    assert_eq!(gateway.dossier(oldest).await.runs[0].end.as_deref(), Some("stopped"));
    gateway.at_rest().await;
}

/// Four people at a time, each for as long as the hard deadline.
#[tokio::test]
async fn nobody_waits_behind_runs_whose_people_have_been_told() {
    let gateway = crowded(4).await;

    for number in 0..24 {
        gateway.receives(said(&chat(&format!("c{number}")), "hang")).await;
    }
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HARD_DEADLINE * 6).await;

    assert_eq!(gateway.visible(&chat("ada")), ["re hello"]);
    for number in 0..24 {
        assert_eq!(gateway.visible(&chat(&format!("c{number}"))), [LATE]);
    }
    gateway.advance(WINDOW).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_late_run_that_dies_with_the_process_is_not_run_again() {
    let mut gateway = slow(LateAnswer::Deliver, secs(60)).await;

    let turn = gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(HARD_DEADLINE).await;
    gateway.restart().await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    assert_eq!(gateway.dossier(turn).await.runs.len(), 1);
    gateway.at_rest().await;
}

/// G5. A machine without a battery clock that gets the time from a server.
#[tokio::test]
async fn a_clock_that_is_set_ahead_ends_no_run() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(30))).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1)).await;
    gateway.clock.set_ahead(secs(365 * 24 * 3600));
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(29)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.dossier(turn).await.runs.len(), 1);
    gateway.at_rest().await;
}

/// G5, G2.
#[tokio::test]
async fn a_run_has_its_whole_time_after_the_clock_was_set_ahead_and_no_more() {
    let gateway = TestGateway::with(Script::hangs()).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;
    gateway.clock.set_ahead(secs(24 * 3600));
    gateway.settle().await;
    gateway.advance(secs(579)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_signal_that_nobody_has_seen_after_the_soft_deadline_is_listed_as_overdue() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    let overdue = async || {
        let state = Some(TurnListState::Overdue);
        let now = Some(gateway.clock.now());
        let filter = TurnFilter { state, now, limit: 10, ..TurnFilter::default() };
        gateway.store.list_turns(&filter).await.expect("readable").len()
    };

    gateway.platform.hold(true);
    let turn = gateway.accepts(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE + secs(5)).await;
    assert_eq!(overdue().await, 0);
    gateway.advance(secs(1)).await;
    assert_eq!(overdue().await, 1);
    assert_eq!(gateway.store.backlog().await.expect("readable").overdue, 1);
    gateway.platform.hold(false);
    gateway.settle().await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert_eq!(overdue().await, 0);
    gateway.at_rest().await;
}

/// D3, B13.
#[tokio::test]
async fn a_late_run_that_streams_does_not_overwrite_the_fallback() {
    let policy = Policy { late_answer: LateAnswer::Record, late_window: WINDOW, ..policy() };
    let script = Script::replies("one two three").streaming("one").taking(HARD_DEADLINE + secs(5)).streaming(" two");
    let gateway = GatewaySetup::new()
        .policy(policy)
        .capable(|it| {
            (it.drafts, it.drafts_are_messages, it.edit) = (Support::Full, true, Support::Full);
            (it.typing, it.typing_interval) = (Support::Full, secs(4));
        })
        .always(script.taking(secs(20)))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(HARD_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    let calls = gateway.platform.calls();
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    assert_eq!(gateway.platform.calls(), calls, "nothing of the late run is shown, nor that it types");
    gateway.at_rest().await;
}
