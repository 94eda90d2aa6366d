//! First attempts: one that begins with the claim of its delivery costs no commit, and what has to wait does not begin.

use rejoinder_core::{
    AgentTurn, Rate, Resend, TurnId,
    conformance::scripted::{Script, ScriptedChannel},
    store::DeliveryState,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, operator, said, secs},
    life::{Crash, comes_in_dying},
};

/// An agent that says what it hears.
fn echo() -> GatewaySetup {
    GatewaySetup::new().agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text))
}

/// Checks that the answer of a turn waits, and that no attempt of it has begun.
async fn has_not_begun(gateway: &TestGateway, turn: TurnId) {
    let dossier = gateway.dossier(turn).await;
    let [delivery] = &dossier.deliveries[..] else { panic!("one delivery: {dossier:#?}") };
    assert_eq!((delivery.state, delivery.attempts), (DeliveryState::Pending, 0));
    assert!(dossier.attempts.is_empty());
}

/// The event with its run, the claim with the attempt, and the receipt.
#[tokio::test]
async fn an_answer_takes_three_commits() {
    let gateway = echo().start().await;
    let mut least = u64::MAX;

    for text in ["one", "two", "three", "four", "five"] {
        let before = gateway.life.writes();
        gateway.receives(said(&chat("ada"), text)).await;
        least = least.min(gateway.life.writes() - before);
    }

    assert_eq!(least, 3);
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three", "four", "five"]);
    gateway.at_rest().await;
}

/// D1, D7. The process ends when the claim is stored: that the platform was not called yet is not known.
#[tokio::test]
async fn a_crash_before_the_call_leaves_an_attempt_of_unknown_fate() {
    for (resend, shown) in [(Resend::Ambiguous, "(again) done"), (Resend::Idempotent, "done")] {
        let setup = GatewaySetup::new().capable(|it| it.resend = resend);
        let mut gateway = setup.always(Script::replies("done")).start().await;

        // The first write accepts the event.
        let has_died = comes_in_dying(&mut gateway, (Crash::After, 2), said(&chat("ada"), "hello")).await;
        gateway.advance(secs(10)).await;

        assert!(has_died);
        assert_eq!(gateway.visible(&chat("ada")), [shown]);
        let turn = gateway.turns().await[0].turn_id;
        let attempts = gateway.dossier(turn).await.attempts;
        let results: Vec<_> = attempts.iter().map(|it| (it.number, it.result.as_deref())).collect();
        assert_eq!(results, [(1, Some("unknown")), (2, Some("delivered"))]);
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn on_a_paused_channel_none_begins() {
    let gateway = echo().start().await;
    let pause = async |pauses: bool| {
        let paused = gateway.engine().operations().pause_channel(main_channel(), pauses, operator("a test")).await;
        paused.expect("it is done");
    };
    pause(true).await;

    let turn = gateway.receives(said(&chat("ada"), "one")).await;
    has_not_begun(&gateway, turn).await;
    pause(false).await;
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.at_rest().await;
}

/// B11. Also if the lane has ended, because nothing of it is due.
#[tokio::test]
async fn behind_an_earlier_delivery_none_begins() {
    let gateway = echo().start().await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "one")).await;

    let second = gateway.receives(said(&chat("ada"), "two")).await;
    has_not_begun(&gateway, second).await;
    gateway.platform.set_down(false);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_waits_for_its_rate_begins_when_it_goes() {
    let rate = Rate { per: secs(60), burst: 1 };
    let gateway = echo().capable(|it| it.conversation_rate = Some(rate)).start().await;
    gateway.receives(said(&chat("ada"), "one")).await;

    let second = gateway.receives(said(&chat("ada"), "two")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    has_not_begun(&gateway, second).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// B10. The other parts follow in their order.
#[tokio::test]
async fn of_an_answer_in_parts_the_first_begins() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;
    gateway.platform.hold(true);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let dossier = gateway.dossier(turn).await;
    let states: Vec<_> = dossier.deliveries.iter().map(|it| (it.state, it.attempts)).collect();
    let waits = (DeliveryState::Pending, 0);
    assert_eq!(states, [(DeliveryState::Sending, 1), waits, waits]);
    assert_eq!(dossier.attempts.len(), 1);
    gateway.platform.hold(false);
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}
