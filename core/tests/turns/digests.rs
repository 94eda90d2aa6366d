//! Digests: what is open is listed, and what is pressed below it is done.

use std::time::Duration;

use rejoinder_core::{
    Accepted, AgentTurn, ApprovalState, ChatKind, Clock as _, Directed, EventKind, Farewell, InboundEvent, Missed,
    NewSchedule, PersonRole, Resend, ScheduledAction, Sender, TurnId, TurnStatus, When, Words,
    conformance::scripted::{Fault, Script},
    open_loops,
    store::{Approval, ApprovalFilter, AuditFilter, Handler, QuestionFilter, TurnFilter},
};

use crate::{
    approvals::person,
    gateway::{GatewaySetup, TestGateway, chat, operator, said, secs},
    life::{at_every_write, comes_in_dying, passes_dying},
    texts::GIVEN_UP,
};

const HOUR: Duration = Duration::from_hours(1);

/// An agent that puts off what it is asked to do later, and asks what is to be asked.
fn puts_off(turn: &AgentTurn) -> Script {
    match (&*turn.message.text, &turn.past.deferred) {
        ("later", None) => Script::defers(Some("Soon."), HOUR * 40),
        ("later", Some(_)) => Script::replies("Here it is."),
        ("pay", _) if turn.past.approvals.is_empty() => Script::asks_approval("pay the rent", None),
        ("pay twice", _) if turn.past.approvals.is_empty() => Script::asks_approval("pay 50 to Ada", None),
        ("pay twice", _) if turn.past.approvals.len() == 1 => Script::asks_approval("pay 5000 to Eve", None),
        ("pay much", _) if turn.past.approvals.is_empty() => Script::asks_approval(&much(), None),
        ("ask", _) => Script::asks("Tea or coffee?", &["tea", "coffee"]),
        (text, _) => Script::replies(text),
    }
}

/// An action that ends with what matters.
fn much() -> String {
    format!("pay {}50 to Ada, and 5000 to Eve", "as always, ".repeat(20))
}

fn setup() -> GatewaySetup {
    let mut setup = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", puts_off);
    setup.people = vec![person("Grace", PersonRole::Owner), person("Ada", PersonRole::Member)];
    setup
}

async fn known() -> TestGateway {
    knows(setup()).await
}

/// The owner Grace and the member Ada have written, and so has Bob, who is not known. Now the platform refuses what is for Bob.
async fn knows(setup: GatewaySetup) -> TestGateway {
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
    let known = gateway.engine().schedules().add(digest(who), &by).await;
    assert!(known.is_ok() || gateway.engine().calendar().with_runs(&digest(who).name, &by).await.is_ok());
    let key = gateway.clock.now().to_string();
    gateway.engine().schedules().run_now(&digest(who).name, &key, &by).await.expect("it is begun");
    // The next time is another one.
    gateway.advance(secs(1)).await;
}

/// The turns that asked somebody what is to become of something, oldest first.
async fn asked(gateway: &TestGateway) -> Vec<TurnId> {
    let turns = gateway.turns().await.into_iter().rev();
    let is_digest =
        |handler: &Handler| ["digest", "asks_again"].into_iter().any(|name| *handler == Handler::Gateway(name.into()));
    turns.filter(|turn| is_digest(&turn.handler)).map(|turn| turn.turn_id).collect()
}

/// Presses a button below the last question of a digest.
async fn presses(gateway: &TestGateway, who: &str, choice: &str) -> Accepted {
    let question = asked(gateway).await.pop().expect("there is one");
    let event = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(gateway, who, choice) };
    let accepted = gateway.intake().accept(event).await.expect("it is accepted");
    gateway.settle().await;
    accepted
}

