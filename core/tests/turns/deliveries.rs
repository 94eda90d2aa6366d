//! Sending stored deliveries to a platform that fails.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{
    Action, AgentTurn, Attachment, Capabilities, ChannelId, ConversationRef, Delivery, OnUnknown, Policy, Receipts,
    Reply, Resend, Scope, Support,
    conformance::scripted::{Fault, Script, ScriptedChannel, capabilities},
    store::{DeliveryState, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, policy, said, secs},
    texts::{CUT_LONG, CUT_OFF, DEFERRAL, IN_FILE},
};

const HOUR: Duration = Duration::from_hours(1);

/// Deliveries that live for an hour: an outage of a day has thousands of probes, and says no more.
async fn with_short_lives() -> TestGateway {
    let setup = GatewaySetup { delivery_lifetime: HOUR, ..GatewaySetup::new() };
    setup.always(Script::replies("done")).start().await
}

/// H2.
#[tokio::test]
async fn an_outage_shorter_than_its_life_uses_up_no_delivery() {
    let gateway = with_short_lives().await;
    gateway.platform.set_down(true);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(3_500)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.platform.set_down(false);
    gateway.advance(secs(900)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// H2, D10. Past its lifetime and attempts a delivery is a dead letter, with its payload.
#[tokio::test]
async fn an_outage_longer_than_its_life_makes_a_dead_letter() {
    let gateway = with_short_lives().await;
    gateway.platform.set_down(true);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(3_700)).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    let deliveries = gateway.dossier(turn).await.deliveries;
    assert_eq!(deliveries[0].state, DeliveryState::Dead);
    assert!(format!("{:?}", deliveries[0].action).contains("done"));
    gateway.at_rest().await;
}

/// A successful call to the channel sends its waiting deliveries at once.
#[tokio::test]
async fn when_a_channel_is_back_what_waits_on_it_goes_at_once() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;

    gateway.platform.set_down(false);
    gateway.receives(said(&chat("bob"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// H3. A poll that succeeds again sends the waiting deliveries without the rest of their pauses.
#[tokio::test]
async fn what_waits_goes_when_a_poll_succeeds_again() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.intake().report_recovered();
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;
    gateway.platform.set_down(false);
    assert!(gateway.visible(&chat("ada")).is_empty());

    gateway.intake().report_recovered();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Repeated reconnections do not cancel the pauses while sending still fails.
#[tokio::test]
async fn a_platform_that_is_back_again_and_again_is_not_hammered() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.set_down(true);
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(120)).await;
    let tried = async || gateway.dossier(turn).await.attempts.last().map_or(0, |attempt| attempt.number);
    let before = tried().await;

    for _ in 0..120 {
        gateway.intake().report_recovered();
        gateway.advance(secs(1)).await;
    }

    let attempts = tried().await - before;
    assert!(attempts <= 12, "{attempts} attempts in two minutes");
    gateway.platform.set_down(false);
    gateway.advance(HOUR).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// D7, D8, H2. After several attempts with unknown results it is sent again with a label, and with growing pauses.
#[tokio::test]
async fn an_unknown_send_is_sent_again_until_it_is_known() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    for _ in 0..4 {
        gateway.platform.queue_fault(Fault::LoseRequest);
    }

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.advance(secs(1600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["(again) done"]);
    let attempts = gateway.dossier(turn).await.attempts;
    let pauses: Vec<u128> = attempts
        .windows(2)
        .map(|pair| pair[1].started_at.since(pair[0].ended_at.expect("it has ended")).as_millis())
        .collect();
    for (pause, least) in pauses.iter().zip([5000, 60_000, 300_000, 900_000]) {
        assert!((least..=least * 12 / 10).contains(pause), "{pauses:?}");
    }
    gateway.at_rest().await;
}

/// H2. Giving up needs age and attempts, for an unknown send as for any other.
#[tokio::test]
async fn an_unknown_send_is_given_up_when_it_is_too_old() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|_: &Delivery| Some(Fault::LoseRequest));

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(23 * HOUR).await;
    assert_eq!(gateway.status(turn).await, TurnStatus::Accepted);
    // By then it is tried about once an hour (±20 %).
    gateway.advance(3 * HOUR).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.dossier(turn).await.deliveries[0].state, DeliveryState::Dead);
    gateway.at_rest().await;
}

