//! A platform that cannot be sent to for a while, or does not say whether it was: who sees copies, and when what waits is sent.

use std::{collections::HashMap, time::Duration};

use rejoinder_core::{
    Action, ConversationRef, Delivery, OperationError, Resend, Scope, Support,
    conformance::scripted::{Fault, Script, ScriptedChannel},
    store::DeliveryState,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, operator, said, secs},
    texts::DEFERRAL,
};

const HOUR: Duration = Duration::from_hours(1);

fn twenty() -> Vec<ConversationRef> {
    (0..20).map(|n| chat(&format!("person{n}"))).collect()
}

async fn everybody_writes(gateway: &TestGateway, people: &[ConversationRef]) {
    for person in people {
        gateway.receives(said(person, "hello")).await;
    }
}

/// How many labelled copies somebody sees.
fn copies(gateway: &TestGateway, person: &ConversationRef) -> usize {
    gateway.visible(person).iter().filter(|text| text.starts_with("(again)")).count()
}

/// D7. Messages arrive, and nothing says so for three seconds.
#[tokio::test]
async fn three_seconds_of_lost_responses_cost_everybody_one_labelled_copy() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|_| Some(Fault::LoseResponse));
    everybody_writes(&gateway, &twenty()).await;
    gateway.advance(secs(3)).await;
    gateway.platform.clear_faults();

    gateway.advance(secs(20)).await;

    for person in twenty() {
        assert_eq!(gateway.visible(&person), ["done", "(again) done"]);
    }
    gateway.at_rest().await;
}

/// D7. While responses are lost, one person at a time gets a copy in vain: the probe.
#[tokio::test]
async fn forty_seconds_of_lost_responses_cost_four_people_two_copies() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|_| Some(Fault::LoseResponse));
    everybody_writes(&gateway, &twenty()).await;
    gateway.advance(secs(40)).await;
    gateway.platform.clear_faults();

    gateway.advance(secs(90)).await;

    let copies: Vec<_> = twenty().iter().map(|person| copies(&gateway, person)).collect();
    assert!(copies.iter().all(|copies| (1..=2).contains(copies)), "{copies:?}");
    assert!(copies.iter().filter(|copies| **copies > 1).count() <= 4, "{copies:?}");
    gateway.at_rest().await;
}

/// D7, D10. The process is killed while responses are lost, and sends nothing sooner for that.
#[tokio::test]
async fn a_restart_in_an_outage_adds_no_copies() {
    let mut gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|_| Some(Fault::LoseResponse));
    everybody_writes(&gateway, &twenty()).await;
    for _ in 0..8 {
        gateway.advance(secs(5)).await;
        gateway.restart().await;
        gateway.intake().report_recovered();
    }
    gateway.settle().await;
    let in_vain: usize = twenty().iter().map(|person| copies(&gateway, person)).sum();
    gateway.platform.clear_faults();

    gateway.advance(secs(90)).await;

    // Each start has a probe.
    assert!(in_vain <= 9, "{in_vain} copies in vain");
    let copies: Vec<_> = twenty().iter().map(|person| copies(&gateway, person)).collect();
    assert!(copies.iter().all(|copies| (1..=2).contains(copies)), "{copies:?}");
    gateway.at_rest().await;
}

/// D7. What a crash left without a result waits as long as what was lost.
#[tokio::test]
async fn what_a_crash_left_unknown_is_not_sent_again_at_once() {
    let mut gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::Hang);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.restart().await;
    gateway.intake().report_recovered();
    gateway.advance(secs(4)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());

    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["(again) done"]);
    gateway.at_rest().await;
}

/// D7, H2. The platform answers others, and loses each answer to one person: that is no reason for a burst.
#[tokio::test]
async fn somebody_whose_responses_are_always_lost_gets_few_copies() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|delivery| (&*delivery.conversation().chat == "ada").then_some(Fault::LoseResponse));
    gateway.receives(said(&chat("ada"), "hello")).await;
    for _ in 0..60 {
        gateway.receives(said(&chat("bob"), "hello")).await;
        gateway.advance(secs(10)).await;
    }
    let after_ten_minutes = copies(&gateway, &chat("ada"));
    gateway.advance(HOUR * 12).await;
    let after_half_a_day = copies(&gateway, &chat("ada"));
    gateway.platform.clear_faults();
    gateway.advance(HOUR * 2).await;

    // After 5 s, a minute, 5 and 15 minutes, and then every hour, or up to a fifth later.
    assert_eq!(after_ten_minutes, 3);
    assert!((10..=16).contains(&after_half_a_day), "{after_half_a_day}");
    gateway.at_rest().await;
}