/// The choices below the last question of a digest.
async fn choices(gateway: &TestGateway) -> Vec<String> {
    let question = asked(gateway).await.pop().expect("there is one");
    gateway.store.questions(QuestionFilter::Of(question), 1).await.expect("readable").remove(0).question.choices
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
    let expected = "Open: 3\n\n* **A** failed, 10 min: this fails (bob, test.main)\n* **B** promised, 0 s: later (Ada, test.main)\n\
                    * **C** asked, 0 s: Tea or coffee? (Grace, test.main)\n\nWhat about A, “this fails”?";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(choices(&gateway).await, ["Answer A", "Snooze A", "Drop A"]);

    gateway.platform.choose_faults(|_| None);
    presses(&gateway, "grace", "Answer A").await;
    assert!(last(&gateway, "grace").starts_with("A is being answered now.\n\nWhat about B, “later”?"));
    assert_eq!((last(&gateway, "bob"), gateway.status(failed).await), ("this fails".to_owned(), TurnStatus::Answered));

    presses(&gateway, "grace", "Answer B").await;
    assert_eq!((last(&gateway, "ada"), gateway.status(later).await), ("Here it is.".to_owned(), TurnStatus::Answered));

    // The question is shown again, and what is picked from it is the answer to it.
    presses(&gateway, "grace", "Answer C").await;
    assert!(last(&gateway, "grace").starts_with("Tea or coffee?"), "{}", last(&gateway, "grace"));
    presses(&gateway, "grace", "coffee").await;
    assert_eq!(last(&gateway, "grace"), "coffee");
    gateway.receives(says(&gateway, "grace", "2")).await;
    assert_eq!(last(&gateway, "grace"), "2", "it picks from neither of the two messages that asked");

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
    presses(&gateway, "grace", "Snooze A").await;
    presses(&gateway, "grace", "Drop B").await;
    presses(&gateway, "grace", "Drop C").await;
    assert_eq!(last(&gateway, "grace"), "C is dropped.");
    assert_eq!(gateway.status(later).await, TurnStatus::Cancelled);
    let explained = gateway.explained(later).await;
    assert!(explained.starts_with("Given up by Grace (test.main/grace), "), "{explained}");
    let late_pick = says(&gateway, "grace", "coffee");
    gateway.receives(late_pick).await;
    assert_eq!(last(&gateway, "grace"), "coffee", "the question is closed: these are words");

    gateway.advance(secs(60)).await;
    tells(&gateway, "Grace").await;
    assert_eq!(last(&gateway, "grace"), "Nothing is open.");
    gateway.advance(HOUR * 24).await;
    gateway.engine().calendar().remove(&digest("Grace").name, &operator("enough")).await.expect("it is removed");
    tells(&gateway, "Grace").await;
    assert!(last(&gateway, "grace").contains("**A** failed, 1 d: this fails"), "{}", last(&gateway, "grace"));
    presses(&gateway, "grace", "Drop A").await;
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
    assert!(told.starts_with("Open: 1\n\n* **A** promised, 0 s: later (Ada, test.main)\n\nWhat about A"), "{told}");
    gateway.platform.choose_faults(|_| None);
    presses(&gateway, "bob", "Drop A").await;
    assert_eq!((last(&gateway, "bob"), gateway.status(later).await), ("Not yours.".to_owned(), TurnStatus::Deferred));

    // A number in words is no press.
    gateway.receives(says(&gateway, "ada", "2")).await;
    assert_eq!(gateway.status(later).await, TurnStatus::Deferred);
    tells(&gateway, "Ada").await;
    let question = asked(&gateway).await.pop().expect("there is one");
    gateway.receives(says(&gateway, "ada", "drop A")).await;
    assert_eq!(last(&gateway, "ada"), "A is dropped.");
    assert_eq!(gateway.status(later).await, TurnStatus::Cancelled);
    let again = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(&gateway, "ada", "Drop A") };
    let again = gateway.intake().accept(again).await.expect("it is accepted");
    assert!(matches!(again, Accepted::Picked { .. }), "{again:?}");
    gateway.at_rest().await;
}

