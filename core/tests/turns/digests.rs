//! Digests: what is open is listed, and what is pressed below it is done.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, Clock as _, EventKind, Identity, InboundEvent, Missed, NewSchedule, PersonRole, Resend,
    ScheduledAction, SeedPerson, Sender, TurnId, TurnStatus, When,
    conformance::scripted::{Fault, Script},
    store::{AuditFilter, Handler, QuestionFilter},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, operator, said, secs},
    life::at_every_write,
};

const HOUR: Duration = Duration::from_hours(1);

fn person(name: &str, role: PersonRole) -> SeedPerson {
    let identity = Identity { channel: main_channel(), id: name.to_lowercase() };
    SeedPerson { name: name.to_owned(), role, identities: vec![identity], home: None, language: None }
}

/// An agent that puts off what it is asked to do later, and asks what is to be asked.
fn puts_off(turn: &AgentTurn) -> Script {
    match (&*turn.text, &turn.deferred) {
        ("later", None) => Script::defers(Some("Soon."), HOUR * 40),
        ("later", Some(_)) => Script::replies("Here it is."),
        ("ask", _) => Script::asks("Tea or coffee?", &["tea", "coffee"]),
        (text, _) => Script::replies(text),
    }
}

/// The owner Grace and the member Ada have written, and so has Bob, who is not known. Now the platform refuses what is for Bob.
async fn known() -> TestGateway {
    let mut setup = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", puts_off);
    setup.people = vec![person("Grace", PersonRole::Owner), person("Ada", PersonRole::Member)];
    let gateway = setup.start().await;
    for who in ["grace", "ada", "bob"] {
        gateway.receives(says(&gateway, who, "hello")).await;
    }
    gateway.platform.choose_faults(|delivery| (*delivery.conversation() == chat("bob")).then_some(Fault::Refuse));
    gateway
}

fn says(gateway: &TestGateway, who: &str, text: &str) -> InboundEvent {
    let (event, received_at) = (said(&chat(who), text), gateway.clock.now());
    InboundEvent { sender: Sender { id: who.to_owned(), ..event.sender.clone() }, received_at, ..event }
}

fn digest(to: &str) -> NewSchedule {
    NewSchedule {
        name: format!("digest for {to}"),
        when: When::Every(HOUR),
        time_zone: "UTC".into(),
        to: to.parse().expect("a target"),
        action: ScheduledAction::Digest,
        missed: Missed::Once,
    }
}

/// Has somebody told what is open.
async fn tells(gateway: &TestGateway, who: &str) {
    let by = operator("a test");
    let known = gateway.engine().add_schedule(digest(who), &by, |_| None).await;
    assert!(known.is_ok() || gateway.engine().schedule(&digest(who).name, &by).await.is_ok());
    let key = gateway.clock.now().to_string();
    gateway.engine().run_schedule(&digest(who).name, &key, &by, |_| None).await.expect("it is begun");
    // The next time is another one.
    gateway.advance(secs(1)).await;
}

/// The turns that asked somebody what is to become of something, oldest first.
async fn asked(gateway: &TestGateway) -> Vec<TurnId> {
    let turns = gateway.turns().await.into_iter().rev();
    turns.filter(|turn| turn.handler == Handler::Gateway("digest".into())).map(|turn| turn.turn_id).collect()
}

/// Presses a button below the last question of a digest.
async fn presses(gateway: &TestGateway, who: &str, choice: &str) -> Accepted {
    let question = asked(gateway).await.pop().expect("there is one");
    let event = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(gateway, who, choice) };
    let accepted = gateway.intake().accept(event).await.expect("it is accepted");
    gateway.settle().await;
    accepted
}

fn last(gateway: &TestGateway, who: &str) -> String {
    gateway.visible(&chat(who)).pop().unwrap_or_default()
}

