//! A store that temporarily cannot write.

use rejoinder_core::{AgentTurn, IntakeError, StoreError, conformance::scripted::Script};

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, said, secs},
    texts::DEFERRAL,
};

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
