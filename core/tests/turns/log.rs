//! The log: every step of a turn, in order, in the transaction that made it.

use rejoinder_core::{
    Receipts, Support,
    conformance::scripted::{Fault, Script},
    store::LogFilter,
};

use crate::gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, said, secs};

#[tokio::test]
async fn every_step_of_a_turn_is_logged() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::NotSent);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(5)).await;

    assert_eq!(
        gateway.topics(turn).await,
        [
            "turn.accepted",
            "turn.started",
            "turn.claimed",
            "delivery.attempted",
            "delivery.failed",
            "delivery.attempted",
            "delivery.delivered",
            "turn.settled",
        ]
    );
    let log = gateway.log().await;
    assert!(log.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].at <= pair[1].at), "{log:#?}");
    let text = serde_json::to_string(&log).expect("it is JSON");
    assert!(!text.contains("hello") && !text.contains("\"done\""), "what people wrote is not in the log: {text}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_deferral_and_a_fallback_are_logged() {
    let gateway = TestGateway::with(Script::is_silent("chosen").taking(SOFT_DEADLINE + secs(10))).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE + secs(20)).await;

    let topics = gateway.topics(turn).await;
    let of_turn: Vec<&str> = topics.iter().map(String::as_str).filter(|topic| topic.starts_with("turn.")).collect();
    assert_eq!(
        of_turn,
        ["turn.accepted", "turn.started", "turn.claimed", "turn.deferred", "turn.claimed", "turn.settled"]
    );
    let log = gateway.log().await;
    let settled = &log.iter().find(|entry| entry.topic == "turn.settled").expect("it is settled").data;
    assert_eq!(settled["fallback"]["cause"], "silent", "{settled}");
    assert_eq!(settled["deferred"], true, "{settled}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_answer_whose_row_is_its_receipt_takes_four_entries() {
    let by_row = GatewaySetup::new().capable(|it| (it.receipts, it.edit) = (Receipts::Row, Support::No));
    let gateway = by_row.always(Script::replies("done")).start().await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.topics(turn).await, ["turn.accepted", "turn.started", "turn.claimed", "turn.settled"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn whoever_follows_the_log_is_told_of_each_commit_and_misses_nothing() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    let mut logged = gateway.store.logged();
    let from = *logged.borrow_and_update();
    let mut seen = Vec::new();

    for text in ["one", "two", "three"] {
        gateway.receives(said(&chat("ada"), text)).await;
        assert!(logged.has_changed().expect("the store is open"));
        let last = *logged.borrow_and_update();
        let after = seen.last().copied().unwrap_or(from);
        let filter = LogFilter { after, limit: 1000, topics: vec!["turn.*".to_owned()], ..LogFilter::default() };
        let entries = gateway.store.log(&filter).await.expect("readable");
        assert!(entries.iter().all(|entry| entry.topic.starts_with("turn.") && entry.seq <= last));
        seen.extend(entries.iter().map(|entry| entry.seq));
    }

    let turns: Vec<_> =
        gateway.log().await.iter().filter(|it| it.topic.starts_with("turn.")).map(|it| it.seq).collect();
    assert_eq!(seen, turns);
    gateway.at_rest().await;
}
