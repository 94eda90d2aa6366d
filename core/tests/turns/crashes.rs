//! `kill -9` at every step of a turn.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    AgentTurn, Cause, IntakeError, Ladder, Policy, Resend, Rung, Support,
    conformance::scripted::{Fault, Script, ScriptedChannel},
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, TestGateway, chat, policy, said, secs},
    life::{Crash, Life},
};

/// Long enough for every turn to end.
const LONG: Duration = Duration::from_hours(2);

/// Gives an event to the gateway until it is accepted, as a platform does without an acknowledgement.
async fn delivers_until_accepted(gateway: &mut TestGateway, event: &rejoinder_core::InboundEvent) {
    loop {
        let (intake, event, life) = (gateway.intake(), event.clone(), Arc::clone(&gateway.life));
        let accepting = tokio::spawn(async move { intake.accept(event).await });
        while !accepting.is_finished() && !life.is_over() {
            tokio::task::yield_now().await;
        }
        if accepting.is_finished() {
            let accepted: Result<_, IntakeError> = accepting.await.expect("accepting does not panic");
            accepted.expect("it is accepted");
            return;
        }
        accepting.abort();
        gateway.restart().await;
    }
}

/// Sends an event and crashes at the `number`-th write from then on. Returns whether the last life has crashed.
async fn survives(gateway: &mut TestGateway, number: u64, crash: Crash) -> bool {
    gateway.life.crash_at(number, crash);
    let event = said(&chat("ada"), "hello");
    delivers_until_accepted(gateway, &event).await;
    gateway.advance(LONG).await;
    let crashed = gateway.life.is_over();
    if crashed {
        gateway.restart().await;
    }
    // After a crash during intake, the gateway was restarted there without a planned crash.
    gateway.advance(LONG).await;
    gateway.check_rest().await;
    crashed
}

/// Crashes before and after every write of a turn of `setup`, each in a new gateway, until a turn ends without a
/// crash.
async fn at_every_write(setup: impl Fn() -> GatewaySetup, expected: impl Fn(&TestGateway, &str)) {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..100 {
            let mut gateway = setup().start().await;
            let life = Arc::clone(&gateway.life);
            survives(&mut gateway, number, crash).await;
            expected(&gateway, &format!("{crash:?} write {number}"));
            if !life.is_over() {
                assert!(number > 3, "a turn takes more than {number} writes");
                break;
            }
            assert!(number < 99, "no end of writes");
        }
    }
}

/// D1, E8.
#[tokio::test]
async fn a_crash_at_any_write_of_an_answered_turn_ends_in_one_answer() {
    at_every_write(
        || GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies("done")),
        |gateway, at| assert_eq!(gateway.visible(&chat("ada")), ["done"], "{at}"),
    )
    .await;
}

/// D1, D7. Where a resend may show twice, the second copy is labelled.
#[tokio::test]
async fn a_crash_where_a_resend_may_show_twice_ends_in_one_answer_and_at_most_one_labelled_copy() {
    at_every_write(
        || GatewaySetup::new().always(Script::replies("done")),
        |gateway, at| {
            let visible = gateway.visible(&chat("ada"));
            let plain = visible.iter().filter(|text| *text == "done").count();
            assert!(plain <= 1 && !visible.is_empty() && visible.len() <= 2, "{at}: {visible:?}");
        },
    )
    .await;
}

/// D1: with a deferral before the answer.
#[tokio::test]
async fn a_crash_at_any_write_of_a_deferred_turn_pays_the_debt() {
    at_every_write(
        || {
            GatewaySetup::new()
                .capable(|it| it.resend = Resend::Idempotent)
                .always(Script::replies("done").taking(secs(30)))
        },
        |gateway, at| assert_eq!(gateway.visible(&chat("ada")), ["done"], "{at}"),
    )
    .await;
}

/// D1: between the parts of a long answer.
#[tokio::test]
async fn a_crash_at_any_write_of_a_long_answer_shows_every_part_once() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    at_every_write(
        move || GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies(&text)),
        |gateway, at| assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"], "{at}"),
    )
    .await;
}

/// D1: during a handoff.
#[tokio::test]
async fn a_crash_at_any_write_of_a_handed_over_turn_ends_in_one_answer() {
    let ladder = Ladder::empty()
        .with(Cause::Silent, vec![Rung::Handoff("orchestrator".to_owned()), Rung::Say("silent".to_owned())])
        .with(Cause::Error, vec![Rung::Say("failed".to_owned())]);
    at_every_write(
        move || {
            GatewaySetup::new()
                .policy(Policy { ladder: ladder.clone(), ..policy() })
                .capable(|it| it.resend = Resend::Idempotent)
                .always(Script::is_silent("not mine"))
                .agent("orchestrator", |_| Script::replies("taken over"))
        },
        |gateway, at| assert_eq!(gateway.visible(&chat("ada")), ["taken over"], "{at}"),
    )
    .await;
}

