//! Deliveries that get nowhere: they are parked, and their conversation goes on.

use rejoinder_core::{
    Action, AgentTurn, Delivery, OnUnknown, Policies, Policy, Resend,
    conformance::scripted::{Fault, Script, ScriptedChannel},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, policy, said, secs},
    texts::DEFERRAL,
};

/// An agent that takes 30 s for "one", longer than the soft deadline, and answers everything else at once.
fn slow_on_one() -> GatewaySetup {
    GatewaySetup::new().agent("main", |turn: &AgentTurn| {
        let script = Script::replies(&turn.message.text);
        if turn.message.text == "one" { script.taking(secs(30)) } else { script }
    })
}

const fn is_edit(delivery: &Delivery) -> bool {
    matches!(delivery.action(), Action::Edit { .. })
}

/// A delivery that gets nowhere is parked: its conversation goes on. What cannot be edited is sent as a new message that
/// says what it belongs to.
#[tokio::test]
async fn an_edit_that_gets_nowhere_lets_the_conversation_go_on() {
    let gateway = slow_on_one().start().await;
    gateway.platform.choose_faults(|delivery| is_edit(delivery).then_some(Fault::NotSent));
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);

    gateway.receives(said(&chat("ada"), "two")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["two", "(again) one"]);
    gateway.at_rest().await;
}

/// Where the operator wants no copies, an edit that gets nowhere stays an edit.
#[tokio::test]
async fn an_edit_is_not_sent_as_a_message_where_no_copy_is_wanted() {
    let mut setup = slow_on_one();
    setup.policies = Policies::new(Policy { on_unknown: OnUnknown::Hold, ..policy() });
    let gateway = setup.start().await;
    gateway.platform.choose_faults(|delivery| is_edit(delivery).then_some(Fault::NotSent));
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(60)).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(secs(900)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL, "two"]);

    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// Where edits fail for long, the answer is sent as a new message, and takes the place of the deferral.
#[tokio::test]
async fn an_edit_that_fails_for_long_becomes_a_message() {
    let gateway = slow_on_one().start().await;
    gateway.platform.choose_faults(|delivery| is_edit(delivery).then_some(Fault::NotSent));

    let turn = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("is parked"), "{explained}");
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["(again) one"]);
    gateway.at_rest().await;
}

/// A command is answered while an earlier answer gets nowhere.
#[tokio::test]
async fn a_command_is_answered_beside_an_answer_that_gets_nowhere() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.hold(true);
    let one = gateway.accepts(said(&chat("ada"), "one")).await;
    gateway.platform.choose_faults(move |delivery| (delivery.turn() == one).then_some(Fault::NotSent));
    gateway.platform.hold(false);
    gateway.settle().await;
    gateway.advance(secs(10)).await;

    gateway.receives(said(&chat("ada"), "/status")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Sending for 10 s: one"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["Sending for 10 s: one", "(again) done"]);
    gateway.at_rest().await;
}

/// The later parts of an answer that gets nowhere wait for it.
#[tokio::test]
async fn no_part_overtakes_an_earlier_one() {
    let text = ["a", "b", "c"].join(ScriptedChannel::CUT);
    let gateway = GatewaySetup::new()
        .agent("main", move |turn: &AgentTurn| Script::replies(if turn.message.text == "one" { &text } else { "two" }))
        .start()
        .await;
    gateway.platform.choose_faults(|delivery| (delivery.part() == (2, 3)).then_some(Fault::NotSent));
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(10)).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["a", "two"]);

    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["a", "two", "(again) b", "c"]);
    gateway.at_rest().await;
}

/// A call that hangs holds up its conversation for two minutes, not for three attempts.
#[tokio::test]
async fn a_call_that_hangs_is_parked_after_two_minutes() {
    let gateway =
        GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies("done")).start().await;
    gateway.platform.hold(true);
    let one = gateway.accepts(said(&chat("ada"), "one")).await;
    gateway.platform.choose_faults(move |delivery| (delivery.turn() == one).then_some(Fault::Hang));
    gateway.platform.hold(false);
    gateway.settle().await;
    gateway.receives(said(&chat("ada"), "two")).await;

    gateway.advance(secs(121)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;
    gateway.at_rest().await;
}
