//! Which node runs a channel and sends there, and does what must happen once.

use rejoinder_core::{
    Clock as _, Missed, NewSchedule, OperationError, Policy, ScheduleId, ScheduledAction, TurnId, When,
    conformance::scripted::{Fault, Script, ScriptedChannel},
    store::{AttemptEnd, BlockedScope, DeliveryChange, DeliveryState, LeaseName, Schedule, ScheduleChange, Transition},
};

use super::{MINUTE, QUARTER, beside, of_channel};
use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, main_channel, operator, other_node, policy, said, secs},
    life::Crash,
};

/// Says a text every quarter of an hour.
fn says(text: &str) -> NewSchedule {
    NewSchedule {
        name: text.to_owned(),
        when: When::Every(QUARTER),
        time_zone: "UTC".into(),
        to: chat("ada").to_string().parse().expect("a target"),
        action: ScheduledAction::Message(text.to_owned()),
        missed: Missed::Once,
    }
}

async fn adds(gateway: &TestGateway, text: &str) -> Schedule {
    gateway.engine().schedules().add(says(text), &operator("a test")).await.expect("it is made")
}

#[tokio::test]
async fn a_channel_receives_where_its_lease_is() {
    let gateway = beside(&[of_channel()]).await;
    gateway.platform.queue_event(said(&chat("ada"), "one"));
    gateway.advance(MINUTE).await;
    assert!(gateway.turns().await.is_empty());

    gateway.other_frees(&of_channel()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);

    gateway.other_has(&of_channel());
    gateway.advance(secs(5)).await;
    gateway.platform.queue_event(said(&chat("ada"), "two"));
    gateway.advance(MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"], "it receives no more");

    gateway.other_frees(&of_channel()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// The turn runs where it was accepted.
#[tokio::test]
async fn an_answer_is_sent_where_the_lease_of_its_channel_is() {
    let gateway = beside(&[of_channel()]).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(MINUTE).await;
    let dossier = gateway.dossier(turn).await;
    assert_eq!(
        dossier.deliveries.iter().map(|it| (it.state, it.attempts)).collect::<Vec<_>>(),
        [(DeliveryState::Pending, 0)]
    );

    gateway.other_frees(&of_channel()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// Another node was told of it.
#[tokio::test]
async fn the_limit_of_a_platform_holds_at_the_next_node_of_its_channel() {
    let gateway = beside(&[of_channel()]).await;
    let until = gateway.clock.now() + MINUTE;
    gateway.store.block(BlockedScope { channel: main_channel(), chat: None, until }).await.expect("it is stored");
    gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.other_frees(&of_channel()).await;
    assert!(gateway.is_limited());
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.advance(MINUTE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// What runs here is deferred here. What waits is for the node that has the channel.
#[tokio::test]
async fn a_node_acts_on_the_deadlines_of_its_runs_and_of_its_channels() {
    let setup = GatewaySetup { held_elsewhere: Some(vec![of_channel()]), ..GatewaySetup::new() };
    let gateway = setup.slots(1).always(Script::replies("done").taking(MINUTE)).start().await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let runs = gateway.receives(said(&chat("ada"), "one")).await;
    let waits = gateway.receives(said(&chat("bob"), "two")).await;
    let deliveries = async |turn| gateway.dossier(turn).await.deliveries.len();

    gateway.advance(SOFT_DEADLINE + secs(5)).await;
    assert_eq!((deliveries(runs).await, deliveries(waits).await), (1, 0));

    gateway.other_frees(&of_channel()).await;
    assert_eq!(deliveries(waits).await, 1);
    gateway.advance(3 * MINUTE).await;
    gateway.at_rest().await;
}

/// What is left of its attempt is recovered by the node that has the channel next: here by the same one.
#[tokio::test]
async fn a_call_ends_with_the_lease_of_its_channel_and_is_made_again() {
    let gateway = beside(&[]).await;
    gateway.platform.queue_fault(Fault::Hang);
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.leases().set_away(true);
    gateway.advance(secs(12)).await;
    assert_eq!(results(&gateway, turn).await, [(1, None)]);
    gateway.leases().set_away(false);
    gateway.advance(MINUTE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"], "before the call would have timed out");
    let expected = [(1, Some("unknown".to_owned())), (2, Some("delivered".to_owned()))];
    assert_eq!(results(&gateway, turn).await, expected);
    gateway.at_rest().await;
}

/// The number and the result of each attempt for a turn.
async fn results(gateway: &TestGateway, turn: TurnId) -> Vec<(u32, Option<String>)> {
    gateway.dossier(turn).await.attempts.into_iter().map(|it| (it.number, it.result)).collect()
}

/// The node has lost the channel, and does not know it yet.
#[tokio::test]
async fn an_attempt_does_not_begin_when_another_node_has_the_channel() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let gateway = setup.always(Script::replies("done").taking(secs(1))).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.other_has(&of_channel());
    gateway.advance(secs(1)).await;
    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.deliveries.iter().map(|it| it.state).collect::<Vec<_>>(), [DeliveryState::Pending]);
    assert!(dossier.attempts.is_empty() && gateway.visible(&chat("ada")).is_empty());

    gateway.other_frees(&of_channel()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// The node that has the channel by then finds an attempt with a result, and sends the rest.
#[tokio::test]
async fn a_receipt_is_stored_although_another_node_has_the_channel() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let gateway = beside(&[]).await;
    gateway.platform.hold(true);
    let turn = gateway.receives(said(&chat("ada"), &text)).await;

    gateway.other_has(&of_channel());
    gateway.platform.hold(false);
    gateway.settle().await;
    assert_eq!(results(&gateway, turn).await, [(1, Some("delivered".to_owned()))]);
    assert_eq!(gateway.visible(&chat("ada")), ["one"], "the others are sent by that node");

    gateway.other_frees(&of_channel()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// It has recovered the attempt, which had no result.
#[tokio::test]
async fn a_receipt_changes_nothing_that_another_node_has_decided() {
    let gateway = beside(&[]).await;
    gateway.platform.hold(true);
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let delivery = gateway.dossier(turn).await.deliveries.remove(0);

    gateway.other_has(&of_channel());
    let (delivery, change) =
        (delivery.id, DeliveryChange { state: DeliveryState::Pending, ..DeliveryChange::of(&delivery) });
    let (at, result) = (gateway.clock.now(), "unknown".to_owned());
    let attempts_ended = vec![AttemptEnd { delivery, number: 1, at, result, detail: None }];
    let recovered = Transition { attempts_ended, delivery_changes: vec![change], ..Transition::default() };
    gateway.store.commit(recovered).await.expect("it is stored");
    gateway.platform.hold(false);
    gateway.settle().await;
    assert_eq!(results(&gateway, turn).await, [(1, Some("unknown".to_owned()))]);

    gateway.other_frees(&of_channel()).await;
    let expected = [(1, Some("unknown".to_owned())), (2, Some("delivered".to_owned()))];
    assert_eq!(results(&gateway, turn).await, expected);
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// The node has lost that lease, and does not know it yet.
#[tokio::test]
async fn a_schedule_is_not_acted_on_when_another_node_does_it() {
    let gateway = beside(&[]).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(2)).await;
    adds(&gateway, "Good morning.").await;
    gateway.advance(QUARTER.saturating_sub(secs(1))).await;

    gateway.other_has(&LeaseName::Housekeeper);
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);

    gateway.other_frees(&LeaseName::Housekeeper).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "Good morning."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_must_happen_once_is_done_where_that_lease_is() {
    let gateway = beside(&[LeaseName::Housekeeper]).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    adds(&gateway, "Good morning.").await;

    gateway.advance(QUARTER + MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.other_frees(&LeaseName::Housekeeper).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "Good morning."]);

    gateway.other_has(&LeaseName::Housekeeper);
    gateway.advance(QUARTER * 3).await;
    assert_eq!(gateway.visible(&chat("ada")).len(), 2, "its loop has ended");
    gateway.other_frees(&LeaseName::Housekeeper).await;
    assert_eq!(gateway.visible(&chat("ada")).len(), 3, "it begins again");
    gateway.at_rest().await;
}

/// The gateway has read the schedules at its start, and another node changes them: before the gateway acts on any, or meanwhile.
#[rstest::rstest]
#[case::before(&[LeaseName::Housekeeper])]
#[case::meanwhile(&[])]
#[tokio::test]
async fn schedules_are_acted_on_as_other_nodes_have_left_them(#[case] held: &[LeaseName]) {
    let gateway = beside(held).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    let removed = adds(&gateway, "Good morning.").await;
    adds(&gateway, "Good night.").await;

    let made = Schedule { id: ScheduleId::new(gateway.clock.now()), new: says("Good evening."), ..removed };
    let schedules = vec![ScheduleChange::Removed(removed.id), ScheduleChange::Set(Box::new(made))];
    gateway.store.commit(Transition { schedules, ..Transition::default() }).await.expect("it is stored");
    gateway.advance(QUARTER).await;
    gateway.other_frees(&LeaseName::Housekeeper).await;

    let mut visible = gateway.visible(&chat("ada"));
    visible.sort();
    assert_eq!(visible, ["Good evening.", "Good night.", "hello"]);
    gateway.at_rest().await;
}

/// What its runs answer is sent by the node that has the channel: here by the next process.
#[tokio::test]
async fn a_gateway_that_stops_gives_its_channel_away_before_its_runs_have_ended() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let setup = setup.policy(Policy { soft_deadline: None, ..policy() });
    let mut gateway = setup.always(Script::replies("done").taking(MINUTE)).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.other_lives().await;

    let stopping = gateway.begin_stop(MINUTE * 2);
    gateway.settle().await;
    assert_eq!(gateway.leases().holder(&of_channel()), None);
    assert_eq!(gateway.leases().holder(&LeaseName::Housekeeper), None);
    gateway.advance(MINUTE).await;
    stopping.await.expect("stopping does not panic");
    assert!(gateway.visible(&chat("ada")).is_empty(), "it is not its channel");

    gateway.begin_life().await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_operator_has_a_node_give_its_channel_back_and_take_it_again() {
    let gateway = beside(&[]).await;
    let (node, by) = (gateway.engine().node(), operator("a test"));

    gateway.engine().administration().drain_node(node, true, by.clone()).await.expect("it is asked");
    gateway.settle().await;
    assert!(gateway.engine().is_draining() && !gateway.engine().runs_here(&main_channel()));
    assert_eq!(gateway.leases().holder(&of_channel()), None);
    gateway.platform.queue_event(said(&chat("ada"), "one"));
    gateway.advance(MINUTE).await;
    assert!(gateway.turns().await.is_empty(), "it takes none");

    gateway.engine().administration().drain_node(node, false, by.clone()).await.expect("it is asked");
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    let unknown = gateway.engine().administration().drain_node(other_node(), true, by).await;
    assert!(matches!(unknown, Err(OperationError::Unknown(_))), "{unknown:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_cannot_be_in_the_audit_is_not_done() {
    let gateway = beside(&[]).await;

    gateway.life.lose_at(1, Crash::Before);
    let drained = gateway.engine().administration().drain_node(gateway.engine().node(), true, operator("a test")).await;
    gateway.settle().await;

    assert!(drained.is_err(), "{drained:?}");
    assert!(!gateway.engine().is_draining() && gateway.engine().runs_here(&main_channel()));
    gateway.at_rest().await;
}

/// With one process there is nobody to give anything to.
#[tokio::test]
async fn a_gateway_that_is_alone_has_all_leases_and_is_not_drained() {
    let gateway = GatewaySetup::new().start().await;

    let nodes = gateway.engine().nodes().await.expect("it is known");
    let held: Vec<_> = nodes.iter().flat_map(|node| &node.leases).map(|(name, _)| name.clone()).collect();
    assert!(nodes.len() == 1 && nodes[0].node == gateway.engine().node(), "{nodes:?}");
    assert!(held.contains(&of_channel()) && held.contains(&LeaseName::Housekeeper), "{held:?}");

    let drained = gateway.engine().administration().drain_node(nodes[0].node, true, operator("a test")).await;
    assert!(matches!(drained, Err(OperationError::Unfit(_))), "{drained:?}");
    assert!(!gateway.engine().is_draining() && gateway.engine().runs_here(&main_channel()));
    gateway.at_rest().await;
}

/// A process that was killed holds its leases until they end, and one that stops gives them back.
#[tokio::test]
async fn the_next_process_has_the_leases_of_the_one_before() {
    let mut gateway = beside(&[]).await;
    gateway.restart().await;
    gateway.platform.queue_event(said(&chat("ada"), "one"));
    gateway.advance(secs(14)).await;
    assert!(gateway.turns().await.is_empty());
    gateway.advance(secs(6)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);

    gateway.stop(secs(20)).await;
    assert_eq!(gateway.leases().holder(&of_channel()), None);
    gateway.begin_life().await;
    gateway.platform.queue_event(said(&chat("ada"), "two"));
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}
