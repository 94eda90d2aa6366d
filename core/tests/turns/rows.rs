//! Channels whose receipt is our own row.

use std::time::Duration;

use rejoinder_core::{
    Accepted, EarlierMessage, OperationError, Receipts, Scope, Support,
    conformance::scripted::{Fault, Script},
    store::{DeliveryState, Shown, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, said, secs},
    texts::DEFERRAL,
};

const HOUR: Duration = Duration::from_hours(1);

async fn rows(script: Script) -> TestGateway {
    GatewaySetup::new().capable(|it| it.receipts = Receipts::Row).always(script).start().await
}

fn text(shown: Option<&Shown>) -> Option<&str> {
    shown.map(|shown| shown.text.as_str())
}

/// E9, I3. Storing the row settles the turn; the platform is not called.
#[tokio::test]
async fn an_answer_that_is_a_row_is_delivered_when_it_is_stored() {
    let gateway = rows(Script::replies("done")).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let view = gateway.store.view(turn).await.expect("readable").expect("there");
    assert_eq!((view.status, text(view.shown.as_ref())), (TurnStatus::Answered, Some("done")));
    assert_eq!(gateway.platform.calls(), 0);
    gateway.at_rest().await;
}

#[tokio::test]
async fn whoever_watches_a_turn_sees_the_deferral_and_then_the_answer() {
    let gateway = rows(Script::replies("done").taking(SOFT_DEADLINE + secs(5))).await;
    let (_, watch) = gateway.intake().accept_and_watch(said(&chat("ada"), "hello")).await.expect("accepted");
    let mut watch = watch.expect("it is a turn");

    gateway.advance(SOFT_DEADLINE).await;
    let deferred = watch.changed().await;
    gateway.advance(secs(5)).await;
    let answered = watch.changed().await;

    assert_eq!((deferred.status, text(deferred.shown.as_ref())), (TurnStatus::Deferred, Some(DEFERRAL)));
    assert_eq!((answered.status, text(answered.shown.as_ref())), (TurnStatus::Answered, Some("done")));
    gateway.at_rest().await;
}

#[tokio::test]
async fn whoever_follows_the_channel_hears_of_every_turn_to_its_end() {
    let gateway = rows(Script::replies("done")).await;
    let mut follower = gateway.intake().follow();

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hello")).await;

    let mut answered = Vec::new();
    while let Ok(Some(view)) = follower.try_recv() {
        if view.status.is_final() {
            answered.push(view.conversation.chat.to_string());
        }
    }
    assert_eq!(answered, ["ada", "bob"]);
    gateway.at_rest().await;
}

/// E1, E6. A duplicate event returns the first one's turn, with its text.
#[tokio::test]
async fn the_same_event_again_is_the_same_turn() {
    let gateway = rows(Script::replies("done")).await;
    let event = said(&chat("ada"), "hello");
    let turn = gateway.receives(event.clone()).await;

    let again = gateway.intake().accept(event).await.expect("accepted");

    let message = EarlierMessage { text: "hello".to_owned(), sender: "ada".to_owned(), seal_to: None };
    assert_eq!(again, Accepted::Duplicate { turn: Some(turn), message: Some(message) });
    gateway.at_rest().await;
}

/// E3. A stored event is handled although its caller is gone.
#[tokio::test]
async fn an_event_whose_caller_hangs_up_is_answered_all_the_same() {
    let gateway = rows(Script::replies("done")).await;
    let intake = gateway.intake();
    let caller = tokio::spawn(async move { intake.accept(said(&chat("ada"), "hello")).await });
    while gateway.life.in_flight() == 0 && !caller.is_finished() {
        tokio::task::yield_now().await;
    }

    caller.abort();
    gateway.settle().await;

    let turns = gateway.turns().await;
    assert_eq!(turns.iter().map(|turn| turn.status).collect::<Vec<_>>(), [TurnStatus::Answered]);
    gateway.at_rest().await;
}

const fn is_unfit(done: &Result<(), OperationError>) -> bool {
    matches!(done, Err(OperationError::Unfit(_)))
}

async fn copies() -> TestGateway {
    let capable = GatewaySetup::new().capable(|it| (it.receipts, it.edit) = (Receipts::RowThenCopy, Support::No));
    capable.always(Script::replies("done")).start().await
}

/// A copy that its receiver refuses is a dead letter; its turn stays answered.
#[tokio::test]
async fn a_copy_that_is_refused_is_a_dead_letter() {
    let gateway = copies().await;
    gateway.platform.queue_fault(Fault::Refuse);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    let dead = gateway.dead_letters().await;
    assert_eq!(dead.iter().map(|dead| (dead.turn, dead.is_copy)).collect::<Vec<_>>(), [(turn, true)]);
    gateway.at_rest().await;
}

/// The operator sends it again; it may fail again and is tried as often as a new one.
#[tokio::test]
async fn a_dead_copy_is_sent_again_when_the_operator_asks() {
    let gateway = copies().await;
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.receives(said(&chat("ada"), "hello")).await;
    let dead = gateway.dead_letters().await.remove(0).id;
    gateway.platform.queue_fault(Fault::NotSent);
    gateway.platform.queue_fault(Fault::NotSent);

    gateway.retry(dead).await.expect("it is sent again");
    assert!(is_unfit(&gateway.retry(dead).await));
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let state = gateway.store.delivery(dead.into()).await.expect("readable").expect("there").state;
    assert_eq!(state, DeliveryState::Delivered);
    assert!(gateway.dead_letters().await.is_empty());
    gateway.at_rest().await;
}

/// Its age counts from then on: neither a limit nor an outage ends it at once.
#[tokio::test]
async fn a_dead_copy_that_is_sent_again_has_a_lifetime_of_its_own() {
    let gateway = copies().await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR * 25).await;
    let dead = gateway.dead_letters().await.remove(0).id;
    let state = async || gateway.store.delivery(dead.into()).await.expect("readable").expect("there").state;
    gateway.platform.set_down(false);
    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(60), scope: Scope::Conversation });

    gateway.retry(dead).await.expect("it is sent again");
    gateway.settle().await;
    assert_eq!(state().await, DeliveryState::Pending);
    gateway.platform.set_down(true);
    gateway.advance(HOUR * 23).await;
    assert_eq!(state().await, DeliveryState::Pending);
    gateway.platform.set_down(false);
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(state().await, DeliveryState::Delivered);
    gateway.at_rest().await;
}

/// Two requests at once are one.
#[tokio::test]
async fn a_dead_copy_is_sent_again_once_however_often_it_is_asked_for() {
    let gateway = copies().await;
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.receives(said(&chat("ada"), "hello")).await;
    let dead = gateway.dead_letters().await.remove(0).id;

    let (one, other) = tokio::join!(gateway.retry(dead), gateway.retry(dead));
    gateway.settle().await;

    assert!(one.is_ok() != other.is_ok() && is_unfit(&one) != is_unfit(&other), "{one:?} {other:?}");
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn only_what_is_dead_is_sent_again() {
    let gateway = copies().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let sent = gateway.dossier(turn).await.deliveries;

    for delivery in &sent {
        assert!(is_unfit(&gateway.retry(delivery.id.as_uuid()).await));
    }
    let unknown = gateway.retry(uuid::Uuid::nil()).await;
    assert!(matches!(unknown, Err(OperationError::Unknown(_))), "{unknown:?}");
    gateway.settle().await;

    assert_eq!((sent.len(), gateway.visible(&chat("ada"))), (2, vec!["done".to_owned()]));
    gateway.at_rest().await;
}
