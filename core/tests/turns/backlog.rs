//! Messages that are late, because the gateway or its connection was down.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, Backlog, Clock, EventKind, Farewell, InboundEvent, Overflow, Policy, Queues, Resend, Sender, Support,
    Timestamp, TurnId, conformance::scripted::Script, store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, ambient, chat, mention, operator, policy, said, secs},
    life::{Crash, Life},
};

const HOURS: Duration = Duration::from_hours(3);

fn setup(backlog: Backlog) -> GatewaySetup {
    let queues = Queues { backlog, ..Queues::default() };
    GatewaySetup {
        queues,
        ..GatewaySetup::new().agent("main", |turn| match turn.message.text.as_str() {
            "hang" => Script::hangs(),
            text => Script::replies(&format!("{text} + {}", turn.more.len())),
        })
    }
}

fn now(gateway: &TestGateway) -> Timestamp {
    Clock::now(&*gateway.clock)
}

/// Something that was sent three hours ago, and comes now.
fn late(gateway: &TestGateway, address: &str, text: &str) -> InboundEvent {
    let sent_at = Timestamp::from_millis(now(gateway).as_millis() - i64::try_from(HOURS.as_millis()).expect("small"));
    InboundEvent { sent_at: Some(sent_at), received_at: now(gateway), ..said(&chat(address), text) }
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

/// The age of a message is the platform's word, on Matrix even the sender's: it gives up nobody else's turn.
#[tokio::test]
async fn a_message_that_comes_late_gives_up_nothing_that_waits() {
    let patient = Policy { hard_deadline: 3 * HOURS, ..policy() };
    let gateway = setup(Backlog::Expire).slots(1).policy(patient).start().await;
    gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("bob"), "hang") }).await;
    let waits = gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("ada"), "one") }).await;
    gateway.advance(HOURS).await;
    gateway.intake().accept(late(&gateway, "ada", "old")).await.expect("it is stored");
    gateway.settle().await;
    gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("bob"), "/stop") }).await;
    gateway.advance(secs(10)).await;

    let visible = gateway.visible(&chat("ada"));
    assert!(visible.contains(&"Too old.".to_owned()) && visible.contains(&"one + 0".to_owned()), "{visible:?}");
    assert_eq!(gateway.status(waits).await, TurnStatus::Answered);
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

/// B5, D4. A group is told of what waited too long only if an answer is owed there.
#[tokio::test]
async fn talk_that_waited_too_long_expires_silently() {
    let mut gateway = setup(Backlog::Expire).slots(1).start().await;
    let comes = |event: InboundEvent| InboundEvent { received_at: now(&gateway), ..event };
    gateway.receives(comes(said(&chat("bob"), "hang"))).await;
    let mut waiting = Vec::new();
    for event in [ambient(&chat("room"), "talk"), ambient(&chat("hall"), "talk"), mention(&chat("hall"), "question")] {
        waiting.push(gateway.receives(comes(event)).await);
    }
    gateway.life.kill();
    gateway.clock.advance(HOURS);
    gateway.restart().await;

    assert!(gateway.visible(&chat("room")).is_empty(), "{:?}", gateway.visible(&chat("room")));
    assert_eq!(gateway.visible(&chat("hall")), ["Too old."]);
    for turn in waiting {
        assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    }
    gateway.receives(said(&chat("bob"), "/stop")).await;
    gateway.at_rest().await;
}

const ASKED: &str = "Answer the old ones?";

/// A gateway that asks, on a platform that shows nothing twice.
fn asking() -> GatewaySetup {
    setup(Backlog::Ask).capable(|it| it.resend = Resend::Idempotent)
}

fn new(gateway: &TestGateway, text: &str) -> InboundEvent {
    InboundEvent { received_at: now(gateway), ..said(&chat("ada"), text) }
}

/// The turn that asks about late messages, the latest one.
async fn question(gateway: &TestGateway) -> TurnId {
    let asks = gateway.turns().await.into_iter().filter(|turn| turn.handler.to_string().contains("late_asks"));
    asks.map(|turn| turn.turn_id).max().expect("it was asked")
}

/// Something comes in, perhaps into a crash: its platform then sends it again to the next life.
async fn comes_in(gateway: &mut TestGateway, life: &Life, event: InboundEvent) {
    let was_over = life.is_over();
    let (intake, again) = (gateway.intake(), event.clone());
    tokio::spawn(async move { intake.accept(event).await });
    gateway.settle().await;
    if life.is_over() && !was_over {
        gateway.restart().await;
        let _ = gateway.intake().accept(again).await;
        gateway.settle().await;
    }
}

/// Time passes, perhaps with a crash in it, and then a next life.
async fn passes(gateway: &mut TestGateway, life: &Life, time: Duration) {
    let was_over = life.is_over();
    gateway.advance(time).await;
    if life.is_over() && !was_over {
        gateway.restart().await;
        gateway.advance(time).await;
    }
}