#[tokio::test]
async fn an_owner_is_told_of_everything_and_does_one_thing_after_the_other() {
    let gateway = known().await;
    let failed = gateway.receives(says(&gateway, "bob", "this fails")).await;
    gateway.advance(secs(600)).await;
    let later = gateway.receives(says(&gateway, "ada", "later")).await;
    gateway.receives(says(&gateway, "grace", "ask")).await;

    tells(&gateway, "Grace").await;
    let told = last(&gateway, "grace");
    let expected = "Open: 3\n\n* **1** failed, 10 min: this fails (bob, test.main)\n* **2** promised, 0 s: later (Ada, test.main)\n\
                    * **3** asked, 0 s: Tea or coffee? (Grace, test.main)\n\nWhat about 1, “this fails”?";
    assert!(told.starts_with(expected), "{told}");
    let question = asked(&gateway).await.pop().expect("there is one");
    let question = gateway.store.questions(QuestionFilter::Of(question), 1).await.expect("readable").remove(0);
    assert_eq!(question.question.choices, ["Answer 1", "Snooze 1", "Drop 1"]);

    gateway.platform.choose_faults(|_| None);
    presses(&gateway, "grace", "Answer 1").await;
    assert!(last(&gateway, "grace").starts_with("1 is being answered now.\n\nWhat about 2, “later”?"));
    assert_eq!((last(&gateway, "bob"), gateway.status(failed).await), ("this fails".to_owned(), TurnStatus::Answered));

    presses(&gateway, "grace", "Answer 2").await;
    assert_eq!((last(&gateway, "ada"), gateway.status(later).await), ("Here it is.".to_owned(), TurnStatus::Answered));

    // The question is shown again, and what is picked from it is the answer to it.
    presses(&gateway, "grace", "Answer 3").await;
    assert!(last(&gateway, "grace").starts_with("Tea or coffee?"), "{}", last(&gateway, "grace"));
    presses(&gateway, "grace", "coffee").await;
    assert_eq!(last(&gateway, "grace"), "coffee");

    tells(&gateway, "Grace").await;
    assert_eq!(last(&gateway, "grace"), "Nothing is open.");
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let audit: Vec<_> = audit.into_iter().map(|it| (it.entry.by, it.entry.action)).collect();
    let by_grace = |action: &str| ("Grace (test.main/grace)".to_owned(), action.to_owned());
    assert!(audit.contains(&by_grace("retry")) && audit.contains(&by_grace("hurry")), "{audit:?}");
    let pressed = gateway.log().await.into_iter().filter(|entry| entry.topic == "digest.pressed");
    assert_eq!(pressed.map(|entry| entry.data["button"].clone()).collect::<Vec<_>>(), ["answer", "answer", "answer"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_is_snoozed_comes_again_after_a_day_and_what_is_dropped_does_not() {
    let gateway = known().await;
    let failed = gateway.receives(says(&gateway, "bob", "this fails")).await;
    gateway.advance(secs(60)).await;
    let later = gateway.receives(says(&gateway, "ada", "later")).await;
    gateway.advance(secs(60)).await;
    gateway.receives(says(&gateway, "grace", "ask")).await;

    tells(&gateway, "Grace").await;
    presses(&gateway, "grace", "Snooze 1").await;
    presses(&gateway, "grace", "Drop 2").await;
    presses(&gateway, "grace", "Drop 3").await;
    assert_eq!(last(&gateway, "grace"), "3 is dropped.");
    assert_eq!(gateway.status(later).await, TurnStatus::Cancelled);
    let late_pick = says(&gateway, "grace", "coffee");
    gateway.receives(late_pick).await;
    assert_eq!(last(&gateway, "grace"), "coffee", "the question is closed: these are words");

    gateway.advance(secs(60)).await;
    tells(&gateway, "Grace").await;
    assert_eq!(last(&gateway, "grace"), "Nothing is open.");
    gateway.advance(HOUR * 24).await;
    gateway.engine().remove_schedule(&digest("Grace").name, &operator("enough")).await.expect("it is removed");
    tells(&gateway, "Grace").await;
    assert!(last(&gateway, "grace").contains("**1** failed, 1 d: this fails"), "{}", last(&gateway, "grace"));
    presses(&gateway, "grace", "Drop 1").await;
    assert_eq!(gateway.status(failed).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_member_is_told_of_what_is_theirs_and_nobody_else_presses() {
    let gateway = known().await;
    gateway.receives(says(&gateway, "bob", "this fails")).await;
    let later = gateway.receives(says(&gateway, "ada", "later")).await;

    tells(&gateway, "Ada").await;
    let told = last(&gateway, "ada");
    assert!(told.starts_with("Open: 1\n\n* **1** promised, 0 s: later (Ada, test.main)\n\nWhat about 1"), "{told}");
    gateway.platform.choose_faults(|_| None);
    presses(&gateway, "bob", "Drop 1").await;
    assert_eq!((last(&gateway, "bob"), gateway.status(later).await), ("Not yours.".to_owned(), TurnStatus::Deferred));

    // A number in words is no press.
    gateway.receives(says(&gateway, "ada", "2")).await;
    assert_eq!(gateway.status(later).await, TurnStatus::Deferred);
    tells(&gateway, "Ada").await;
    gateway.receives(says(&gateway, "ada", "drop 1")).await;
    assert_eq!(gateway.status(later).await, TurnStatus::Cancelled);
    let again = presses(&gateway, "ada", "Drop 1").await;
    assert!(matches!(again, Accepted::Turn(_) | Accepted::Picked { .. }), "{again:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_is_done_meanwhile_is_passed_over() {
    let gateway = known().await;
    let first = gateway.receives(says(&gateway, "bob", "this fails")).await;
    gateway.advance(secs(60)).await;
    let second = gateway.receives(says(&gateway, "bob", "this fails too")).await;
    gateway.advance(secs(60)).await;
    gateway.receives(says(&gateway, "ada", "later")).await;
    tells(&gateway, "Grace").await;

    for turn in [first, second] {
        gateway.engine().cancel(turn, operator("done by hand")).await.expect("it is given up");
    }
    presses(&gateway, "grace", "Answer 1").await;

    assert!(
        last(&gateway, "grace").starts_with("1 is done already.\n\nWhat about 3, “later”?"),
        "{}",
        last(&gateway, "grace")
    );
    presses(&gateway, "grace", "Drop 3").await;
    gateway.at_rest().await;
}

/// What was pressed is done once, and what it does is stored with the answer.
#[tokio::test]
async fn a_press_survives_a_crash_at_every_write() {
    at_every_write(2, async |crash, write| {
        let mut gateway = known().await;
        gateway.receives(says(&gateway, "bob", "this fails")).await;
        tells(&gateway, "Grace").await;
        gateway.platform.choose_faults(|_| None);
        let question = asked(&gateway).await.pop().expect("there is one");
        let event = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(&gateway, "grace", "Answer 1") };
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        let (intake, again) = (gateway.intake(), event.clone());
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        gateway.intake().accept(again).await.expect("it is accepted");
        gateway.advance(secs(600)).await;

        assert_eq!(gateway.visible(&chat("bob")), ["hello", "this fails"], "{crash:?} write {write}");
        assert_eq!(last(&gateway, "grace"), "1 is being answered now.", "{crash:?} write {write}");
        let pressed = gateway.log().await.into_iter().filter(|entry| entry.topic == "digest.pressed").count();
        assert_eq!(pressed, 1, "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// A digest is begun once at its time.
#[tokio::test]
async fn a_digest_survives_a_crash_at_every_write() {
    at_every_write(3, async |crash, write| {
        let mut gateway = known().await;
        gateway.receives(says(&gateway, "bob", "this fails")).await;
        gateway.engine().add_schedule(digest("Grace"), &operator("a test"), |_| None).await.expect("it is made");
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        gateway.advance(HOUR).await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        gateway.advance(secs(300)).await;

        let told = gateway.visible(&chat("grace")).iter().filter(|text| text.starts_with("Open: 1")).count();
        assert_eq!(told, 1, "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

#[tokio::test]
async fn a_digest_is_for_people() {
    let gateway = known().await;
    let wrong = gateway.engine().add_schedule(digest("test.main/grace"), &operator("a test"), |_| None).await;
    let wrong = wrong.expect_err("it is for a conversation").to_string();
    assert!(wrong.starts_with("a digest is for a person or a role"), "{wrong}");
    gateway.at_rest().await;
}
