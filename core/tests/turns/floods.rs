//! People who write more than the limits allow.

use rejoinder_core::{
    Accepted, AgentTurn, InboundEvent, PersonLimits, Sender, SenderKind, conformance::scripted::Script,
};

use crate::gateway::{GatewaySetup, TestGateway, ambient, chat, said, secs};

const NOTICE: &str = "Not so fast.";

/// A gateway whose agent echoes after `taking` seconds.
async fn with(turns_per_minute: Option<u32>, waiting_turns: Option<u32>, taking: u64) -> TestGateway {
    let mut setup =
        GatewaySetup::new().agent("main", move |turn: &AgentTurn| Script::replies(&turn.text).taking(secs(taking)));
    setup.limits = PersonLimits { turns_per_minute, waiting_turns };
    setup.start().await
}

async fn comes_in(gateway: &TestGateway, event: InboundEvent) -> Accepted {
    let accepted = gateway.intake().accept(event).await.expect("accepted");
    gateway.settle().await;
    accepted
}

fn by(sender: &str, event: InboundEvent) -> InboundEvent {
    InboundEvent { sender: Sender { id: sender.to_owned(), ..event.sender.clone() }, ..event }
}

#[tokio::test]
async fn who_writes_too_much_in_a_minute_is_told_once_and_opens_no_turn() {
    let gateway = with(Some(2), None, 0).await;
    gateway.advance(secs(20)).await;
    for text in ["one", "two"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    let third = said(&chat("ada"), "three");

    assert_eq!(comes_in(&gateway, third.clone()).await, Accepted::Limited { retry_after: secs(30) });
    let elsewhere = comes_in(&gateway, said(&chat("another chat"), "four")).await;
    assert!(matches!(elsewhere, Accepted::Limited { .. }), "the limit is the person's, in all chats: {elsewhere:?}");

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE]);
    assert!(gateway.visible(&chat("another chat")).is_empty(), "one notice a minute is enough");
    let again = comes_in(&gateway, third.clone()).await;
    assert!(matches!(&again, Accepted::Duplicate { turn: None, message: None }), "{again:?}");
    gateway.receives(by("bob", said(&chat("bob"), "hello"))).await;
    assert_eq!(gateway.visible(&chat("bob")), ["hello"]);

    gateway.advance(secs(40)).await;
    gateway.receives(said(&chat("ada"), "five")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", NOTICE, "five"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn commands_are_not_limited() {
    let gateway = with(Some(1), Some(1), 60).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "two")).await, Accepted::Limited { .. }));

    gateway.receives(said(&chat("ada"), "/status")).await;
    gateway.receives(said(&chat("ada"), "/stop")).await;

    assert_eq!(gateway.visible(&chat("ada")), [NOTICE, "I am working on it.", "Stopped."]);
    gateway.at_rest().await;
}

/// A restart does not forget what waits.
#[tokio::test]
async fn who_has_many_waiting_turns_opens_no_more() {
    let mut gateway = with(None, Some(2), 5).await;
    for text in ["one", "two", "three"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "four")).await, Accepted::Limited { .. }));
    gateway.restart().await;
    assert!(matches!(comes_in(&gateway, said(&chat("ada"), "five")).await, Accepted::Limited { .. }));
    let free = comes_in(&gateway, said(&chat("a free chat"), "six")).await;
    assert!(matches!(free, Accepted::Turn(_)), "a turn that need not wait is not limited: {free:?}");

    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), [NOTICE, "one", "two", "three"]);
    gateway.receives(said(&chat("ada"), "seven")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("seven"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn nobody_is_told_who_was_owed_nothing() {
    let gateway = with(Some(1), None, 0).await;
    for number in 0..3 {
        comes_in(&gateway, ambient(&chat("group"), &format!("{number}"))).await;
    }

    assert_eq!(gateway.visible(&chat("group")), ["0"]);
    gateway.at_rest().await;
}

/// Where the channel cannot tell people apart, each conversation counts as a person.
#[tokio::test]
async fn unnamed_people_are_limited_by_conversation() {
    let gateway = with(Some(1), None, 0).await;
    let unnamed = |name: &str| {
        let event = said(&chat(name), "hello");
        InboundEvent { sender: Sender { kind: SenderKind::Unnamed, ..event.sender.clone() }, ..event }
    };

    assert!(matches!(comes_in(&gateway, unnamed("a")).await, Accepted::Turn(_)));
    assert!(matches!(comes_in(&gateway, unnamed("b")).await, Accepted::Turn(_)));
    let second = comes_in(&gateway, unnamed("a")).await;

    assert_eq!(second, Accepted::Limited { retry_after: secs(60) });
    assert_eq!(gateway.visible(&chat("a")), ["hello"], "the caller is told by the result");
    gateway.at_rest().await;
}