/// D7, K6. Each part of an answer is resent on its own.
#[tokio::test]
async fn each_part_of_unknown_fate_is_sent_again() {
    let text = ["one", "two", "three", "four"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;
    let mut lost = std::collections::HashSet::new();
    gateway.platform.choose_faults(move |delivery: &Delivery| match delivery.part().0 {
        2 if lost.insert(2) => Some(Fault::LoseResponse),
        4 if lost.insert(4) => Some(Fault::LoseRequest),
        _ => None,
    });

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "(again) two", "three", "(again) four"]);
    gateway.at_rest().await;
}

/// K6. The person is notified when the rest of an answer is held.
#[tokio::test]
async fn an_answer_that_is_held_in_the_middle_says_so() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let mut gateway = GatewaySetup::new()
        .policy(Policy { on_unknown: OnUnknown::Hold, ..policy() })
        .always(Script::replies(&text))
        .start()
        .await;
    gateway.forgive_partial_answers();
    gateway.platform.choose_faults(|delivery: &Delivery| (delivery.part() == (2, 3)).then_some(Fault::LoseRequest));

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", CUT_OFF]);
    gateway.at_rest().await;
}

/// D7.
#[tokio::test]
async fn a_lost_response_ends_in_one_labelled_copy() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "(again) done"]);
    gateway.at_rest().await;
}

/// D7: with `on_unknown = Hold`.
#[tokio::test]
async fn an_unknown_send_is_held_where_the_operator_wants_that() {
    let gateway = GatewaySetup::new()
        .policy(Policy { on_unknown: OnUnknown::Hold, ..policy() })
        .always(Script::replies("done"))
        .start()
        .await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    gateway.at_rest().await;
}

/// E8. The delivery's id is the idempotency key, so a resend shows nothing twice.
#[tokio::test]
async fn an_idempotent_platform_is_asked_again_without_a_label() {
    let gateway =
        GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies("done")).start().await;
    for _ in 0..4 {
        gateway.platform.queue_fault(Fault::LoseResponse);
    }

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// K7. An answer of too many parts follows as a file; the agent remembers all of it.
#[tokio::test]
async fn an_answer_of_too_many_parts_follows_as_a_file() {
    let text = ["one", "two", "three", "four", "five"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("ada"), "again")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", IN_FILE, "one", IN_FILE]);
    let files: Vec<Attachment> = gateway
        .platform
        .seen()
        .into_iter()
        .filter_map(|seen| match seen.action {
            Action::Send { content, .. } => content.attachments.into_iter().next(),
            _ => None,
        })
        .collect();
    let url = format!("data:text/markdown;base64,{}", BASE64_STANDARD.encode(&text));
    let expected = Attachment { name: "answer.md".to_owned(), media_type: "text/markdown".to_owned(), url };
    assert_eq!(files, [expected.clone(), expected]);
    let history = &gateway.agent("main").runs()[1].turn.past.history;
    assert!(history.iter().any(|line| line.text == text), "{history:?}");
    gateway.at_rest().await;
}

/// K7.
#[tokio::test]
async fn an_answer_of_as_many_parts_as_may_be_is_whole() {
    let text = ["one", "two", "three", "four"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three", "four"]);
    gateway.at_rest().await;
}

/// K7. Where there are no files, the answer is cut and says so; the record has all of it.
#[tokio::test]
async fn an_answer_of_too_many_parts_is_cut_where_there_are_no_files() {
    let text = ["one", "two", "three", "four", "five"].join(ScriptedChannel::CUT);
    let setup = GatewaySetup::new().capable(|it| it.attachments = Support::Degraded);
    let gateway = setup.always(Script::replies(&text)).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("ada"), "again")).await;

    assert_eq!(gateway.visible(&chat("ada"))[..5], ["one", "two", "three", "four", CUT_LONG]);
    let history = &gateway.agent("main").runs()[1].turn.past.history;
    assert!(history.iter().any(|line| line.text == text), "{history:?}");
    gateway.at_rest().await;
}

