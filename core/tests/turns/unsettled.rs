//! A store that is lost while it writes, so that nobody knows whether it has written.

use rejoinder_core::{
    AgentTurn, InboundEvent, IntakeError, OperationError, Resend, StoreError, conformance::scripted::Script,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, operator, said, secs},
    life::Crash,
};

/// How many writes a turn takes, and some more.
const WRITES: u64 = 8;

/// A gateway that recovers what is left while it runs, with an agent that says what it hears.
async fn gateway(resend: Resend) -> TestGateway {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    setup
        .capable(|it| it.resend = resend)
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(1)))
        .start()
        .await
}

/// Sends an event as a platform does: until it is acknowledged. Returns how often.
async fn comes(gateway: &TestGateway, event: InboundEvent) -> u32 {
    let mut times = 1;
    while let Err(error) = gateway.intake().accept(event.clone()).await {
        assert!(matches!(error, IntakeError::Store(StoreError::Unknown(_))), "{error}");
        times += 1;
    }
    gateway.settle().await;
    times
}

/// E3.
#[tokio::test]
async fn an_event_of_unknown_fate_is_not_acknowledged() {
    for loss in [Crash::Before, Crash::After] {
        let gateway = gateway(Resend::Idempotent).await;
        gateway.life.lose_at(1, loss);

        assert_eq!(comes(&gateway, said(&chat("ada"), "hello")).await, 2);
        gateway.advance(secs(30)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["hello"], "{loss:?}");
        assert_eq!(gateway.turns().await.len(), 1);
        gateway.at_rest().await;
    }
}

/// Whatever write it is, each message is answered, and nothing is shown twice without a label.
#[tokio::test]
async fn nothing_is_lost_and_nothing_doubled_by_a_write_of_unknown_fate() {
    for resend in [Resend::Idempotent, Resend::Ambiguous] {
        for (loss, write) in [Crash::Before, Crash::After].into_iter().flat_map(|it| (1..=WRITES).map(move |n| (it, n)))
        {
            let gateway = gateway(resend).await;
            gateway.life.lose_at(write, loss);

            for text in ["one", "two"] {
                comes(&gateway, said(&chat("ada"), text)).await;
            }
            gateway.advance(secs(120)).await;

            let mut visible = gateway.visible(&chat("ada"));
            let labelled = visible.extract_if(.., |text| text.starts_with("(again)")).count();
            visible.sort();
            let expected = 2 - if resend == Resend::Ambiguous { labelled } else { 0 };
            assert!(labelled <= 1 && visible.len() == expected, "{loss:?} write {write}: {visible:?}");
            gateway.at_rest().await;
        }
    }
}

/// The answer is decided on once, and its attempt, which may have begun, sends nothing.
#[tokio::test]
async fn a_run_whose_end_is_of_unknown_fate_ends_once() {
    for (loss, results) in [
        (Crash::Before, vec![(1, Some("delivered".to_owned()))]),
        (Crash::After, vec![(1, Some("unknown".to_owned())), (2, Some("delivered".to_owned()))]),
    ] {
        let gateway = gateway(Resend::Idempotent).await;
        let turn = gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.life.lose_at(1, loss);
        gateway.advance(secs(60)).await;

        let dossier = gateway.dossier(turn).await;
        let attempts: Vec<_> = dossier.attempts.into_iter().map(|it| (it.number, it.result)).collect();
        assert_eq!(attempts, results);
        assert_eq!(dossier.deliveries.len(), 1);
        assert!(dossier.remarks.iter().all(|remark| remark.kind != "suppressed"), "{:?}", dossier.remarks);
        assert_eq!((gateway.visible(&chat("ada")), gateway.agent("main").runs().len()), (vec!["hello".to_owned()], 1));
        gateway.at_rest().await;
    }
}

/// E8.
#[tokio::test]
async fn a_receipt_of_unknown_fate_is_written_again() {
    for loss in [Crash::Before, Crash::After] {
        let gateway = gateway(Resend::Ambiguous).await;
        gateway.platform.hold(true);
        let turn = gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.advance(secs(1)).await;
        gateway.life.lose_at(1, loss);
        gateway.platform.hold(false);
        gateway.advance(secs(60)).await;

        let attempts = gateway.dossier(turn).await.attempts;
        assert_eq!(attempts.iter().map(|it| it.result.as_deref()).collect::<Vec<_>>(), [Some("delivered")], "{loss:?}");
        assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn a_pause_of_unknown_fate_holds_when_it_is_asked_for_again() {
    let gateway = gateway(Resend::Idempotent).await;
    let pause = async |pauses: bool| {
        gateway.engine().operations().pause_channel(main_channel(), pauses, operator("a test")).await
    };
    gateway.life.lose_at(1, Crash::After);
    let unknown = pause(true).await;
    assert!(matches!(unknown, Err(OperationError::Store(StoreError::Unknown(_)))), "{unknown:?}");
    let again = pause(true).await;
    assert!(matches!(again, Err(OperationError::Unfit(_))), "{again:?}");

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    pause(false).await.expect("it is done");
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}