/// N3. In a group, others would read the words of what comes next.
#[tokio::test]
async fn nobody_presses_in_a_group() {
    let gateway = known().await;
    let later = gateway.receives(says(&gateway, "ada", "later")).await;
    tells(&gateway, "Ada").await;
    let question = asked(&gateway).await.pop().expect("there is one");
    let press = says(&gateway, "ada", "Drop A");
    let (kind, directed) = (EventKind::Choice { turn: question }, Directed::Mention);
    let press = InboundEvent { kind, directed, chat: ChatKind::Group, ..press };

    gateway.intake().accept(press).await.expect("it is accepted");
    gateway.settle().await;

    assert_eq!((last(&gateway, "ada"), gateway.status(later).await), ("Not yours.".to_owned(), TurnStatus::Deferred));
    gateway.engine().operations().cancel(later, Farewell::Template, operator("enough")).await.expect("it is given up");
    gateway.at_rest().await;
}

/// What is asked of Grace, and what she is told of it.
async fn pays() -> (TestGateway, TurnId) {
    let gateway = known().await;
    let pay = gateway.receives(says(&gateway, "ada", "pay")).await;
    assert_eq!(last(&gateway, "grace"), "main wants pay the rent for Ada (test.main): pay");
    tells(&gateway, "Grace").await;
    let told = last(&gateway, "grace");
    let expected =
        "Open: 1\n\n* **A** waits for you, 0 s: pay the rent (Ada, test.main)\n\nWhat about A, “pay the rent”?";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(choices(&gateway).await, ["Do it A", "Do not A", "Snooze A", "Drop A"]);
    (gateway, pay)
}