/// L3. An answer to a deleted message goes out at once, without the reply.
#[tokio::test]
async fn an_answer_to_a_deleted_message_goes_out_without_the_reply() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(5))).await;
    let event = said(&chat("ada"), "hello");
    gateway.platform.delete_message(event.message_id.as_deref().expect("an id"));

    let turn = gateway.receives(event).await;
    gateway.advance(secs(5)).await;

    let posts = gateway.platform.posts(&chat("ada"));
    assert_eq!(
        posts.iter().map(|post| (&*post.text, &post.to, &post.label)).collect::<Vec<_>>(),
        [("done", &None, &None)]
    );
    let results: Vec<_> =
        gateway.dossier(turn).await.attempts.into_iter().filter_map(|attempt| attempt.result).collect();
    assert_eq!(results, ["reply_gone", "delivered"]);
    gateway.at_rest().await;
}

/// Edits are idempotent on every platform.
#[tokio::test]
async fn a_lost_edit_is_made_again_without_a_label() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(30))).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(20)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.platform.queue_fault(Fault::LoseResponse);
    gateway.platform.queue_fault(Fault::LoseRequest);

    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// B10. Each part is a delivery; sending continues after the last delivered one.
#[tokio::test]
async fn a_long_answer_is_sent_in_parts_and_goes_on_where_it_stopped() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let mut gateway = TestGateway::with(Script::replies(&text)).await;
    let mut count = 0;
    gateway.platform.choose_faults(move |_| {
        count += 1;
        (count == 2).then_some(Fault::NotSent)
    });
    gateway.platform.hold(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.platform.hold(false);
    gateway.settle().await;
    gateway.restart().await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// A refused part withdraws the rest, and the person is notified.
#[tokio::test]
async fn a_refused_part_ends_the_answer_with_the_ladder() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;
    let mut count = 0;
    gateway.platform.choose_faults(move |_| {
        count += 1;
        (count == 2).then_some(Fault::Refuse)
    });

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", CUT_OFF]);
    let states: Vec<_> = gateway.dossier(turn).await.deliveries.iter().map(|delivery| delivery.state).collect();
    assert_eq!(
        states,
        [DeliveryState::Delivered, DeliveryState::Refused, DeliveryState::Withdrawn, DeliveryState::Delivered]
    );
    // The first part and the ladder's text after it are not two answers.
    let mut gateway = gateway;
    gateway.forgive_partial_answers();
    gateway.at_rest().await;
}

/// A call of the adapter may panic or never return: the delivery is retried.
#[tokio::test]
async fn an_adapter_that_panics_or_hangs_holds_up_nobody_for_long() {
    let gateway =
        GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).always(Script::replies("done")).start().await;
    gateway.platform.queue_fault(Fault::Panic);
    gateway.platform.queue_fault(Fault::Hang);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(130)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// I3, I5. Every attempt is a row with the platform's result.
#[tokio::test]
async fn every_attempt_is_a_row() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::NotSent);
    gateway.platform.queue_fault(Fault::NotSent);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;

    let attempts = gateway.dossier(turn).await.attempts;
    let results: Vec<_> = attempts.iter().map(|attempt| (attempt.number, attempt.result.as_deref())).collect();
    assert_eq!(results, [(1, Some("not_sent")), (2, Some("not_sent")), (3, Some("delivered"))]);
    gateway.at_rest().await;
}