/// D7. What has just been written is sent at once, also before what may have arrived and waits.
#[tokio::test]
async fn a_new_answer_does_not_wait_for_one_that_may_have_arrived() {
    let gateway = echo().start().await;
    gateway.platform.choose_faults(|_| Some(Fault::LoseRequest));
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(7)).await;
    gateway.platform.clear_faults();

    gateway.receives(said(&chat("ada"), "two")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    gateway.advance(secs(90)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["two", "(again) one"]);
    gateway.at_rest().await;
}

/// E8. Where a message that is sent again shows once, nothing waits.
#[tokio::test]
async fn where_nothing_shows_twice_nothing_waits() {
    let gateway =
        GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies("done")).start().await;
    gateway.platform.queue_fault(Fault::LoseRequest);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// An edit that is answered does not show that messages are.
#[tokio::test]
async fn an_answered_edit_does_not_end_an_outage_of_messages() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn| match &*turn.message.text {
            "slow" => Script::replies("done").taking(secs(23)),
            _ => Script::replies("done"),
        })
        .start()
        .await;
    gateway.receives(said(&chat("slow"), "slow")).await;
    gateway.advance(secs(20)).await;
    assert_eq!(gateway.visible(&chat("slow")), [DEFERRAL]);
    let is_message = |delivery: &Delivery| matches!(delivery.action(), Action::Send { .. });
    gateway.platform.choose_faults(move |delivery| is_message(delivery).then_some(Fault::LoseResponse));

    everybody_writes(&gateway, &twenty()).await;
    gateway.advance(secs(9)).await;

    assert_eq!(gateway.visible(&chat("slow")), ["done"]);
    let in_vain: usize = twenty().iter().map(|person| copies(&gateway, person)).sum();
    assert_eq!(in_vain, 1);
    gateway.platform.clear_faults();
    gateway.advance(secs(90)).await;
    gateway.at_rest().await;
}

/// D7, K6. Each part of a long answer waits by itself, and is copied once.
#[tokio::test]
async fn a_long_answer_in_an_outage_is_copied_part_by_part() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;
    let mut lost = HashMap::<u32, u32>::new();
    gateway.platform.choose_faults(move |delivery: &Delivery| {
        let times = lost.entry(delivery.part().0).or_default();
        *times += 1;
        (*times == 1).then_some(Fault::LoseResponse)
    });

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(30)).await;

    let expected = ["one", "(again) one", "two", "(again) two", "three", "(again) three"];
    assert_eq!(gateway.visible(&chat("ada")), expected);
    gateway.at_rest().await;
}

/// H2, H3. Sending fails for ten minutes, long after which the next attempts are due; nobody writes.
#[tokio::test]
async fn what_waits_is_sent_soon_after_the_platform_is_back() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    everybody_writes(&gateway, &twenty()).await;
    gateway.advance(secs(600)).await;
    gateway.platform.set_down(false);

    gateway.advance(secs(15)).await;

    for person in twenty() {
        assert_eq!(gateway.visible(&person), ["done"]);
    }
    gateway.at_rest().await;
}

/// An attempt began in an outage, and its failure is known only when another message has shown that the outage is over: it waits for
/// no pause.
#[tokio::test]
async fn what_fails_as_late_as_the_platform_is_back_is_sent_at_once() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(4)).await;
    let mut faults = vec![Fault::NotSentLate];
    gateway.platform.choose_faults(move |_| faults.pop());
    gateway.platform.set_down(false);
    gateway.advance(secs(6)).await;
    assert!(gateway.visible(&chat("ada")).is_empty(), "the attempt goes on");

    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// U4. For so long that the next attempt is an hour away, nothing says whether a message arrived. When the platform answers typing
/// notices again, all is sent.
#[tokio::test]
async fn what_may_have_arrived_is_sent_soon_after_the_platform_is_back() {
    for (fault, people) in [(Fault::LoseRequest, 1), (Fault::LoseResponse, 20)] {
        let setup = GatewaySetup::new().capable(|it| it.typing = Support::Full);
        let gateway = setup.always(Script::replies("done")).start().await;
        gateway.platform.choose_faults(move |_| Some(fault.clone()));
        gateway.platform.lose_ephemerals(true);
        let people: Vec<_> = twenty().into_iter().take(people).collect();
        everybody_writes(&gateway, &people).await;
        gateway.advance(secs(1320)).await;
        let before: Vec<_> = people.iter().map(|person| gateway.visible(person).len()).collect();
        gateway.platform.clear_faults();
        gateway.platform.lose_ephemerals(false);

        gateway.advance(secs(20)).await;

        for (person, before) in people.iter().zip(before) {
            assert!(before <= 1, "no copy in an outage");
            assert_eq!(copies(&gateway, person), 1);
        }
        gateway.at_rest().await;
    }
}

