//! Marks: the reaction on a message that waits for its run.

use std::sync::Arc;

use rejoinder_core::{
    Action, Capabilities, QueueMode, Queues, Resend, Scope, Support,
    conformance::scripted::{Fault, Gate, Script, SeenDelivery},
    store::LeaseName,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, other_node, said, secs},
    life::Crash,
    nodes::waits_elsewhere,
};

/// A gateway that marks what waits, and whose agent takes 10 s.
fn setup(mode: QueueMode) -> GatewaySetup {
    let queues = Queues { mode, seen: Some("👀".to_owned()), ..Queues::default() };
    GatewaySetup { queues, ..GatewaySetup::new().always(Script::replies("done").taking(secs(10))) }
}

/// Which messages were marked and unmarked, in order.
fn marks(gateway: &TestGateway) -> Vec<(String, bool)> {
    let mark = |seen: SeenDelivery| match seen.action {
        Action::Mark { message, on, .. } => Some((message, on)),
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(mark).collect()
}

/// The messages whose mark is shown now, oldest first.
fn marked(gateway: &TestGateway) -> Vec<String> {
    let mut marked = Vec::new();
    for (message, on) in marks(gateway) {
        marked.retain(|one| *one != message);
        if on {
            marked.push(message);
        }
    }
    marked.sort_by_key(|message| (message.len(), message.clone()));
    marked
}

/// Receives messages, and returns their ids.
async fn receive(gateway: &TestGateway, texts: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for text in texts {
        let event = said(&chat("ada"), text);
        ids.extend(event.message_id.clone());
        gateway.receives(event).await;
    }
    ids
}

#[tokio::test]
async fn what_waits_is_marked_until_the_agent_begins_with_it() {
    let gateway = setup(QueueMode::Followup).start().await;
    let messages = receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(1)).await;
    assert!(marks(&gateway).is_empty(), "it may begin soon");
    gateway.advance(secs(2)).await;
    assert_eq!(marked(&gateway), messages[1..]);
    gateway.advance(secs(30)).await;

    let both = [true, false].map(|on| (messages[1].clone(), on));
    assert_eq!(marks(&gateway), both);
    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    gateway.at_rest().await;
}

/// What is answered together with another message waits no more when that one begins.
#[tokio::test]
async fn no_mark_stays_on_what_is_answered_together() {
    let gateway = setup(QueueMode::Collect).start().await;
    let messages = receive(&gateway, &["one"]).await;
    gateway.advance(secs(2)).await;
    let waiting = receive(&gateway, &["two", "three"]).await;
    gateway.advance(secs(5)).await;
    assert_eq!(marked(&gateway), waiting);
    gateway.advance(secs(40)).await;

    assert_eq!(marked(&gateway), [""; 0]);
    assert!(marks(&gateway).iter().all(|(message, _)| !messages.contains(message)), "the first did not wait");
    gateway.at_rest().await;
}

/// A flood costs no more than a few marks.
#[tokio::test]
async fn of_many_that_wait_the_first_are_marked() {
    let gateway = setup(QueueMode::Followup).start().await;
    let texts: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let messages = receive(&gateway, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    gateway.advance(secs(9)).await;

    assert_eq!(marked(&gateway), messages[1..6]);
    gateway.advance(secs(900)).await;
    assert_eq!(marked(&gateway), [""; 0]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn nothing_is_marked_where_the_platform_cannot_show_it() {
    let changes: [fn(&mut Capabilities); 2] =
        [|it| it.reactions = Support::Degraded, |it| it.allowed_reactions = Some(Arc::from(["👍".to_owned()]))];
    for change in changes {
        let gateway = setup(QueueMode::Followup).capable(change).start().await;
        receive(&gateway, &["one", "two"]).await;
        gateway.advance(secs(60)).await;

        assert_eq!(marks(&gateway), []);
        gateway.at_rest().await;
    }
}

/// A reaction that the agent chose replaces the mark on some platforms: a mark that could not be taken away in time stays.
#[tokio::test]
async fn a_reaction_that_answers_is_not_taken_away() {
    let queues = Queues { seen: Some("👀".to_owned()), ..Queues::default() };
    let gate = Gate::default();
    let release = gate.clone();
    let script = move |turn: &rejoinder_core::AgentTurn| match &*turn.message.text {
        "one" => Script::replies("done").waiting(&release),
        _ => Script::reacts("👍"),
    };
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().agent("main", script) }.start().await;
    receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(5)).await;
    assert_eq!(marked(&gateway).len(), 1);
    gateway.platform.hang_ephemerals(true);
    gate.open();
    gateway.settle().await;
    gateway.platform.hang_ephemerals(false);
    gateway.advance(secs(300)).await;

    assert!(marks(&gateway).iter().all(|(_, on)| *on), "{:?}", marks(&gateway));
    gateway.at_rest().await;
}

/// A mark that hangs delays no answer.
#[tokio::test]
async fn a_mark_that_hangs_delays_nothing() {
    let gateway = setup(QueueMode::Followup).start().await;
    gateway.platform.hang_ephemerals(true);
    receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    gateway.platform.hang_ephemerals(false);
    gateway.advance(secs(300)).await;
    gateway.at_rest().await;
}

/// The platform may perform a call that nobody waits for any more when the mark has been taken away already.
#[tokio::test]
async fn a_mark_that_may_come_late_is_taken_away_twice() {
    let gateway = setup(QueueMode::Followup).start().await;
    gateway.platform.hang_ephemerals(true);
    let messages = receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(9)).await;
    gateway.platform.hang_ephemerals(false);
    gateway.advance(secs(30)).await;

    assert_eq!(marks(&gateway), [false, false].map(|on| (messages[1].clone(), on)));
    gateway.at_rest().await;
}

