//! Answers that cannot be delivered go to their people on another channel.

use rejoinder_core::{Access, ConversationRef, InboundEvent, TurnId, conformance::scripted::Fault, store::TurnStatus};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, secs},
    life::Crash,
    linking::{code_for, confirms, last, says, setup, there},
};

const ANSWER: &str = "From test.main: what is new?\n\nhello";

/// A gateway where Ada is known on both channels, and has written on both.
async fn linked(setup: GatewaySetup) -> TestGateway {
    let gateway = setup.start().await;
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {code}"))).await;
    confirms(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    gateway
}

/// The platform refuses everything in these conversations.
fn refuse(gateway: &TestGateway, is_refused: impl Fn(&ConversationRef) -> bool + Send + 'static) {
    gateway.platform.choose_faults(move |delivery| is_refused(delivery.conversation()).then_some(Fault::Refuse));
}

fn refuse_main(gateway: &TestGateway) {
    refuse(gateway, |address| address.channel == main_channel());
}

async fn asks(gateway: &TestGateway) -> TurnId {
    gateway.receives(says(&chat("ada"), "what is new?")).await
}

/// A18. The answer, and not the words of the ladder, with a line that says where it belongs. Nothing is left for the operator.
#[tokio::test]
async fn a_refused_answer_goes_to_the_other_channel() {
    let gateway = linked(setup(Access::default())).await;
    let before = gateway.visible(&chat("ada"));
    refuse_main(&gateway);

    let turn = asks(&gateway).await;

    assert_eq!(gateway.visible(&there("lovelace")), ["Asked.", "You are Ada.", "hello", ANSWER]);
    assert_eq!(gateway.visible(&chat("ada")), before);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    assert!(gateway.dead_letters().await.is_empty());
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("Sent to test.other/lovelace, where its person is known as well."), "{explained}");
    gateway.at_rest().await;
}

/// From a group it goes to the writer, and to nobody else.
#[tokio::test]
async fn an_answer_in_a_group_goes_to_whoever_asked() {
    let gateway = linked(setup(Access::default())).await;
    comes_in(&gateway, says(&chat("grace"), "hello")).await;
    refuse_main(&gateway);
    let asked_by =
        |who: &str| InboundEvent { sender: says(&chat(who), "").sender, ..mention(&chat("room"), "what is new?") };

    let of_ada = gateway.receives(asked_by("ada")).await;
    let of_grace = gateway.receives(asked_by("grace")).await;

    assert_eq!(last(&gateway, &there("lovelace")), ANSWER);
    assert_eq!(gateway.status(of_ada).await, TurnStatus::Answered);
    assert_eq!(gateway.status(of_grace).await, TurnStatus::Undeliverable);
    gateway.at_rest().await;
}

/// It is tried once, also over a restart. Then the operator decides.
#[tokio::test]
async fn what_is_refused_there_too_is_a_dead_letter() {
    let mut gateway = linked(setup(Access::default())).await;
    refuse(&gateway, |_| true);
    let turn = asks(&gateway).await;
    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    gateway.platform.clear_faults();
    gateway.restart().await;
    gateway.advance(secs(3600)).await;
    assert_eq!(gateway.visible(&there("lovelace")).len(), 3);

    let [letter] = &gateway.dead_letters().await[..] else { panic!("there is one") };
    gateway.retry(letter.id).await.expect("it is sent again");
    gateway.settle().await;

    assert_eq!(last(&gateway, &there("lovelace")), ANSWER);
    gateway.at_rest().await;
}

#[tokio::test]
async fn nothing_goes_elsewhere_if_the_operator_wants_so() {
    let mut setup = setup(Access::default());
    setup.elsewhere = false;
    let gateway = linked(setup).await;
    refuse_main(&gateway);

    let turn = asks(&gateway).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.visible(&there("lovelace")).len(), 3);
    gateway.at_rest().await;
}

/// What is only for Ada is not said where others read it now.
#[rstest::rstest]
#[case::they_wrote_there(true)]
#[case::they_only_read(false)]
#[tokio::test]
async fn nothing_goes_to_a_chat_that_others_have_joined(#[case] they_write: bool) {
    let gateway = linked(setup(Access::default())).await;
    refuse_main(&gateway);
    if they_write {
        comes_in(
            &gateway,
            InboundEvent { sender: says(&there("bob"), "").sender, ..mention(&there("lovelace"), "hi") },
        )
        .await;
    } else {
        gateway.platform.join(&there("lovelace"));
    }
    let before = gateway.visible(&there("lovelace"));

    let turn = asks(&gateway).await;

    assert_eq!(gateway.visible(&there("lovelace")), before);
    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    gateway.at_rest().await;
}

/// A row that cannot be read costs its own turn.
#[tokio::test]
async fn an_answer_that_cannot_be_read_holds_up_no_other() {
    let mut setup = setup(Access::default());
    setup.elsewhere = false;
    let mut gateway = linked(setup).await;
    refuse_main(&gateway);
    let damaged = asks(&gateway).await;
    gateway.damage_deliveries(damaged).await;
    gateway.allow_elsewhere().await;
    gateway.restart().await;

    let other = gateway.receives(says(&chat("ada"), "and else?")).await;

    assert_eq!(gateway.status(other).await, TurnStatus::Answered);
    assert!(last(&gateway, &there("lovelace")).contains("and else?"));
    gateway.end_damaged();
}

/// A18. `kill -9` at every write: the answer is shown once.
#[tokio::test]
async fn a_crash_sends_it_elsewhere_once() {
    for write in 1..=14 {
        let mut gateway = linked(setup(Access::default())).await;
        refuse_main(&gateway);
        gateway.life.crash_at(write, Crash::After);
        let (intake, event) = (gateway.intake(), says(&chat("ada"), "what is new?"));
        let again = event.clone();
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(3600)).await;

        let shown = gateway.visible(&there("lovelace"));
        assert_eq!(shown.get(3..).unwrap_or_default(), [ANSWER], "after write {write}: {shown:?}");
        gateway.at_rest().await;
    }
}