/// D4, D9. Each conversation is asked once, whatever comes late while the question is open, and also over a restart.
#[tokio::test]
async fn what_comes_late_is_asked_about_once() {
    let mut gateway = asking().start().await;
    for number in 0..110 {
        gateway.receives(late(&gateway, ["ada", "bob"][number % 2], &format!("{number}"))).await;
    }
    let talk = InboundEvent { sent_at: late(&gateway, "", "").sent_at, ..ambient(&chat("room"), "talk") };
    assert_eq!(gateway.intake().accept(talk).await.expect("it is stored"), Accepted::Kept);
    gateway.advance(secs(600)).await;
    gateway.restart().await;
    gateway.receives(late(&gateway, "ada", "110")).await;
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("ada")), [ASKED]);
    assert_eq!(gateway.visible(&chat("bob")), [ASKED]);
    assert!(gateway.visible(&chat("room")).is_empty());
    assert!(gateway.agent("main").runs().is_empty());

    gateway.receives(said(&chat("ada"), "1")).await;
    gateway.receives(said(&chat("bob"), "the second one")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Answering.", "0 + 55"]);
    assert_eq!(gateway.visible(&chat("bob")), [ASKED, "Left."]);

    // The next outage is asked about as well.
    gateway.receives(late(&gateway, "bob", "again")).await;
    assert_eq!(gateway.visible(&chat("bob")), [ASKED, "Left.", ASKED]);
    gateway.receives(said(&chat("bob"), "2")).await;
    gateway.at_rest().await;
}

/// D4. A chat is asked once about two messages that come together. A third one, which comes together with the answer "Leave", is
/// left or asked about, and never answered. There are many chats, because the order of events in each is random.
#[tokio::test]
async fn late_messages_of_one_moment_are_asked_about_once() {
    let gateway = asking().start().await;
    let chats: Vec<String> = (0..60).map(|number| format!("chat {number}")).collect();
    let all = chats.iter().flat_map(|name| ["one", "two"].map(|text| late(&gateway, name, text))).collect();
    gateway.intake().accept_all(all, None).await.expect("accepted");
    gateway.advance(secs(10)).await;
    for name in &chats {
        assert_eq!(gateway.visible(&chat(name)), [ASKED]);
    }
    assert!(gateway.agent("main").runs().is_empty());

    let asks = gateway.turns().await.into_iter().filter(|turn| turn.handler.to_string().contains("late_asks"));
    let at_once = asks.flat_map(|turn| {
        let address = turn.conversation;
        let kind = EventKind::Choice { turn: turn.turn_id };
        let press = InboundEvent { kind, received_at: now(&gateway), ..said(&address, "Leave") };
        let three = InboundEvent { conversation: address, ..late(&gateway, "", "three") };
        [press, three].map(|event| {
            let intake = gateway.intake();
            tokio::spawn(async move { intake.accept(event).await.expect("accepted") })
        })
    });
    futures_util::future::join_all(at_once.collect::<Vec<_>>()).await;
    gateway.advance(secs(10)).await;

    for name in &chats {
        let visible = gateway.visible(&chat(name));
        assert!(visible == [ASKED, "Left."] || visible == [ASKED, "Left.", ASKED], "{name}: {visible:?}");
    }
    assert!(gateway.agent("main").runs().is_empty());
    gateway.advance(secs(25 * 3600)).await;
    gateway.at_rest().await;
}

