//! What other nodes do is followed: at a hint, or within a second. The gateway is one node, and the test does what another one does.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::FutureExt;
use rejoinder_core::{
    Action, AgentTurn, CancelledBy, Clock as _, ConversationRef, Missed, NewSchedule, Policy, Queues, ScheduledAction,
    TurnId, When,
    conformance::scripted::{Script, ScriptedAgent, capabilities},
    store::{
        Commit, DeliveryChange, Hint, LeaseName, NodeReport, Noun, Pause, Removal, RunEnd, ScheduleChange, Transition,
        TurnChange,
    },
};
use rejoinder_guard::Event;
use rstest::rstest;

use crate::{
    drafts::showing,
    gateway::{GatewaySetup, TestGateway, chat, is_on_postgres, main_channel, operator, policy, said, secs},
    life::everywhere,
    nodes::runs_elsewhere,
};

const MINUTE: Duration = secs(60);

/// A gateway beside another node, which holds these leases.
fn beside(held: &[LeaseName]) -> GatewaySetup {
    GatewaySetup { held_elsewhere: Some(held.to_vec()), ..GatewaySetup::new() }
}

async fn other_commits(gateway: &TestGateway, transition: Transition) {
    assert_eq!(gateway.store.commit(transition).await.expect("it is stored"), Commit::Done);
}

/// The other node decides on an event of a turn.
async fn other_decides(gateway: &TestGateway, turn: TurnId, event: Event) {
    let turn = gateway.store.turn(turn).await.expect("turns are read").expect("it is there");
    let (mut obligation, at) = (turn.obligation.clone(), gateway.clock.now());
    let _ = obligation.on(event, &policy(), at);
    let change = TurnChange { turn: turn.id, expected: turn.version, obligation, at };
    other_commits(gateway, Transition { turns: vec![change], ..Transition::default() }).await;
}

fn cancelled() -> Event {
    Event::Cancelled { by: CancelledBy::Operator("a test".to_owned()) }
}

/// Tells the gateway of a change, or gives it the time to find out.
async fn finds_out(gateway: &TestGateway, is_told: bool, hint: Hint) {
    if is_told {
        gateway.hears(hint).await;
    } else {
        gateway.advance(secs(1)).await;
    }
}

fn drafts(gateway: &TestGateway) -> Vec<String> {
    let seen = gateway.platform.seen().into_iter();
    let drafts = seen.filter_map(|seen| if let Action::Draft { text, .. } = seen.action { Some(text) } else { None });
    drafts.collect()
}

/// Whether a mark was shown or taken away, in order.
fn marks(gateway: &TestGateway) -> Vec<bool> {
    let seen = gateway.platform.seen().into_iter();
    seen.filter_map(|seen| if let Action::Mark { on, .. } = seen.action { Some(on) } else { None }).collect()
}

#[rstest]
#[case::at_a_hint(true)]
#[case::by_looking(false)]
#[tokio::test]
async fn a_run_ends_whose_turn_was_cancelled_at_another_node(#[case] is_told: bool) {
    let gateway = beside(&[]).always(Script::replies("done").taking(MINUTE)).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    // There is another node.
    gateway.hears(Hint::Log).await;

    other_decides(&gateway, turn, cancelled()).await;
    finds_out(&gateway, is_told, Hint::Run(turn)).await;

    assert_eq!(gateway.dossier(turn).await.runs[0].end.as_deref(), Some("stopped"));
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.at_rest().await;
}

/// Somebody is forgotten at another node.
#[rstest]
#[case::at_a_hint(true)]
#[case::by_looking(false)]
#[tokio::test]
async fn a_run_ends_whose_turn_was_removed_at_another_node(#[case] is_told: bool) {
    let policy = Policy { soft_deadline: None, ..policy() };
    let setup = beside(&[]).slots(1).policy(policy).always(Script::replies("done").taking(MINUTE));
    let gateway = setup.start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.hears(Hint::Log).await;

    other_decides(&gateway, turn, cancelled()).await;
    gateway.store.remove(Removal::Turns(vec![turn])).await.expect("it is removed");
    assert!(gateway.store.turn(turn).await.expect("turns are read").is_none());
    finds_out(&gateway, is_told, Hint::Run(turn)).await;
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.agent("main").runs().len(), 2, "there is room for the next one");
    gateway.advance(MINUTE).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.at_rest().await;
}

