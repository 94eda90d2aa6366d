//! Rows that are past their time disappear, and nothing else does.

use std::time::Duration;

use rejoinder_core::{
    Accepted, AgentTurn, ChannelId, ConversationRef, Lifetimes, TurnId,
    conformance::scripted::{Fault, Script, capabilities},
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, said, secs},
    life::Crash,
};

const DAY: Duration = secs(24 * 3600);

/// A gateway that keeps turns for ten days, payloads for one and dead letters forever. Its agent echoes.
fn forgetful() -> GatewaySetup {
    let mut setup = GatewaySetup::new().agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "hang" => Script::hangs(),
        text => Script::replies(text),
    });
    setup.lifetimes = Lifetimes { turns: Some(DAY * 10), payloads: Some(DAY), ..Lifetimes::default() };
    setup
}

fn gone() -> ChannelId {
    ChannelId::new("gone", "main")
}

async fn is_there(gateway: &TestGateway, turn: TurnId) -> bool {
    gateway.store.dossier(turn).await.expect("readable").is_some()
}

/// A settled turn disappears when its time has come; its event is still known when the platform sends it again.
#[tokio::test]
async fn a_settled_turn_disappears_after_its_time_and_is_not_answered_again() {
    let gateway = forgetful().start().await;
    let event = said(&chat("ada"), "hello");
    let turn = gateway.receives(event.clone()).await;

    gateway.advance(DAY * 9).await;
    assert!(is_there(&gateway, turn).await);
    assert_eq!(gateway.dossier(turn).await.turn.event.raw, "", "its payload has gone before it");
    gateway.advance(DAY + secs(2 * 3600)).await;

    assert!(!is_there(&gateway, turn).await);
    let again = comes_in(&gateway, event.clone()).await;
    assert_eq!(again, Accepted::Duplicate { turn: Some(turn), message: None });
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);

    gateway.advance(DAY * 40).await;
    assert!(matches!(comes_in(&gateway, event).await, Accepted::Turn(_)), "its key is past its time, too");
    gateway.at_rest().await;
}

/// What is owed stays, however old it is; so does a dead letter.
#[tokio::test]
async fn what_is_owed_and_what_is_a_dead_letter_stay() {
    let mut setup = forgetful();
    setup.channels.push((gone(), capabilities()));
    let mut gateway = setup.start().await;
    gateway.platform.choose_faults(|delivery| (*delivery.conversation().chat == *"bob").then_some(Fault::Refuse));
    let dead = gateway.receives(said(&chat("bob"), "hello")).await;
    let owed = gateway.receives(said(&ConversationRef::new(gone(), "ada"), "hang")).await;
    let kind = gateway.forget_channel(&gone());
    gateway.restart().await;

    gateway.advance(DAY * 40).await;

    assert_eq!(gateway.status(dead).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.status(owed).await, TurnStatus::Accepted);
    gateway.know_channel(&gone(), kind);
    gateway.restart().await;
    gateway.advance(DAY).await;
    assert_eq!(gateway.status(owed).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

/// A store that could not write is tried again within an hour.
#[tokio::test]
async fn what_could_not_be_removed_is_removed_soon_after() {
    let gateway = forgetful().start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(DAY * 9).await;
    gateway.life.set_store_down(true);
    gateway.advance(DAY + secs(6 * 3600)).await;
    assert!(is_there(&gateway, turn).await);

    gateway.life.set_store_down(false);
    gateway.advance(secs(2 * 3600)).await;

    assert!(!is_there(&gateway, turn).await);
    gateway.at_rest().await;
}

/// A gateway without work reads its store once a day.
#[tokio::test]
async fn nothing_to_remove_costs_next_to_nothing() {
    let gateway = forgetful().start().await;
    let done = gateway.life.done();

    gateway.advance(DAY * 10).await;

    let calls = gateway.life.done() - done;
    assert!(calls <= 20, "{calls} store calls");
    gateway.at_rest().await;
}

/// A person who returns after everything was removed begins a new conversation.
#[tokio::test]
async fn whoever_returns_after_everything_was_removed_begins_anew() {
    let gateway = forgetful().start().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(DAY * 12).await;
    assert_eq!(gateway.store.conversation(&chat("ada")).await.expect("readable"), None);

    gateway.receives(said(&chat("ada"), "two")).await;

    let runs = gateway.agent("main").runs();
    assert_ne!(runs[0].turn.place.session, runs[1].turn.place.session);
    assert!(runs[1].turn.past.history.is_empty());
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// D1. A crash at any write of the removal loses nothing, and the next start goes on.
#[tokio::test]
async fn a_crash_while_rows_are_removed_costs_nothing() {
    for write in 1..=4 {
        for crash in [Crash::Before, Crash::After] {
            let mut gateway = forgetful().start().await;
            for number in 0..250 {
                gateway.accepts(said(&chat(&format!("c{}", number % 7)), &format!("{number}"))).await;
            }
            gateway.settle().await;
            gateway.advance(DAY * 9).await;
            gateway.life.crash_at(write, crash);
            gateway.advance(DAY * 2).await;
            assert!(gateway.life.is_over(), "removing takes more writes than {write}");

            gateway.restart().await;
            gateway.advance(secs(3600)).await;

            assert!(gateway.turns().await.is_empty());
            gateway.receives(said(&chat("c1"), "still here")).await;
            assert_eq!(gateway.visible(&chat("c1")).last().map(String::as_str), Some("still here"));
            gateway.at_rest().await;
        }
    }
}