/// D1: between the agent's own send and the end of its run.
#[tokio::test]
async fn a_crash_at_any_write_of_an_agents_own_send_ends_in_one_answer() {
    at_every_write(
        || {
            GatewaySetup::new()
                .capable(|it| it.resend = Resend::Idempotent)
                .always(Script::replies("done").sending("here").taking(secs(5)))
        },
        |gateway, at| assert_eq!(gateway.visible(&chat("ada")), ["here"], "{at}"),
    )
    .await;
}

/// D1: between a refusal and the next rung.
#[tokio::test]
async fn a_crash_at_any_write_of_a_refused_answer_ends_in_the_ladders_words() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..100 {
            let mut gateway = GatewaySetup::new()
                .capable(|it| it.resend = Resend::Idempotent)
                .always(Script::replies("bad"))
                .start()
                .await;
            gateway
                .platform
                .choose_faults(|delivery| format!("{:?}", delivery.action()).contains("bad").then_some(Fault::Refuse));
            let life = Arc::clone(&gateway.life);
            survives(&mut gateway, number, crash).await;
            assert_eq!(gateway.visible(&chat("ada")), [crate::texts::FAILED], "{crash:?} write {number}");
            if !life.is_over() {
                break;
            }
        }
    }
}

/// A10, D1: during three turns of one conversation.
#[tokio::test]
async fn a_crash_at_any_write_of_a_conversation_keeps_its_order() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..100 {
            let mut gateway = GatewaySetup::new()
                .capable(|it| it.resend = Resend::Idempotent)
                .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(1)))
                .start()
                .await;
            let life = Arc::clone(&gateway.life);
            life.crash_at(number, crash);
            for text in ["one", "two", "three"] {
                let event = said(&chat("ada"), text);
                delivers_until_accepted(&mut gateway, &event).await;
            }
            gateway.advance(secs(60)).await;
            if gateway.life.is_over() {
                gateway.restart().await;
                gateway.advance(secs(60)).await;
            }
            gateway.check_rest().await;
            assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"], "{crash:?} write {number}");
            if !life.is_over() {
                break;
            }
        }
    }
}

/// D11, D13. A turn that crashes the process is given up after `max_runs`, and still gets its fallback.
#[tokio::test]
async fn a_poison_turn_is_quarantined_and_its_neighbours_are_answered() {
    let mut gateway = GatewaySetup::new()
        .capable(|it| it.edit = Support::No)
        .agent("main", |turn: &AgentTurn| match turn.message.text.as_str() {
            "poison" => Script::hangs(),
            _ => Script::replies("fine"),
        })
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "poison")).await;
    for _ in 0..5 {
        gateway.restart().await;
    }
    gateway.receives(said(&chat("ada"), "next")).await;

    assert_eq!(gateway.visible(&chat("ada")), [crate::texts::FAILED, "fine"]);
    assert_eq!(gateway.agent("main").runs().len(), 4, "three of the poison, one of the next");
    gateway.at_rest().await;
}

/// A crash during the recovery at start is followed by a clean start.
#[tokio::test]
async fn a_crash_while_taking_up_what_was_left_loses_nothing() {
    for number in 1..5 {
        for crash in [Crash::Before, Crash::After] {
            let mut gateway = GatewaySetup::new()
                .capable(|it| it.resend = Resend::Idempotent)
                .always(Script::replies("done").taking(secs(1)))
                .start()
                .await;
            gateway.platform.queue_fault(Fault::Hang);
            gateway.receives(said(&chat("ada"), "one")).await;
            gateway.receives(said(&chat("bob"), "two")).await;
            gateway.advance(secs(1)).await;
            gateway.life.kill();

            let life = Arc::new(Life::default());
            life.crash_at(number, crash);
            gateway.begin(life).await;
            gateway.advance(secs(5)).await;
            gateway.restart().await;
            gateway.advance(HARD_DEADLINE).await;

            assert_eq!(gateway.visible(&chat("ada")), ["done"], "{crash:?} write {number}");
            assert_eq!(gateway.visible(&chat("bob")), ["done"], "{crash:?} write {number}");
            gateway.at_rest().await;
        }
    }
}