/// Not before: the agent still works. On SQLite slots are in memory alone.
#[tokio::test]
async fn a_slot_is_free_once_the_run_has_ended_that_another_node_stopped() {
    let gateway = beside(&[]).always(Script::replies("done").taking(MINUTE)).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let conversation = gateway.store.turn(turn).await.expect("turns are read").expect("it is there").conversation;
    let slot = async || gateway.store.slot_of(conversation).await.expect("slots are read");
    // To the database, the gateway lives.
    let (node, name, version, now) = (gateway.engine().node(), String::new(), String::new(), gateway.clock.now());
    let (revision, draining) = (None, false);
    let (channels, agents, downs) = Default::default();
    let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
    gateway.store.heartbeat(&report, &[]).await.expect("it is written");

    other_decides(&gateway, turn, cancelled()).await;
    assert_eq!(slot().await, is_on_postgres().then_some(turn));
    gateway.hears(Hint::Run(turn)).await;

    assert_eq!(slot().await, None);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_run_goes_on_whose_turn_another_node_has_changed() {
    let gateway = beside(&[]).always(Script::replies("done").taking(secs(10))).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.hears(Hint::Log).await;

    other_decides(&gateway, turn, Event::Held).await;
    gateway.hears(Hint::Run(turn)).await;
    gateway.advance(secs(3)).await;
    assert_eq!(gateway.dossier(turn).await.runs[0].end, None);
    other_decides(&gateway, turn, Event::Resumed).await;
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

#[rstest]
#[case::at_a_hint(true)]
#[case::by_looking(false)]
#[tokio::test]
async fn who_waits_for_a_turn_is_told_of_its_end_at_another_node(#[case] is_told: bool) {
    let gateway = beside(&[]).always(Script::replies("done").taking(MINUTE)).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let mut watch = gateway.intake().watch(turn);
    gateway.hears(Hint::Log).await;
    let _ = watch.changed().now_or_never();

    other_decides(&gateway, turn, cancelled()).await;
    finds_out(&gateway, is_told, Hint::Turn(main_channel(), turn)).await;

    let view = watch.changed().now_or_never().expect("it is told");
    assert!(view.status.is_final(), "{view:?}");
    gateway.advance(secs(1)).await;
    gateway.at_rest().await;
}

#[rstest]
#[case::at_a_hint(true)]
#[case::by_looking(false)]
#[tokio::test]
async fn a_channel_is_paused_and_resumed_at_another_node(#[case] is_told: bool) {
    let gateway = beside(&[]).always(Script::replies("done")).start().await;
    gateway.hears(Hint::Log).await;
    let change = |pause| Transition { pause: Some((main_channel(), pause)), ..Transition::default() };
    let pause = Pause { since: gateway.clock.now(), by: "grace".to_owned(), reason: None };

    other_commits(&gateway, change(Some(pause.clone()))).await;
    finds_out(&gateway, is_told, Hint::Paused(main_channel())).await;
    assert_eq!(gateway.engine().paused(&main_channel()), Some(pause));
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(2)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());

    other_commits(&gateway, change(None)).await;
    finds_out(&gateway, is_told, Hint::Paused(main_channel())).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[rstest]
#[case::at_a_hint(true)]
#[case::by_looking(false)]
#[tokio::test]
async fn a_schedule_that_another_node_removed_is_gone(#[case] is_told: bool) {
    let gateway = beside(&[]).always(Script::replies("done")).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.hears(Hint::Log).await;
    let new = NewSchedule {
        name: "morning".to_owned(),
        when: When::Every(MINUTE * 30),
        time_zone: "UTC".into(),
        to: chat("ada").to_string().parse().expect("a target"),
        action: ScheduledAction::Message("Good morning.".to_owned()),
        missed: Missed::Once,
    };
    let made = gateway.engine().schedules().add(new, &operator("a test")).await.expect("it is made");

    let schedules = vec![ScheduleChange::Removed(made.id)];
    other_commits(&gateway, Transition { schedules, ..Transition::default() }).await;
    finds_out(&gateway, is_told, Hint::Noun(Noun::Schedules)).await;

    assert!(gateway.engine().calendar().seen_by(None).is_empty());
    gateway.at_rest().await;
}

/// This node was cut off, and another one took its run for crashed: the turn runs again, and its run that fails changes nothing.
#[tokio::test]
async fn a_run_that_fails_after_another_node_has_ended_it_costs_no_answer() {
    let setup = beside(&[]).agent("main", |turn: &AgentTurn| match turn.attempt {
        1 => Script::fails("the network is gone").taking(secs(10)),
        _ => Script::replies("done"),
    });
    let gateway = setup.start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let end = RunEnd::new(turn, 1, gateway.clock.now(), "crashed".to_owned(), None);
    other_commits(&gateway, Transition { runs_ended: vec![end], ..Transition::default() }).await;
    other_decides(&gateway, turn, Event::Recovered).await;
    gateway.advance(secs(11)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    let conversation = gateway.dossier(turn).await.turn.conversation;
    gateway.hears(Hint::Waiting("main".into(), conversation)).await;
    gateway.advance(MINUTE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let ends: Vec<_> = gateway.dossier(turn).await.runs.into_iter().filter_map(|run| run.end).collect();
    assert_eq!(ends, ["failed", "reply"]);
    gateway.at_rest().await;
}

/// This node was cut off before its agent was called, and has not heard since that another one has recovered the run: it may have run it.
#[tokio::test]
async fn a_run_that_waited_for_the_store_does_not_begin_if_another_node_has_recovered_it() {
    let mut setup = beside(&[]);
    let agent = |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).remembering(50);
    setup.agents.push(("main", Box::new(agent)));
    let gateway = setup.policy(Policy { soft_deadline: None, ..policy() }).start().await;
    gateway.receives(said(&chat("ada"), "before")).await;
    gateway.life.set_away(Some("transcript"));
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;

    let end = RunEnd::new(turn, 1, gateway.clock.now(), "crashed".to_owned(), None);
    other_commits(&gateway, Transition { runs_ended: vec![end], ..Transition::default() }).await;
    other_decides(&gateway, turn, Event::Recovered).await;
    gateway.life.set_away(None);
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    let conversation = gateway.dossier(turn).await.turn.conversation;
    gateway.hears(Hint::Waiting("main".into(), conversation)).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    let attempts: Vec<_> = gateway.agent("main").runs().iter().map(|run| run.turn.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    gateway.at_rest().await;
}

/// What the last other node does before it leaves is not lost with its hint.
#[tokio::test]
async fn a_node_looks_once_more_when_it_is_alone_again() {
    let gateway = beside(&[]).always(Script::replies("done")).start().await;
    gateway.hears(Hint::Log).await;
    gateway.advance(secs(15).saturating_sub(Duration::from_millis(1))).await;

    let pause = Pause { since: gateway.clock.now(), by: "grace".to_owned(), reason: None };
    let transition = Transition { pause: Some((main_channel(), Some(pause.clone()))), ..Transition::default() };
    other_commits(&gateway, transition).await;
    gateway.advance(secs(3)).await;

    assert_eq!(gateway.engine().paused(&main_channel()), Some(pause));
    gateway.at_rest().await;
}

/// The other node has the channel: it must open the lane.
#[tokio::test]
async fn the_holder_of_a_channel_is_told_what_to_send() {
    let gateway = beside(&[LeaseName::Channel(main_channel())]).always(Script::replies("done")).start().await;
    gateway.hears(Hint::Log).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let conversation = gateway.store.turn(turn).await.expect("turns are read").expect("it is there").conversation;
    let told = gateway.life.hints.told();
    assert!(told.contains(&Hint::Lane(main_channel(), conversation)), "{told:?}");

    gateway.other_frees(&LeaseName::Channel(main_channel())).await;
    drop(gateway.life.hints.told());
    gateway.receives(said(&chat("ada"), "again")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done", "done"]);
    let told = gateway.life.hints.told();
    assert!(!told.contains(&Hint::Lane(main_channel(), conversation)), "it sends itself: {told:?}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_gateway_that_is_alone_tells_nobody_anything() {
    let gateway = TestGateway::with(Script::replies("done")).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.life.hints.told(), []);
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_holder_of_a_channel_shows_what_a_run_of_another_node_says() {
    let gateway = beside(&[]).capable(showing).always(Script::replies("done")).start().await;
    let event = runs_elsewhere(said(&chat("ada"), "hello"));
    let turn = event.turn.as_ref().expect("it has a turn").id;
    gateway.store.accept(vec![event], None).await.expect("it is accepted");

    gateway.store.put_draft(turn, 1, Some("so")).await.expect("it is kept");
    gateway.hears(Hint::Draft(turn)).await;
    assert_eq!(drafts(&gateway), ["so"]);
    gateway.store.put_draft(turn, 1, Some("so far")).await.expect("it is kept");
    gateway.hears(Hint::Draft(turn)).await;
    gateway.advance(secs(1)).await;
    assert_eq!(drafts(&gateway), ["so", "so far"]);

    // Its turn is cancelled: nothing of it is shown any more.
    other_decides(&gateway, turn, cancelled()).await;
    let end = RunEnd::new(turn, 1, gateway.clock.now(), "stopped".to_owned(), None);
    other_commits(&gateway, Transition { runs_ended: vec![end], ..Transition::default() }).await;
    gateway.advance(secs(1)).await;
    gateway.store.put_draft(turn, 1, Some("too late")).await.expect("it is kept");
    gateway.hears(Hint::Draft(turn)).await;
    gateway.advance(secs(2)).await;
    assert_eq!(drafts(&gateway), ["so", "so far"]);
    gateway.at_rest().await;
}

/// Hints may be lost.
#[tokio::test]
async fn the_holder_of_a_channel_finds_what_a_run_of_another_node_says() {
    let gateway = beside(&[]).capable(showing).always(Script::replies("done")).start().await;
    gateway.hears(Hint::Log).await;
    let event = runs_elsewhere(said(&chat("ada"), "hello"));
    let turn = event.turn.as_ref().expect("it has a turn").id;
    gateway.store.accept(vec![event], None).await.expect("it is accepted");

    gateway.store.put_draft(turn, 1, Some("so")).await.expect("it is kept");
    gateway.advance(secs(1)).await;
    assert_eq!(drafts(&gateway), ["so"]);

    other_decides(&gateway, turn, cancelled()).await;
    let end = RunEnd::new(turn, 1, gateway.clock.now(), "stopped".to_owned(), None);
    other_commits(&gateway, Transition { runs_ended: vec![end], ..Transition::default() }).await;
    gateway.advance(MINUTE).await;
    assert_eq!(drafts(&gateway), ["so"], "once");
    gateway.at_rest().await;
}

/// Nobody tells the gateway.
#[tokio::test]
async fn the_mark_of_a_message_is_taken_away_whose_turn_another_node_has_ended() {
    let queues = Queues { seen: Some("👀".to_owned()), ..Queues::default() };
    let script = Script::replies("done").taking(secs(10));
    let gateway = GatewaySetup { queues, ..beside(&[]).always(script) }.start().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let turn = gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(secs(3)).await;
    assert_eq!(marks(&gateway), [true]);
    gateway.hears(Hint::Log).await;

    other_decides(&gateway, turn, cancelled()).await;
    gateway.advance(secs(2)).await;

    assert_eq!(marks(&gateway), [true, false]);
    gateway.advance(MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Where each node has the channel, the others show nothing of a run to nobody.
#[tokio::test]
async fn what_a_run_of_another_node_says_is_shown_to_who_is_connected_here() {
    let script = Script::replies("done");
    let mut capable = capabilities();
    showing(&mut capable);
    let setup = GatewaySetup { channels: vec![(everywhere(), capable)], ..beside(&[]).always(script) };
    let gateway = setup.start().await;
    gateway.hears(Hint::Log).await;
    let event = runs_elsewhere(said(&ConversationRef::new(everywhere(), "ada"), "hello"));
    let turn = event.turn.as_ref().expect("it has a turn").id;
    gateway.store.accept(vec![event], None).await.expect("it is accepted");

    gateway.store.put_draft(turn, 1, Some("so")).await.expect("it is kept");
    gateway.hears(Hint::Draft(turn)).await;
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.platform.seen(), [], "nobody sees it");

    gateway.life.is_watched.store(true, Ordering::Relaxed);
    gateway.advance(secs(1)).await;
    assert_eq!(drafts(&gateway), ["so"]);

    gateway.life.is_watched.store(false, Ordering::Relaxed);
    gateway.advance(secs(1)).await;
    gateway.store.put_draft(turn, 1, Some("so far")).await.expect("it is kept");
    gateway.hears(Hint::Draft(turn)).await;
    gateway.advance(secs(2)).await;
    assert_eq!(drafts(&gateway), ["so"]);

    other_decides(&gateway, turn, cancelled()).await;
    let end = RunEnd::new(turn, 1, gateway.clock.now(), "stopped".to_owned(), None);
    other_commits(&gateway, Transition { runs_ended: vec![end], ..Transition::default() }).await;
    gateway.at_rest().await;
}

/// The row says so to the holder, if the hint is lost.
#[tokio::test]
async fn what_another_node_is_to_try_is_due() {
    let of_channel = LeaseName::Channel(main_channel());
    let gateway = beside(std::slice::from_ref(&of_channel)).always(Script::replies("done")).start().await;
    gateway.hears(Hint::Log).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let waiting = gateway.dossier(turn).await.deliveries.remove(0);
    let change = DeliveryChange { next_attempt_at: gateway.clock.now() + MINUTE * 30, ..DeliveryChange::of(&waiting) };
    other_commits(&gateway, Transition { delivery_changes: vec![change], ..Transition::default() }).await;

    gateway.engine().operations().try_delivery(waiting.id, operator("a test")).await.expect("it is tried");

    assert_eq!(gateway.dossier(turn).await.deliveries[0].next_attempt_at, gateway.clock.now());
    let told = gateway.life.hints.told();
    assert!(told.iter().any(|hint| matches!(hint, Hint::Asked(_, _, asked) if *asked == waiting.id)), "{told:?}");
    gateway.other_frees(&of_channel).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Among what was lost may be that an operator has a channel tried.
#[tokio::test]
async fn what_waits_is_tried_after_hints_were_lost() {
    let gateway = beside(&[]).always(Script::replies("done")).start().await;
    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(MINUTE * 60).await;
    gateway.other_lives().await;
    gateway.advance(secs(5)).await;
    gateway.platform.set_down(false);

    gateway.hears(Hint::All).await;
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_a_run_says_is_kept_for_the_holder_of_its_channel() {
    let script = Script::replies("one two").streaming("one").taking(secs(2)).streaming(" two").taking(secs(2));
    let of_channel = LeaseName::Channel(main_channel());
    let gateway = beside(std::slice::from_ref(&of_channel)).capable(showing).always(script).start().await;
    gateway.hears(Hint::Log).await;
    let turn = gateway.receives(said(&chat("ada"), "count")).await;
    let kept = async || {
        let drafts = gateway.store.drafts(&[turn]).await.expect("drafts are read");
        drafts.into_iter().map(|draft| (draft.run, draft.text)).collect::<Vec<_>>()
    };

    gateway.advance(secs(1)).await;
    assert_eq!(kept().await, [(1, "one".to_owned())]);
    assert!(gateway.life.hints.told().contains(&Hint::Draft(turn)));
    gateway.advance(secs(2)).await;
    assert_eq!(kept().await, [(1, "one two".to_owned())]);
    gateway.advance(secs(2)).await;
    assert_eq!(kept().await, []);
    assert!(drafts(&gateway).is_empty(), "nothing is shown here");

    gateway.other_frees(&of_channel).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
    gateway.at_rest().await;
}
