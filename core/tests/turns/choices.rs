//! Questions with buttons: the first pick answers and closes a question.

use futures_util::future::join_all;
use rejoinder_core::{
    Accepted, Action, Cause, EventKind, InboundEvent, Ladder, Policy, Rung, Sender, SenderKind, TurnId,
    conformance::scripted::Script, store::TurnStatus,
};

use crate::gateway::{GatewaySetup, TestGateway, chat, mention, policy, said};

/// A gateway whose agent answers picks only; for other turns the ladder asks `question`.
async fn asking(question: &str) -> TestGateway {
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::Clarify(question.to_owned())]);
    GatewaySetup::new()
        .policy(Policy { ladder, ..policy() })
        .agent("main", |turn| match turn.message.text.as_str() {
            "more" | "again" => Script::replies(&format!("{} it is.", turn.message.text)),
            _ => Script::replies(""),
        })
        .start()
        .await
}

fn by(sender: &str, event: InboundEvent) -> InboundEvent {
    let kind = SenderKind::Person;
    InboundEvent { sender: Sender { id: sender.to_owned(), name: None, username: None, kind }, ..event }
}

/// A press of a button by `sender`.
fn pressed(question: TurnId, sender: &str, choice: &str) -> InboundEvent {
    let event = mention(&chat("team"), choice);
    by(sender, InboundEvent { kind: EventKind::Choice { turn: question }, ..event })
}

async fn press(gateway: &TestGateway, event: InboundEvent) -> Accepted {
    let accepted = gateway.intake().accept(event).await.expect("it is accepted");
    gateway.settle().await;
    accepted
}

fn more() -> Accepted {
    Accepted::Picked { choice: "more".to_owned() }
}

/// B14. The first pick of the chooser counts: a double tap and other people's presses change nothing.
#[tokio::test]
async fn a_question_is_answered_by_the_first_pick_of_who_was_asked() {
    let gateway = asking("what_next").await;
    let question = gateway.receives(by("ada", mention(&chat("team"), "hm"))).await;
    let Action::Send { content, .. } = &gateway.platform.seen()[0].action else { panic!("it is sent") };
    assert_eq!((content.choices.len(), content.chooser.as_deref()), (2, Some("ada")));

    assert_eq!(press(&gateway, pressed(question, "bob", "again")).await, Accepted::Kept);
    assert!(matches!(press(&gateway, pressed(question, "ada", "more")).await, Accepted::Turn(_)));
    assert_eq!(press(&gateway, pressed(question, "ada", "more")).await, more());
    assert_eq!(press(&gateway, pressed(question, "bob", "again")).await, more());

    assert_eq!(gateway.visible(&chat("team")), ["Which of these?", "more it is."]);
    assert_eq!(gateway.agent("main").runs().len(), 2);
    let view = gateway.intake().view(question).await.expect("readable").expect("it is there");
    assert_eq!((view.status, view.picked.as_deref()), (TurnStatus::Answered, Some("more")));
    gateway.at_rest().await;
}

#[tokio::test]
async fn anyone_may_answer_a_question_that_says_so() {
    let gateway = asking("for_all").await;
    let question = gateway.receives(by("ada", mention(&chat("team"), "hm"))).await;

    assert!(matches!(press(&gateway, pressed(question, "bob", "more")).await, Accepted::Turn(_)));
    assert_eq!(press(&gateway, pressed(question, "ada", "again")).await, more());

    assert_eq!(gateway.visible(&chat("team")), ["Which of these, all?", "more it is."]);
    gateway.at_rest().await;
}

/// In a direct chat a question names no chooser.
#[tokio::test]
async fn a_question_in_a_direct_chat_asks_whoever_is_there() {
    let gateway = asking("what_next").await;
    let question = gateway.receives(said(&chat("ada"), "hm")).await;
    let kind = EventKind::Choice { turn: question };

    let picked =
        press(&gateway, by("another account of hers", InboundEvent { kind, ..said(&chat("ada"), "more") })).await;

    assert!(matches!(picked, Accepted::Turn(_)));
    gateway.at_rest().await;
}

/// D1, E6.
#[tokio::test]
async fn a_question_stays_answered_over_a_restart() {
    let mut gateway = asking("what_next").await;
    let question = gateway.receives(by("ada", mention(&chat("team"), "hm"))).await;
    let first = pressed(question, "ada", "more");
    let Accepted::Turn(turn) = press(&gateway, first.clone()).await else { panic!("it is the first") };

    gateway.restart().await;

    assert_eq!(press(&gateway, pressed(question, "ada", "again")).await, more());
    let again = press(&gateway, first).await;
    assert!(matches!(again, Accepted::Duplicate { turn: Some(known), .. } if known == turn), "{again:?}");
    assert_eq!(gateway.visible(&chat("team")), ["Which of these?", "more it is."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn of_many_who_press_at_once_one_is_answered() {
    let gateway = asking("for_all").await;
    let question = gateway.receives(by("ada", mention(&chat("team"), "hm"))).await;
    let intake = gateway.intake();

    let pressing = (0..20).map(|number| intake.accept(pressed(question, &format!("person {number}"), "more")));
    let accepted = join_all(pressing).await;
    gateway.settle().await;

    let turns = accepted.iter().filter(|accepted| matches!(accepted, Ok(Accepted::Turn(_)))).count();
    assert_eq!((turns, accepted.iter().filter(|it| matches!(it, Ok(it) if *it == more())).count()), (1, 19));
    assert_eq!(gateway.visible(&chat("team")), ["Which of these, all?", "more it is."]);
    gateway.at_rest().await;
}