/// A conversation that waits for its retries does not delay others.
#[tokio::test]
async fn one_conversation_in_trouble_holds_up_no_other() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.choose_faults(|delivery| (&*delivery.conversation().chat == "ada").then_some(Fault::NotSent));

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(900)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Hung calls on one channel do not use up the calls of other channels.
#[tokio::test]
async fn a_channel_that_hangs_holds_up_no_other_channel() {
    let other = ChannelId::new("other", "main");
    let mut setup = GatewaySetup::new().always(Script::replies("done"));
    setup.channels.push((other.clone(), Capabilities { resend: Resend::Idempotent, ..capabilities() }));
    setup.capabilities.resend = Resend::Idempotent;
    setup.slots = 256;
    let gateway = setup.start().await;
    gateway.platform.choose_faults(|delivery| (delivery.channel().platform() == "test").then_some(Fault::Hang));
    for number in 0..100 {
        gateway.accepts(said(&chat(&format!("c{number}")), "hello")).await;
    }
    gateway.settle().await;

    let there = ConversationRef::new(other, "bob");
    gateway.receives(said(&there, "hello")).await;

    assert_eq!(gateway.visible(&there), ["done"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(300)).await;
    gateway.at_rest().await;
}

/// Copies of an answer whose receipt is the row are retried, and given up without changing the turn.
#[tokio::test]
async fn a_copy_that_nobody_takes_leaves_the_answer_alone() {
    let gateway = GatewaySetup::new()
        .capable(|it| (it.receipts, it.edit) = (Receipts::RowThenCopy, Support::No))
        .always(Script::replies("done"))
        .start()
        .await;
    gateway.platform.queue_fault(Fault::NotSent);
    let first = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.status(first).await, TurnStatus::Answered);

    gateway.platform.choose_faults(|_| Some(Fault::Refuse));
    let second = gateway.receives(said(&chat("ada"), "again")).await;
    gateway.platform.choose_faults(|_| Some(Fault::NotSent));
    let third = gateway.receives(said(&chat("ada"), "and again")).await;
    gateway.advance(HOUR * 25).await;

    for turn in [second, third] {
        assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
        assert_eq!(gateway.dossier(turn).await.deliveries[1].state, DeliveryState::Dead);
    }
    gateway.at_rest().await;
}

/// D7. When an answer is given up whose last attempt has an unknown result, the explanation says that it may have
/// arrived.
#[tokio::test]
async fn an_old_answer_whose_last_attempt_was_lost_may_have_been_seen() {
    let setup = GatewaySetup { delivery_lifetime: Duration::from_millis(500), ..GatewaySetup::new() };
    let gateway = setup.always(Script::replies("done")).start().await;
    for fault in [Fault::NotSent, Fault::NotSent, Fault::LoseResponse] {
        gateway.platform.queue_fault(fault);
    }

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"], "it is not sent again");
    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.dossier(turn).await.deliveries[0].state, DeliveryState::Dead);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("it may have been accepted"), "{explained}");
    gateway.at_rest().await;
}

/// B8, B10. An answer that may have arrived is not replaced by another; one that certainly did not arrive is.
#[tokio::test]
async fn nothing_takes_the_place_of_an_old_answer_that_may_have_been_seen() {
    for (fault, expected) in [(Fault::LoseResponse, vec!["here"]), (Fault::NotSent, vec!["done"])] {
        let setup = GatewaySetup { delivery_lifetime: Duration::from_millis(500), ..GatewaySetup::new() };
        let script = Script::replies("done").taking(secs(1)).sending("here").taking(Duration::from_millis(10));
        let gateway = setup.always(script).start().await;
        let mut count = 0;
        let fault = fault.clone();
        gateway.platform.choose_faults(move |_| {
            count += 1;
            match count {
                1 | 2 => Some(Fault::NotSent),
                3 => Some(fault.clone()),
                _ => None,
            }
        });

        gateway.receives(said(&chat("ada"), "hello")).await;
        // The answer comes during the third attempt of the agent's own send.
        gateway.advance(HOUR).await;

        assert_eq!(gateway.visible(&chat("ada")), expected);
        gateway.at_rest().await;
    }
}