/// While a channel cannot send, one delivery is tried every 10 to 15 s beside those that are due; while it can, none.
#[tokio::test]
async fn a_channel_is_probed_only_while_it_cannot_send() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1200)).await;
    let before = gateway.platform.calls();
    gateway.advance(secs(120)).await;
    let in_two_minutes = gateway.platform.calls() - before;
    gateway.platform.set_down(false);
    gateway.advance(secs(15)).await;
    let after = gateway.platform.calls();

    gateway.advance(HOUR).await;

    assert!((8..=13).contains(&in_two_minutes), "{in_two_minutes} calls in two minutes");
    assert_eq!(gateway.platform.calls(), after);
    gateway.at_rest().await;
}

fn echo() -> GatewaySetup {
    GatewaySetup::new().agent("main", |turn| Script::replies(&turn.message.text))
}

/// What waits is left to the probe, however much it is, and is in order when the platform is back.
#[tokio::test]
async fn a_platform_that_is_down_is_called_as_seldom_for_thirty_answers_as_for_one() {
    let gateway = echo().start().await;
    gateway.platform.set_down(true);
    let texts: Vec<_> = (0..30).map(|number| format!("number {number}")).collect();
    for text in &texts {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.advance(secs(120)).await;
    let before = gateway.platform.calls();
    gateway.advance(secs(600)).await;
    let calls = gateway.platform.calls() - before;
    gateway.platform.set_down(false);

    gateway.advance(secs(15)).await;

    assert!((40..=60).contains(&calls), "{calls} calls in ten minutes");
    assert_eq!(gateway.visible(&chat("ada")), texts);
    gateway.at_rest().await;
}

/// More answers wait in one chat than are looked at at once.
#[tokio::test]
async fn a_long_line_in_one_chat_keeps_no_other_from_a_platform_that_is_back() {
    let gateway = echo().start().await;
    gateway.platform.set_down(true);
    let texts: Vec<_> = (0..40).map(|number| format!("number {number}")).collect();
    for text in &texts {
        gateway.receives(said(&chat("ada"), text)).await;
    }
    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.advance(secs(600)).await;
    gateway.platform.set_down(false);

    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("bob")), ["hello"]);
    assert_eq!(gateway.visible(&chat("ada")), texts);
    gateway.at_rest().await;
}

