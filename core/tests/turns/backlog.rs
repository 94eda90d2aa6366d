//! Messages that are late, because the gateway or its connection was down.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, Backlog, Clock, InboundEvent, Queues, Resend, Timestamp, conformance::scripted::Script, store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, said, secs},
    life::{Crash, Life},
};

const HOURS: Duration = Duration::from_hours(3);

fn setup(backlog: Backlog) -> GatewaySetup {
    let queues = Queues { backlog, ..Queues::default() };
    GatewaySetup {
        queues,
        ..GatewaySetup::new().agent("main", |turn| match turn.text.as_str() {
            "hang" => Script::hangs(),
            text => Script::replies(&format!("{text} + {}", turn.more.len())),
        })
    }
}

fn now(gateway: &TestGateway) -> Timestamp {
    Clock::now(&*gateway.clock)
}

/// Something that was sent three hours ago, and comes now.
fn late(gateway: &TestGateway, place: &str, text: &str) -> InboundEvent {
    let sent_at = Timestamp::from_millis(now(gateway).as_millis() - i64::try_from(HOURS.as_millis()).expect("small"));
    InboundEvent { sent_at: Some(sent_at), received_at: now(gateway), ..said(&chat(place), text) }
}

/// D4, D9. Without a policy nothing is dropped, however late it comes.
#[tokio::test]
async fn what_comes_late_is_answered() {
    let gateway = setup(Backlog::Answer).start().await;
    for number in 0..110 {
        gateway.receives(late(&gateway, "ada", &format!("{number}"))).await;
    }

    assert_eq!(gateway.visible(&chat("ada")).len(), 110);
    gateway.at_rest().await;
}

/// D4.
#[tokio::test]
async fn what_comes_late_is_answered_together() {
    let gateway = setup(Backlog::Summarize).start().await;
    let events = (0..110).map(|number| late(&gateway, "ada", &format!("{number}"))).collect();
    gateway.intake().accept_all(events, None).await.expect("they are accepted");
    gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("bob"), "new") }).await;
    gateway.advance(secs(10)).await;

    let visible = gateway.visible(&chat("ada"));
    assert_eq!(visible, ["0 + 100", "101 + 8"]);
    assert_eq!(gateway.visible(&chat("bob")), ["new + 0"]);
    gateway.at_rest().await;
}

/// D4. Each conversation is told once, and no agent runs. What comes in time is answered, and so is a command.
#[tokio::test]
async fn what_comes_late_expires_with_one_notice() {
    let gateway = setup(Backlog::Expire).start().await;
    for number in 0..110 {
        let event = late(&gateway, ["ada", "bob"][number % 2], &format!("{number}"));
        assert_eq!(gateway.intake().accept(event).await.expect("it is stored"), Accepted::Kept);
    }
    let talk = InboundEvent { sent_at: late(&gateway, "", "").sent_at, ..ambient(&chat("room"), "talk") };
    gateway.intake().accept(talk).await.expect("it is stored");
    gateway.receives(late(&gateway, "ada", "/status")).await;
    gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("ada"), "new") }).await;
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["Too old.", "Nothing is going on.", "new + 0"]);
    assert_eq!(gateway.visible(&chat("bob")), ["Too old."]);
    assert!(gateway.visible(&chat("room")).is_empty());

    // The next outage is told as well.
    gateway.advance(2 * HOURS).await;
    gateway.intake().accept(late(&gateway, "ada", "again")).await.expect("it is stored");
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")).len(), 4);
    gateway.at_rest().await;
}

/// D4, D1. What waited while the gateway was down is given up by one notice, also over a crash at each step. What an agent has
/// begun is answered.
#[tokio::test]
async fn what_waited_too_long_expires_with_one_notice() {
    for write in 1..8 {
        for crash in [Crash::Before, Crash::After] {
            let mut gateway =
                setup(Backlog::Expire).slots(1).capable(|it| it.resend = Resend::Idempotent).start().await;
            let running =
                gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("bob"), "hang") }).await;
            let mut waiting = Vec::new();
            for text in ["one", "two"] {
                waiting.push(
                    gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("ada"), text) }).await,
                );
            }
            gateway.life.kill();
            gateway.clock.advance(HOURS);
            let life = Arc::new(Life::default());
            life.crash_at(write, crash);
            gateway.begin(life).await;
            gateway.settle().await;
            gateway.restart().await;
            gateway.advance(secs(60)).await;

            assert_eq!(gateway.visible(&chat("ada")), ["Too old."], "{write} {crash:?}");
            for turn in waiting {
                assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
            }
            assert_ne!(gateway.status(running).await, TurnStatus::Cancelled);
            gateway.receives(said(&chat("bob"), "/stop")).await;
            gateway.at_rest().await;
        }
    }
}