/// G3.
#[tokio::test]
async fn what_waits_for_an_approval_is_approved_from_a_digest() {
    let (gateway, pay) = pays().await;

    presses(&gateway, "grace", "Do it A").await;

    assert_eq!((last(&gateway, "grace"), last(&gateway, "ada")), ("Yes to pay the rent.".to_owned(), "pay".to_owned()));
    assert_eq!(gateway.status(pay).await, TurnStatus::Answered);
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 1 }).await.expect("readable").remove(0);
    assert_eq!((&*audit.entry.by, &*audit.entry.action), ("Grace (test.main/grace)", "approve_action"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_waits_for_an_approval_is_declined_from_a_digest_in_words() {
    let (gateway, pay) = pays().await;

    gateway.receives(says(&gateway, "grace", "do not A")).await;

    assert_eq!(
        (last(&gateway, "grace"), gateway.status(pay).await),
        ("No to pay the rent.".to_owned(), TurnStatus::Answered)
    );
    gateway.at_rest().await;
}

async fn approvals(gateway: &TestGateway) -> Vec<Approval> {
    gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable")
}

/// The agent may ask for something else while the question of a digest is open.
#[tokio::test]
async fn a_digest_decides_only_on_the_action_that_it_showed() {
    for choice in ["Do it A", "Do not A"] {
        let gateway = known().await;
        gateway.receives(says(&gateway, "ada", "pay twice")).await;
        tells(&gateway, "Grace").await;
        let [first] = &approvals(&gateway).await[..] else { panic!("one waits") };
        gateway.engine().operations().decide(first.id, true, operator("it is right")).await.expect("it is decided");
        gateway.settle().await;

        presses(&gateway, "grace", choice).await;

        let [second, _] = &approvals(&gateway).await[..] else { panic!("it asked twice") };
        let second_is = (&*second.request.action, second.state);
        assert_eq!(second_is, ("pay 5000 to Eve", ApprovalState::Waiting), "{choice}");
        assert_eq!(last(&gateway, "grace"), "That is over.", "{choice}");
        gateway.engine().operations().decide(second.id, false, operator("it is wrong")).await.expect("it is decided");
        gateway.settle().await;
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn a_digest_shows_all_of_an_action_and_who_asked_for_it() {
    let gateway = known().await;
    let pay = gateway.receives(says(&gateway, "ada", "pay much")).await;

    tells(&gateway, "Grace").await;

    let (told, wish) = (last(&gateway, "grace"), format!("main wants {} for Ada (test.main): pay much", much()));
    assert!(told.contains("What about A") && told.contains(&wish), "{told}");
    gateway.engine().operations().cancel(pay, Farewell::Template, operator("enough")).await.expect("it is given up");
    gateway.advance(secs(5)).await;
    gateway.at_rest().await;
}

/// They may drop what is their own.
#[tokio::test]
async fn an_approver_who_is_no_owner_decides_and_does_not_drop() {
    let mut setup = setup();
    setup.approvals.people = person("Ada", PersonRole::Member).identities;
    let gateway = knows(setup).await;
    let pay = gateway.receives(says(&gateway, "grace", "pay")).await;

    tells(&gateway, "Ada").await;
    assert_eq!(choices(&gateway).await, ["Do it A", "Snooze A", "Do not A"]);
    presses(&gateway, "ada", "Do not A").await;

    assert_eq!(
        (last(&gateway, "ada"), gateway.status(pay).await),
        ("No to pay the rent.".to_owned(), TurnStatus::Answered)
    );
    gateway.receives(says(&gateway, "grace", "pay")).await;
    tells(&gateway, "Ada").await;
    presses(&gateway, "ada", "Do it A").await;
    assert_eq!(last(&gateway, "ada"), "Yes to pay the rent.");
    gateway.receives(says(&gateway, "ada", "pay")).await;
    tells(&gateway, "Ada").await;
    assert_eq!(choices(&gateway).await, ["Do it A", "Do not A", "Snooze A", "Drop A"]);
    presses(&gateway, "ada", "Drop A").await;
    gateway.advance(secs(5)).await;
    gateway.at_rest().await;
}

/// The person is told, and so is the approver, whose question is closed.
#[tokio::test]
async fn an_approval_that_is_dropped_is_told_to_the_person_and_to_the_approver() {
    let (gateway, pay) = pays().await;
    let asks = Handler::Gateway("asks".into());
    let question = gateway.turns().await.into_iter().find(|turn| turn.handler == asks).expect("she was asked").turn_id;

    presses(&gateway, "grace", "Drop A").await;
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.status(pay).await, TurnStatus::Cancelled);
    assert!(gateway.visible(&chat("ada")).contains(&GIVEN_UP.to_owned()), "{:?}", gateway.visible(&chat("ada")));
    assert_eq!(last(&gateway, "grace"), "No need: pay the rent.");
    let press = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(&gateway, "grace", "Do it") };
    let late = gateway.intake().accept(press).await.expect("it is accepted");
    assert!(matches!(late, Accepted::Expired { .. }), "{late:?}");
    gateway.at_rest().await;
}

/// The turn, and not the question about it as well.
#[tokio::test]
async fn an_approval_is_one_open_loop() {
    let (gateway, pay) = pays().await;

    let open = open_loops(&*gateway.store, &TurnFilter::default(), gateway.clock.now()).await.expect("readable");

    let open: Vec<_> = open.into_iter().map(|open| open.turn.turn_id).collect();
    assert_eq!(open, [pay]);
    presses(&gateway, "grace", "Drop A").await;
    gateway.advance(secs(5)).await;
    gateway.at_rest().await;
}

/// Who may not decide sees that it waits, and no more.
#[tokio::test]
async fn only_who_may_approve_is_shown_the_buttons() {
    let gateway = known().await;
    gateway.receives(says(&gateway, "ada", "pay")).await;

    tells(&gateway, "Ada").await;

    assert_eq!(choices(&gateway).await, ["Snooze A", "Drop A"]);
    presses(&gateway, "ada", "Drop A").await;
    gateway.advance(secs(5)).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_an_operator_holds_goes_on_when_an_owner_says_so() {
    let gateway = known().await;
    let later = gateway.receives(says(&gateway, "ada", "later")).await;
    gateway.engine().operations().hold(later, operator("a look at it")).await.expect("it is held");

    tells(&gateway, "Ada").await;
    assert_eq!(choices(&gateway).await, ["Snooze A", "Drop A"]);
    tells(&gateway, "Grace").await;
    assert_eq!(choices(&gateway).await, ["Answer A", "Snooze A", "Drop A"]);
    presses(&gateway, "grace", "Answer A").await;

    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 1 }).await.expect("readable").remove(0);
    assert_eq!((&*audit.entry.by, &*audit.entry.action), ("Grace (test.main/grace)", "resume"));
    gateway.advance(HOUR * 40).await;
    assert!(gateway.visible(&chat("ada")).contains(&"Here it is.".to_owned()));
    gateway.at_rest().await;
}

/// What an agent was told to do by a schedule is not quoted.
#[tokio::test]
async fn a_prompt_is_told_by_its_name() {
    let gateway = known().await;
    gateway.platform.choose_faults(|delivery| (*delivery.conversation() == chat("ada")).then_some(Fault::Refuse));
    let action = ScheduledAction::Prompt {
        text: "Be secretive.".to_owned(),
        agent: None,
        quiet: false,
        words: Words::default(),
    };
    let prompts = NewSchedule { name: "morning".to_owned(), action, ..digest("test.main/ada") };
    let by = operator("a test");
    gateway.engine().schedules().add(prompts, &by).await.expect("it is made");
    gateway.engine().schedules().run_now("morning", "1", &by).await.expect("it is begun");
    gateway.settle().await;
    gateway.platform.choose_faults(|_| None);

    for (who, chat) in [("Ada", "ada"), ("Grace", "grace")] {
        tells(&gateway, who).await;
        let told = last(&gateway, chat);
        assert!(told.starts_with("Open: 1\n\n* **A** failed, ") && told.contains("s: morning (test.main)"), "{told}");
    }
    presses(&gateway, "grace", "Drop A").await;
    gateway.engine().calendar().remove("morning", &by).await.expect("it is removed");
    gateway.at_rest().await;
}

#[tokio::test]
async fn ten_things_are_listed_and_the_others_counted() {
    let gateway = known().await;
    for number in 0..12 {
        gateway.receives(says(&gateway, "bob", &format!("number {number}"))).await;
        gateway.advance(secs(60)).await;
    }

    tells(&gateway, "Grace").await;

    let told = last(&gateway, "grace");
    assert!(told.starts_with("Open: 12\n\n* **A** failed, 12 min: number 0 (bob, test.main)\n* **B**"), "{told}");
    assert!(told.contains("**J** failed, 3 min: number 9") && told.contains("\n\n2 more.\n\nWhat about A"), "{told}");
    gateway.at_rest().await;
}

/// What was told to somebody of their own words goes with them.
#[tokio::test]
async fn the_digests_of_a_forgotten_person_are_gone() {
    let gateway = known().await;
    gateway.receives(says(&gateway, "ada", "later")).await;
    tells(&gateway, "Ada").await;
    assert_eq!(asked(&gateway).await.len(), 1);

    let ada = says(&gateway, "ada", "").identity();
    let engine = gateway.engine().clone();
    let forgetting = tokio::spawn(async move { engine.erasure().forget(&ada, secs(60), operator("her wish")).await });
    gateway.advance(secs(1)).await;

    assert!(forgetting.await.expect("it ends").expect("it is done").is_done);
    assert!(asked(&gateway).await.is_empty());
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
        gateway.engine().operations().discard(turn.as_uuid(), operator("done by hand")).await.expect("it is given up");
    }
    presses(&gateway, "grace", "Answer A").await;

    assert!(
        last(&gateway, "grace").starts_with("A is done already.\n\nWhat about C, “later”?"),
        "{}",
        last(&gateway, "grace")
    );
    presses(&gateway, "grace", "Drop C").await;
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
        let event = InboundEvent { kind: EventKind::Choice { turn: question }, ..says(&gateway, "grace", "Answer A") };
        let has_crashed = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(secs(600)).await;

        assert_eq!(gateway.visible(&chat("bob")), ["hello", "this fails"], "{crash:?} write {write}");
        assert_eq!(last(&gateway, "grace"), "A is being answered now.", "{crash:?} write {write}");
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
        gateway.engine().schedules().add(digest("Grace"), &operator("a test")).await.expect("it is made");
        let has_crashed = passes_dying(&mut gateway, (crash, write), HOUR).await;
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
    let wrong = gateway.engine().schedules().add(digest("test.main/grace"), &operator("a test")).await;
    let wrong = wrong.expect_err("it is for a conversation").to_string();
    assert!(wrong.starts_with("a digest is for a person or a role"), "{wrong}");
    gateway.at_rest().await;
}