/// Nothing is tried while the platform limits the account.
#[tokio::test]
async fn a_mark_that_a_limit_keeps_is_taken_away_soon_after_it() {
    let gateway = setup(QueueMode::Followup).start().await;
    gateway.receives(said(&chat("bob"), "zero")).await;
    gateway.advance(secs(3)).await;
    let messages = receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(5)).await;
    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(12), scope: Scope::Account });
    gateway.advance(secs(6)).await;
    assert!(gateway.is_limited());
    assert_eq!(marked(&gateway), messages[1..], "the agent has begun with it");

    gateway.advance(secs(13)).await;
    assert_eq!(marked(&gateway), [""; 0]);
    gateway.advance(secs(60)).await;
    gateway.at_rest().await;
}

/// A removal that the rate of the platform keeps back is no try: the limit lasts longer than all tries.
#[tokio::test]
async fn a_mark_that_a_long_limit_keeps_is_taken_away_soon_after_it() {
    let gateway = setup(QueueMode::Followup).start().await;
    gateway.receives(said(&chat("bob"), "zero")).await;
    gateway.advance(secs(3)).await;
    let messages = receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(5)).await;
    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(200), scope: Scope::Account });
    gateway.advance(secs(6)).await;
    gateway.advance(secs(180)).await;
    assert!(gateway.is_limited());
    assert_eq!(marked(&gateway), messages[1..], "the agent has begun with it");

    gateway.advance(secs(25)).await;
    assert_eq!(marked(&gateway), [""; 0]);
    gateway.advance(secs(60)).await;
    gateway.at_rest().await;
}

/// G3. Whatever write the process dies at, no mark is left on what was answered after it, nor on what was stopped.
#[tokio::test]
async fn no_mark_survives_its_turn_whenever_the_gateway_is_killed() {
    for crash in [Crash::Before, Crash::After] {
        for number in 1..40 {
            let mut gateway = setup(QueueMode::Followup).capable(|it| it.resend = Resend::Idempotent).start().await;
            let life = Arc::clone(&gateway.life);
            receive(&gateway, &["one", "two", "three"]).await;
            gateway.advance(secs(5)).await;
            assert_eq!(marked(&gateway).len(), 2);
            life.crash_at(number, crash);
            gateway.advance(secs(60)).await;
            if life.is_over() {
                gateway.restart().await;
            }
            gateway.advance(secs(600)).await;

            assert_eq!(marked(&gateway), [""; 0], "{crash:?} write {number}");
            gateway.at_rest().await;
            if !life.is_over() {
                assert!(number > 4, "three turns take more than {number} writes");
                break;
            }
        }
    }
}

/// The process ends while a mark cannot be taken away, and its turn has been answered.
#[tokio::test]
async fn a_mark_that_could_not_be_taken_away_goes_after_the_next_start() {
    let mut gateway = setup(QueueMode::Followup).capable(|it| it.resend = Resend::Idempotent).start().await;
    receive(&gateway, &["one", "two"]).await;
    gateway.advance(secs(5)).await;
    assert_eq!(marked(&gateway).len(), 1);
    gateway.platform.hang_ephemerals(true);
    gateway.advance(secs(21)).await;
    assert_eq!((gateway.visible(&chat("ada")).len(), marked(&gateway).len()), (2, 1));

    gateway.life.kill();
    gateway.restart().await;
    gateway.platform.hang_ephemerals(false);
    gateway.advance(secs(300)).await;

    assert_eq!(marked(&gateway), [""; 0]);
    gateway.at_rest().await;
}

/// Another node has accepted and marked it, and is lost. It began here before this node had the channel.
#[tokio::test]
async fn a_mark_of_a_lost_node_goes_when_its_message_is_answered() {
    let channel = LeaseName::Channel(main_channel());
    let setup = GatewaySetup { held_elsewhere: Some(vec![channel.clone()]), ..setup(QueueMode::Followup) };
    let gateway = setup.start().await;
    gateway.leases().live(other_node(), secs(60));
    let event = said(&chat("ada"), "one");
    let message = event.message_id.clone().expect("it has an id");
    gateway.advance(secs(5)).await;
    gateway.store.accept(vec![waits_elsewhere(event)], None).await.expect("it is accepted");
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);

    gateway.other_frees(&channel).await;
    assert!(gateway.visible(&chat("ada")).is_empty(), "the agent still works");
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert!(marks(&gateway).contains(&(message, false)), "{:?}", marks(&gateway));
    gateway.at_rest().await;
}
