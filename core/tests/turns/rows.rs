//! Channels whose receipt is our own row.

use rejoinder_core::{
    Accepted, EarlierMessage, Receipts,
    conformance::scripted::Script,
    store::{Shown, TurnStatus},
};

use crate::gateway::{DEFERRAL, GatewaySetup, SOFT_DEADLINE, TestGateway, chat, said, secs};

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
    while let Ok(view) = follower.try_recv() {
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

    let message = EarlierMessage { text: "hello".to_owned(), sender: "ada".to_owned() };
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