/// D4. Where there are no buttons, the choices have numbers.
#[tokio::test]
async fn without_buttons_late_messages_are_decided_by_number() {
    let gateway = asking().capable(|it| it.choices = Support::No).start().await;
    let turn = gateway.receives(late(&gateway, "ada", "old")).await;
    assert_eq!(gateway.visible(&chat("ada")), [format!("{ASKED}\n\n1. Answer\n2. Leave")]);

    gateway.receives(said(&chat("ada"), "2")).await;

    assert_eq!(gateway.visible(&chat("ada"))[1..], ["Left."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// N2, Q12. In a group the writer of the first one decides, once.
#[tokio::test]
async fn late_messages_of_a_group_are_decided_by_whoever_was_asked() {
    let gateway = asking().start().await;
    let by = |sender: &str, event: InboundEvent| {
        let sender = Sender { id: sender.to_owned(), ..event.sender.clone() };
        InboundEvent { sender, received_at: now(&gateway), ..event }
    };
    let old = InboundEvent { sent_at: late(&gateway, "", "").sent_at, ..mention(&chat("room"), "old") };
    gateway.receives(by("ada", old)).await;
    let kind = EventKind::Choice { turn: question(&gateway).await };
    let press = |choice: &str| InboundEvent { kind: kind.clone(), ..mention(&chat("room"), choice) };

    assert_eq!(gateway.intake().accept(by("eve", press("Leave"))).await.expect("it is read"), Accepted::Kept);
    gateway.receives(by("ada", press("Answer"))).await;
    let again = gateway.intake().accept(by("ada", press("Leave"))).await.expect("it is read");
    gateway.advance(secs(10)).await;

    assert_eq!(again, Accepted::Picked { choice: "Answer".to_owned() });
    assert_eq!(gateway.visible(&chat("room")), [ASKED, "Answering.", "old + 0"]);
    gateway.at_rest().await;
}

/// D4. Nobody picked within a day: the chat is told that they are left.
#[tokio::test]
async fn late_messages_that_nobody_decides_about_are_left() {
    let gateway = asking().start().await;
    let turn = gateway.receives(late(&gateway, "ada", "old")).await;
    gateway.advance(secs(25 * 3600)).await;

    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Left."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// D4, B2. A new message is answered together with the late ones, and the question is closed.
#[tokio::test]
async fn a_new_message_is_answered_together_with_the_late_ones() {
    let gateway = asking().start().await;
    gateway.receives(late(&gateway, "ada", "old")).await;
    gateway.receives(late(&gateway, "ada", "older")).await;
    let asked = question(&gateway).await;
    gateway.receives(new(&gateway, "new")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "old + 2"]);
    let kind = EventKind::Choice { turn: asked };
    let press = InboundEvent { kind, ..new(&gateway, "Leave") };
    assert!(matches!(gateway.intake().accept(press).await, Ok(Accepted::Expired { .. })));
    gateway.receives(new(&gateway, "next")).await;
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "old + 2", "next + 0"]);
    gateway.at_rest().await;
}

/// D18. `/stop` gives late messages up, and the question then decides nothing.
#[tokio::test]
async fn late_messages_can_be_stopped() {
    let gateway = asking().start().await;
    let turn = gateway.receives(late(&gateway, "ada", "old")).await;
    gateway.receives(new(&gateway, "/stop")).await;
    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    let kind = EventKind::Choice { turn: question(&gateway).await };
    let press = gateway.intake().accept(InboundEvent { kind, ..new(&gateway, "Answer") }).await;

    assert!(matches!(press, Ok(Accepted::Expired { .. })), "{press:?}");
    assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Stopped."]);
    assert!(gateway.agent("main").runs().is_empty());
    gateway.at_rest().await;
}

/// The same if an operator has cancelled the messages before.
#[tokio::test]
async fn a_question_about_late_messages_that_were_cancelled_is_stopped() {
    let gateway = asking().start().await;
    let turn = gateway.receives(late(&gateway, "ada", "old")).await;
    let operations = gateway.engine().operations();
    operations.cancel(turn, Farewell::Silence, operator("a mistake")).await.expect("it is open");
    gateway.receives(new(&gateway, "/stop")).await;
    let kind = EventKind::Choice { turn: question(&gateway).await };
    let press = gateway.intake().accept(InboundEvent { kind, ..new(&gateway, "Answer") }).await;

    assert!(matches!(press, Ok(Accepted::Expired { .. })), "{press:?}");
    gateway.at_rest().await;
}

/// Once they are stopped, a number answers nothing but the agent, also after a restart, and the next outage is asked about.
#[tokio::test]
async fn a_question_about_late_messages_ends_with_them() {
    for restarts in [false, true] {
        let mut gateway = asking().start().await;
        gateway.receives(late(&gateway, "ada", "old")).await;
        gateway.receives(new(&gateway, "/stop")).await;
        if restarts {
            gateway.restart().await;
        }

        gateway.receives(new(&gateway, "1")).await;

        assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Stopped.", "1 + 0"], "{restarts}");
        gateway.receives(late(&gateway, "ada", "older")).await;
        assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some(ASKED), "{restarts}");
        gateway.receives(new(&gateway, "2")).await;
        assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("Left."), "{restarts}");
        gateway.at_rest().await;
    }
}

/// As many wait for a decision as wait for a run, and of the others somebody is told.
#[tokio::test]
async fn a_chat_is_asked_about_as_many_late_messages_as_may_wait() {
    for (overflow, told, answers) in
        [(Overflow::Newest, "Not so fast.", &["0 + 2"][..]), (Overflow::Oldest, "1 dropped: 0", &["1 + 3"][..])]
    {
        let mut setup = asking();
        setup.queues = Queues { cap: 3, overflow, ..setup.queues };
        let gateway = setup.start().await;
        for number in 0..5 {
            gateway.intake().accept(late(&gateway, "ada", &format!("{number}"))).await.expect("it is accepted");
            gateway.settle().await;
        }
        gateway.receives(said(&chat("ada"), "Answer")).await;
        gateway.advance(secs(10)).await;

        let visible = gateway.visible(&chat("ada"));
        assert_eq!(visible[..3], [ASKED, told, "Answering."], "{overflow:?}");
        assert_eq!(visible[3..], *answers, "{overflow:?}");
        gateway.at_rest().await;
    }
}