/// The first answer that waits is the one that fails: the one behind it is sent all the same.
#[tokio::test]
async fn an_answer_that_fails_by_itself_keeps_no_other_from_a_platform_that_is_back() {
    let gateway = echo().start().await;
    gateway.platform.set_down(true);
    let one = gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(secs(600)).await;
    gateway.platform.choose_faults(move |delivery| (delivery.turn() == one).then_some(Fault::NotSent));
    gateway.platform.set_down(false);

    gateway.advance(secs(150)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;
    gateway.at_rest().await;
}

/// A refusal for one chat shows that the platform answers.
#[tokio::test]
async fn a_refusal_for_one_chat_shows_that_the_platform_is_back() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(600)).await;
    gateway.platform.set_down(false);
    gateway.platform.choose_faults(|delivery| (&*delivery.conversation().chat == "bob").then_some(Fault::Refuse));

    let refused = gateway.receives(said(&chat("bob"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.engine().operations().discard(refused.as_uuid(), operator("a test")).await.expect("it is given up");
    gateway.at_rest().await;
}

/// An edit that fails with everything else stays an edit, however often it was a probe.
#[tokio::test]
async fn an_edit_is_not_made_a_message_because_its_channel_is_down() {
    let setup = GatewaySetup::new().capable(|it| it.typing = Support::Full);
    let gateway = setup.always(Script::replies("done").taking(secs(30))).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(20)).await;
    gateway.platform.set_down(true);
    gateway.advance(secs(600)).await;
    let attempts = gateway.dossier(turn).await.deliveries.last().expect("the answer").attempts;
    gateway.platform.set_down(false);

    gateway.advance(secs(15)).await;

    assert!(attempts >= 8, "{attempts} attempts");
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let states: Vec<_> = gateway.dossier(turn).await.deliveries.iter().map(|one| one.state).collect();
    assert_eq!(states, [DeliveryState::Delivered, DeliveryState::Delivered]);
    gateway.at_rest().await;
}

/// An operator has what waits for an hour tried now: the delivery, its turn, or all of the channel.
#[tokio::test]
async fn what_waits_is_tried_when_an_operator_says_so() {
    for what in ["delivery", "turn", "channel"] {
        let gateway = TestGateway::with(Script::replies("done")).await;
        gateway.platform.set_down(true);
        let turn = gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.advance(HOUR).await;
        gateway.platform.set_down(false);
        let delivery = gateway.dossier(turn).await.deliveries[0].id;

        let (engine, by) = (gateway.engine(), operator("it is back"));
        match what {
            "delivery" => engine.operations().try_delivery(delivery, by).await,
            "turn" => engine.operations().retry(turn.as_uuid(), by).await,
            _ => engine.operations().try_channel(main_channel(), by).await,
        }
        .expect("it is tried");
        gateway.settle().await;

        assert_eq!(gateway.visible(&chat("ada")), ["done"], "{what}");
        if what != "channel" {
            let explained = gateway.explained(turn).await;
            assert!(explained.contains("Tried now by grace: it is back"), "{explained}");
        }
        let again = gateway.engine().operations().try_delivery(delivery, operator("again")).await;
        assert!(matches!(again, Err(OperationError::Unfit(_))), "{again:?}");
        gateway.at_rest().await;
    }
}

/// What may have arrived is sent at once if an operator wants that delivery tried, with a label; not if they want the channel tried.
#[tokio::test]
async fn an_operators_try_of_what_may_have_arrived_has_a_label() {
    for (is_delivery, expected) in [(true, vec!["done", "(again) done"]), (false, vec!["done"])] {
        let gateway = TestGateway::with(Script::replies("done")).await;
        gateway.platform.queue_fault(Fault::LoseResponse);
        let turn = gateway.receives(said(&chat("ada"), "hello")).await;
        let delivery = gateway.dossier(turn).await.deliveries[0].id;

        let (engine, by) = (gateway.engine(), operator("now"));
        if is_delivery {
            engine.operations().try_delivery(delivery, by).await.expect("it is tried");
        } else {
            engine.operations().try_channel(main_channel(), by).await.expect("it is tried");
        }
        gateway.settle().await;

        assert_eq!(gateway.visible(&chat("ada")), expected);
        gateway.advance(secs(10)).await;
        assert_eq!(gateway.visible(&chat("ada")), ["done", "(again) done"]);
        gateway.at_rest().await;
    }
}

/// What the platform itself lets nobody send is not said to be tried, but when it goes.
#[tokio::test]
async fn what_the_platforms_limit_holds_is_not_tried() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(90), scope: Scope::Account });
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let delivery = gateway.dossier(turn).await.deliveries[0].id;
    gateway.advance(secs(30)).await;

    let (engine, by) = (gateway.engine(), || operator("now"));
    let tried = [
        engine.operations().try_delivery(delivery, by()).await,
        engine.operations().retry(turn.as_uuid(), by()).await,
        engine.operations().try_channel(main_channel(), by()).await,
    ];

    for tried in tried {
        let Err(error @ OperationError::Blocked { .. }) = tried else { panic!("{tried:?}") };
        assert!(error.to_string().contains("for another 60 s: "), "{error}");
    }
    gateway.advance(secs(60)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// A dead letter is sent when the operator says so, or not.
#[tokio::test]
async fn a_dead_letter_is_not_sent_again_while_the_platforms_limit_holds() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|_| Some(Fault::Refuse));
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.platform.clear_faults();
    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(30), scope: Scope::Account });
    gateway.receives(said(&chat("bob"), "hello")).await;

    let early = gateway.engine().operations().retry(turn.as_uuid(), operator("now")).await;
    gateway.advance(secs(30)).await;
    let in_time = gateway.engine().operations().retry(turn.as_uuid(), operator("now")).await;
    gateway.settle().await;

    assert!(matches!(early, Err(OperationError::Blocked { then: "retry it then", .. })), "{early:?}");
    in_time.expect("it is sent again");
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Nothing is tried on a channel that is paused.
#[tokio::test]
async fn a_paused_channel_is_not_tried() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.engine().operations().pause_channel(main_channel(), true, operator("quiet")).await.expect("it is paused");
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let tried = gateway.engine().operations().retry(turn.as_uuid(), operator("now")).await;

    assert!(matches!(&tried, Err(OperationError::Unfit(why)) if why.contains("is paused by grace")), "{tried:?}");
    gateway.engine().operations().pause_channel(main_channel(), false, operator("on")).await.expect("it goes on");
    gateway.advance(secs(61)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}