/// K2. A refused file costs neither the text nor the other files.
#[tokio::test]
async fn a_file_that_is_refused_leaves_the_words() {
    let file = |name: &str| Attachment {
        name: name.to_owned(),
        media_type: "image/png".to_owned(),
        url: format!("https://files.example/{name}"),
    };
    let mut reply = Reply::text("look");
    reply.attachments = vec![file("a.png"), file("b.png"), file("c.png")];
    let gateway = TestGateway::with(Script::answers(reply)).await;
    let is_file = |delivery: &Delivery| match delivery.action() {
        Action::Send { content, .. } => content.attachments.iter().any(|file| file.name != "b.png"),
        _ => false,
    };
    gateway.platform.choose_faults(move |delivery| is_file(delivery).then_some(Fault::Refuse));

    let turn = gateway.receives(said(&chat("ada"), "show me")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look", "a.png is not sent.", "", "c.png is not sent."]);
    let dossier = gateway.dossier(turn).await;
    assert!(dossier.deliveries.iter().all(|delivery| delivery.state == DeliveryState::Delivered));
    assert_eq!(dossier.attempts.iter().filter(|attempt| attempt.result.as_deref() == Some("refused")).count(), 2);
    gateway.at_rest().await;
}

/// The answer withdraws a deferral that waits for its next attempt.
#[tokio::test]
async fn a_deferral_that_was_tried_in_vain_gives_way_to_the_answer() {
    let gateway = TestGateway::with(Script::replies("done").taking(secs(25))).await;
    gateway.platform.choose_faults(|delivery| {
        (delivery.signal() == Some(rejoinder_core::SignalKind::Deferral)).then_some(Fault::NotSent)
    });

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(25)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.deliveries[0].state, DeliveryState::Withdrawn);
    assert!(dossier.deliveries[0].attempts > 0);
    gateway.at_rest().await;
}

/// B11. An outage changes no order, however long it is and whichever answer is tried first when it ends.
#[tokio::test]
async fn an_outage_changes_no_order() {
    for (minutes, recovers) in [(1, false), (7, false), (60, false), (60, true)] {
        let gateway =
            GatewaySetup::new().agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text)).start().await;
        gateway.intake().report_recovered();
        gateway.platform.set_down(true);
        for text in ["one", "two", "three", "four"] {
            gateway.receives(said(&chat("ada"), text)).await;
            gateway.advance(secs(minutes * 15)).await;
        }

        gateway.platform.set_down(false);
        if recovers {
            gateway.intake().report_recovered();
            gateway.settle().await;
        } else {
            gateway.advance(secs(900)).await;
        }

        assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three", "four"]);
        gateway.at_rest().await;
    }
}

/// The retries of a channel do not wait for the conversations of another one that hangs.
#[tokio::test]
async fn a_channel_that_hangs_starves_no_retry_of_another() {
    let other = ChannelId::new("other", "main");
    let mut setup = GatewaySetup::new().always(Script::replies("done"));
    setup.channels.push((other.clone(), capabilities()));
    setup.capabilities.resend = Resend::Idempotent;
    setup.slots = 1024;
    let gateway = setup.start().await;
    let there = ConversationRef::new(other, "bob");
    let mut limited = false;
    gateway.platform.choose_faults(move |delivery| {
        if delivery.channel().platform() == "test" {
            return Some(Fault::Hang);
        }
        (!std::mem::replace(&mut limited, true))
            .then(|| Fault::Limit { retry_after: secs(1), scope: Scope::Conversation })
    });
    for number in 0..400 {
        gateway.accepts(said(&chat(&format!("c{number}")), "hello")).await;
    }
    gateway.settle().await;
    gateway.receives(said(&there, "hello")).await;
    assert!(gateway.visible(&there).is_empty());

    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&there), ["done"]);
    gateway.platform.clear_faults();
    gateway.advance(secs(1800)).await;
    gateway.at_rest().await;
}