/// D1, D4. What comes late is asked about once, and what is picked is done once, over a crash at each write.
#[tokio::test]
async fn a_crash_at_any_write_asks_once_about_late_messages() {
    for (choice, then) in [("Answer", &["Answering.", "one + 1"][..]), ("Leave", &["Left."][..])] {
        for crash in [Crash::Before, Crash::After] {
            for number in 1..100 {
                let mut gateway = asking().start().await;
                let life = Arc::clone(&gateway.life);
                life.crash_at(number, crash);
                for event in ["one", "two"].map(|text| late(&gateway, "ada", text)) {
                    comes_in(&mut gateway, &life, event).await;
                }
                passes(&mut gateway, &life, secs(60)).await;
                assert_eq!(gateway.visible(&chat("ada")), [ASKED], "{choice} {crash:?} write {number}");
                let press = InboundEvent {
                    kind: EventKind::Choice { turn: question(&gateway).await },
                    ..new(&gateway, choice)
                };
                comes_in(&mut gateway, &life, press).await;
                passes(&mut gateway, &life, secs(60)).await;

                let visible = gateway.visible(&chat("ada"));
                assert_eq!(visible[..1], [ASKED], "{choice} {crash:?} write {number}");
                assert_eq!(visible[1..], *then, "{choice} {crash:?} write {number}");
                gateway.check_rest().await;
                if !life.is_over() {
                    assert!(number > 5, "it takes more than {number} writes");
                    break;
                }
                assert!(number < 99, "no end of writes");
            }
        }
    }
}

/// D1, D4. What waited while the gateway was down is asked about once, over a crash at each write of the start; and so is the day
/// that somebody has.
#[tokio::test]
async fn what_waited_too_long_is_asked_about_once() {
    for number in 1..100 {
        for crash in [Crash::Before, Crash::After] {
            let mut gateway = asking().slots(1).start().await;
            gateway.receives(InboundEvent { received_at: now(&gateway), ..said(&chat("bob"), "hang") }).await;
            let mut waiting = Vec::new();
            for text in ["one", "two"] {
                waiting.push(gateway.receives(new(&gateway, text)).await);
            }
            gateway.life.kill();
            gateway.clock.advance(HOURS);
            let life = Arc::new(Life::default());
            life.crash_at(number, crash);
            gateway.begin(Arc::clone(&life)).await;
            gateway.settle().await;
            let has_crashed = life.is_over();
            gateway.restart().await;
            gateway.receives(said(&chat("bob"), "/stop")).await;
            gateway.advance(secs(60)).await;

            assert_eq!(gateway.visible(&chat("ada")), [ASKED], "{number} {crash:?}");
            gateway.advance(secs(25 * 3600)).await;
            assert_eq!(gateway.visible(&chat("ada")), [ASKED, "Left."], "{number} {crash:?}");
            for turn in waiting {
                assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
            }
            gateway.at_rest().await;
            if !has_crashed && crash == Crash::After {
                assert!(number > 4, "it takes more than {number} writes");
                return;
            }
        }
    }
    panic!("no end of writes");
}

/// D1. A crash at each write while a newer message takes the late ones with it: every message is answered, and nothing is left.
#[tokio::test]
async fn a_crash_at_any_write_of_a_newer_message_answers_the_late_ones() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..100 {
            let mut gateway = asking().start().await;
            let old = gateway.receives(late(&gateway, "ada", "old")).await;
            let life = Arc::clone(&gateway.life);
            life.crash_at(number, crash);
            let event = new(&gateway, "new");
            comes_in(&mut gateway, &life, event).await;
            // The start comes before the soft deadline: a turn whose deferral is on its way is answered by itself.
            passes(&mut gateway, &life, SOFT_DEADLINE.saturating_sub(secs(5))).await;
            let has_crashed = life.is_over();

            let visible = gateway.visible(&chat("ada"));
            assert_eq!(visible, [ASKED, "old + 1"], "{crash:?} write {number}");
            assert_ne!(gateway.status(old).await, TurnStatus::Cancelled);
            gateway.restart().await;
            gateway.receives(new(&gateway, "1")).await;
            assert_eq!(gateway.visible(&chat("ada"))[2..], ["1 + 0"], "{crash:?} write {number}");
            gateway.check_rest().await;
            if !has_crashed {
                assert!(number > 3, "it takes more than {number} writes");
                break;
            }
            assert!(number < 99, "no end of writes");
        }
    }
}
