//! Typing notices: shown during a run, gone after it, and never at the cost of the answer.

use rejoinder_core::{
    Action, AgentTurn, Capabilities,
    conformance::scripted::{Fault, Script, SeenDelivery},
};

use crate::{
    drafts::showing,
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, said, secs},
    texts::DEFERRAL,
};

fn typing(gateway: &TestGateway) -> Vec<bool> {
    let on = |seen: SeenDelivery| match seen.action {
        Action::Typing { on } => Some(on),
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(on).collect()
}

/// G1.
#[tokio::test]
async fn typing_is_renewed_and_ends_with_the_turn() {
    let gateway = GatewaySetup::new().capable(showing).always(Script::replies("done").taking(secs(10))).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(11)).await;

    assert_eq!(typing(&gateway), [true, true, true, false]);
    gateway.at_rest().await;
}

/// G1. An answer interrupts the call that ends the notice. It is made again.
#[tokio::test]
async fn typing_ends_although_the_answer_goes_first() {
    let gateway = GatewaySetup::new().capable(showing).always(Script::replies("done").taking(secs(2))).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1)).await;

    gateway.platform.hang_ephemerals(true);
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.platform.hang_ephemerals(false);
    gateway.advance(secs(20)).await;

    assert_eq!(typing(&gateway), [true, false]);
    gateway.at_rest().await;
}

/// Sending messages fails, and notices get through: waiting deliveries keep their pauses.
#[tokio::test]
async fn a_notice_is_no_sign_that_messages_can_be_sent() {
    let typing_longer = |turn: &AgentTurn| match &*turn.message.text {
        "type" => Script::replies("typed").taking(secs(60)),
        _ => Script::replies("done"),
    };
    let gateway = GatewaySetup::new().capable(showing).agent("main", typing_longer).start().await;
    gateway
        .platform
        .choose_faults(|delivery| matches!(delivery.action(), Action::Send { .. }).then_some(Fault::NotSent));

    gateway.receives(said(&chat("bob"), "type")).await;
    let mut turns = Vec::new();
    for person in ["ada", "cy", "di", "ed"] {
        turns.push(gateway.receives(said(&chat(person), "hello")).await);
    }
    gateway.advance(secs(17)).await;

    assert!(typing(&gateway).len() > 3, "notices get through");
    let mut attempts = Vec::new();
    for turn in turns {
        attempts.push(gateway.dossier(turn).await.attempts.len());
    }
    // At once, and after 1, 2, 5 and 10 s, give or take a fifth; one of them is a probe besides.
    assert!(
        attempts.iter().all(|attempts| *attempts >= 4) && attempts.iter().sum::<usize>() <= 4 * 5 + 1,
        "{attempts:?}"
    );
    gateway.platform.clear_faults();
    gateway.advance(secs(120)).await;
    gateway.at_rest().await;
}

/// G1.
#[tokio::test]
async fn the_end_of_typing_is_not_asked_for_where_it_comes_by_itself() {
    let ends_by_itself = |it: &mut Capabilities| {
        showing(it);
        it.typing_ends_by_itself = true;
    };
    let gateway =
        GatewaySetup::new().capable(ends_by_itself).always(Script::replies("done").taking(secs(6))).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(7)).await;

    assert_eq!(typing(&gateway), [true, true]);
    gateway.at_rest().await;
}

/// A typing notice that hangs delays neither the deferral nor the answer.
#[tokio::test]
async fn a_typing_notice_that_hangs_delays_no_signal() {
    let script = Script::replies("done").taking(SOFT_DEADLINE + secs(10));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;
    gateway.platform.hang_ephemerals(true);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}
