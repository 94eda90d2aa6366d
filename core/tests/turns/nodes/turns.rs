//! Turns that another node accepts, runs or leaves.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, ChannelId, Clock as _, ConversationRef, Directed, Farewell, HandedOut, Handler, Heard,
    InboundEvent, PersonLimits, Policy, Sender, StoredRuns, Voice,
    conformance::scripted::{Script, ScriptedAgent, ScriptedTranscriber},
    store::{DeliveryState, Hint},
};

use super::{MINUTE, QUARTER, beside, hint_of, of_channel, runs_elsewhere, waits_elsewhere};
use crate::{
    gateway::{
        GatewaySetup, HARD_DEADLINE, chat, comes_in, is_on_postgres, main_channel, operator, other_node, policy, said,
        secs,
    },
    voice::spoken,
};

/// D1. No node starts for it.
#[tokio::test]
async fn a_run_that_another_node_left_is_recovered() {
    let gateway = beside(&[]).await;

    let left = runs_elsewhere(said(&chat("ada"), "hello"));
    gateway.store.accept(vec![left], None).await.expect("it is accepted");
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    let runs = gateway.agent("main").runs();
    assert_eq!(runs.iter().map(|run| run.turn.attempt).collect::<Vec<_>>(), [2]);
    gateway.at_rest().await;
}

/// A node asks this about a lease that it did not give.
#[tokio::test]
async fn a_run_of_another_node_may_go_on_until_it_has_ended() {
    let mut setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let make = |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).with_members(&["fleet"]);
    setup.agents.push(("main", Box::new(make)));
    let gateway = setup.start().await;
    let runs = StoredRuns::new(gateway.store.clone(), gateway.engine().runtimes());
    let left = runs_elsewhere(said(&chat("ada"), "hello"));
    let turn = left.turn.as_ref().expect("it has a turn").id;
    let may_go_on = async || {
        let mut answers = Vec::new();
        for agent in ["main", "fleet", "other"] {
            answers.push(runs.may_go_on(&agent.into(), turn).await.expect("it is read"));
        }
        answers
    };
    assert_eq!(may_go_on().await, [false; 3], "there is no such turn");

    gateway.store.accept(vec![left], None).await.expect("it is accepted");
    assert_eq!(may_go_on().await, [true, true, false]);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(may_go_on().await, [false; 3]);
    gateway.at_rest().await;
}

/// The agent may be a cascade there.
#[tokio::test]
async fn a_run_of_an_agent_that_only_another_node_has_may_be_that_of_any_member() {
    let gateway = beside(&[]).await;
    let runs = StoredRuns::new(gateway.store.clone(), gateway.engine().runtimes());
    let mut left = runs_elsewhere(said(&chat("ada"), "hello"));
    let turn = left.turn.as_mut().expect("it has a turn");
    turn.handler = Handler::Agent("there".into());
    turn.run.as_mut().expect("it runs").handler = turn.handler.clone();
    let id = turn.id;
    let may_go_on = async || runs.may_go_on(&"fleet".into(), id).await.expect("it is read");

    gateway.store.accept(vec![left], None).await.expect("it is accepted");
    assert!(may_go_on().await);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    assert!(!may_go_on().await);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_that_another_node_has_accepted_runs_here_within_a_second() {
    let gateway = beside(&[]).await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;

    let waits = waits_elsewhere(said(&chat("ada"), "hello"));
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    gateway.settle().await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// Not each node can fetch the recording.
#[tokio::test]
async fn a_voice_note_is_written_down_at_the_node_that_runs_its_channel() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["hello"]));
    let setup = GatewaySetup {
        held_elsewhere: Some(vec![of_channel()]),
        transcriber: Some(Arc::clone(&transcriber)),
        ..GatewaySetup::new()
    };
    let setup = setup.policy(Policy { soft_deadline: None, ..policy() });
    let gateway = setup.agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text)).start().await;
    gateway.life.files.open();
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let voice = Some(Voice { heard: Heard::Awaited, ..Voice::lasting(Some(3.0)) });
    let waits = waits_elsewhere(InboundEvent { voice, ..spoken() });
    let turn = waits.turn.as_ref().expect("it has a turn").id;
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");

    gateway.advance(secs(10)).await;
    assert_eq!((transcriber.recordings(), gateway.agent("main").runs().len()), (0, 0));
    assert!(
        gateway.life.hints.told().contains(&Hint::Words(main_channel(), turn)),
        "that node may not look for the turn"
    );
    gateway.other_frees(&of_channel()).await;
    gateway.advance(secs(2)).await;

    assert_eq!((transcriber.recordings(), gateway.visible(&chat("ada"))), (1, vec!["hello".to_owned()]));
    gateway.at_rest().await;
}

/// D1. The node that had the channel was killed while it had the recording written down, and the agent is elsewhere.
#[tokio::test]
async fn a_voice_note_for_an_agent_that_only_another_node_has_is_written_down_here() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["hello"]));
    let setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        transcriber: Some(Arc::clone(&transcriber)),
        ..GatewaySetup::new()
    };
    let setup = setup.policy(Policy { soft_deadline: None, ..policy() });
    let gateway = setup.agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text)).start().await;
    gateway.life.files.open();
    gateway.other_lives_with(&[main_channel()], &["helper"]).await;
    gateway.advance(secs(10)).await;
    let voice = Some(Voice { heard: Heard::Awaited, ..Voice::lasting(Some(3.0)) });
    let mut waits = waits_elsewhere(InboundEvent { voice, ..spoken() });
    let turn = waits.turn.as_mut().expect("it has a turn");
    turn.handler = Handler::Agent("helper".into());
    let id = turn.id;
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    gateway.other_lives_with(&[main_channel()], &["helper"]).await;

    gateway.hears(Hint::Words(main_channel(), id)).await;

    let event = gateway.dossier(id).await.turn.event;
    assert_eq!((transcriber.recordings(), &*event.text), (1, "hello"));
    assert!(gateway.agent("main").runs().is_empty(), "the other node runs it");
    gateway.advance(MINUTE * 2).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"], "the other node is gone");
    gateway.at_rest().await;
}

/// Each read is a round trip to the database. If another turn had come behind it, there would have been a hint.
#[tokio::test]
async fn a_turn_that_another_node_has_accepted_is_read_once() {
    let gateway = beside(&[]).await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let before = gateway.life.reads("next_waiting");

    let waits = waits_elsewhere(said(&chat("ada"), "one"));
    let hint = hint_of(&waits);
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    gateway.hears(hint).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert_eq!(gateway.life.reads("next_waiting") - before, 1);

    gateway.at_rest().await;
}

/// No hint tells of the second one. It waits in the store alone while the first one runs here.
#[tokio::test]
async fn what_another_node_accepts_behind_a_turn_that_runs_here_is_found_within_a_second() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let script = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(Duration::from_millis(500));
    let gateway = setup.agent("main", script).start().await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    for text in ["one", "two"] {
        let waits = waits_elsewhere(said(&chat("ada"), text));
        let hint = hint_of(&waits);
        gateway.store.accept(vec![waits], None).await.expect("it is accepted");
        if text == "one" {
            gateway.hears(hint).await;
        }
    }

    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// It has been in memory since it was accepted here, and nothing waits behind it.
#[tokio::test]
async fn a_turn_that_waits_where_it_was_accepted_is_not_read_again() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let policy = Policy { soft_deadline: None, ..policy() };
    let script = Script::replies("done").taking(Duration::from_millis(1_500));
    let gateway = setup.slots(1).policy(policy).always(script).start().await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("bob"), "two")).await;
    let reads = || ["arrival", "next_waiting"].map(|method| gateway.life.reads(method));
    let before = reads();

    gateway.advance(secs(4)).await;

    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    assert_eq!(reads(), before);
    gateway.at_rest().await;
}

/// The other one came first, but not by much.
#[tokio::test]
async fn of_the_turns_that_wait_a_node_begins_first_what_it_has_accepted() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let script = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(Duration::from_millis(1_500));
    let gateway = setup.slots(1).agent("main", script).start().await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let by = |name: &str| {
        let event = said(&chat(name), name);
        InboundEvent { sender: Sender { id: name.to_owned(), ..event.sender.clone() }, ..event }
    };
    gateway.receives(by("ada")).await;
    gateway.store.accept(vec![waits_elsewhere(by("bob"))], None).await.expect("it is accepted");
    gateway.receives(by("cid")).await;

    gateway.advance(secs(10)).await;

    let runs = gateway.agent("main").runs();
    assert_eq!(runs.iter().map(|run| &*run.turn.message.text).collect::<Vec<_>>(), ["ada", "cid", "bob"]);
    gateway.at_rest().await;
}

/// Each look is a round trip to the database.
#[tokio::test]
async fn an_event_looks_its_conversation_up_once() {
    let gateway = beside(&[]).await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let before = gateway.life.reads("arrival");

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.life.reads("arrival") - before, 1);
    gateway.at_rest().await;
}

/// The other node recovers the run and ends overdue turns. Once it is gone, they wait until a node has the channel again.
#[tokio::test]
async fn turns_of_a_channel_that_only_another_node_has_are_left_to_it() {
    let gateway = beside(&[]).await;
    let elsewhere = ChannelId::new("gone", "main");
    let other_goes_on = async |time: Duration| {
        for _ in 0..time.as_secs().div_ceil(10) {
            gateway.other_lives_with(std::slice::from_ref(&elsewhere), &[]).await;
            gateway.advance(secs(10)).await;
        }
    };
    let there = |name: &str| ConversationRef::new(elsewhere.clone(), name);
    let all = vec![waits_elsewhere(said(&there("ada"), "one")), runs_elsewhere(said(&there("bob"), "two"))];
    let turns: Vec<_> = all.iter().map(|new| new.turn.as_ref().expect("it has a turn").id).collect();
    let look = async || {
        let mut seen = Vec::new();
        for turn in &turns {
            let dossier = gateway.dossier(*turn).await;
            seen.push((dossier.turn.version, dossier.runs.len(), dossier.absent));
        }
        seen
    };
    gateway.other_lives_with(std::slice::from_ref(&elsewhere), &[]).await;
    gateway.store.accept(all, None).await.expect("they are accepted");
    let accepted = look().await;

    other_goes_on(HARD_DEADLINE + MINUTE * 3).await;
    assert_eq!(look().await, accepted);
    assert!(gateway.agent("main").runs().is_empty());

    gateway.advance(MINUTE * 4).await;
    let absent = accepted.iter().map(|(version, runs, _)| (*version, *runs, true)).collect::<Vec<_>>();
    assert_eq!(look().await, absent);
    other_goes_on(MINUTE * 3).await;
    assert_eq!(look().await, accepted);
    gateway.end_owing();
}

/// An operator has asked a node that cannot send it.
#[tokio::test]
async fn what_is_to_be_sent_on_a_channel_that_only_another_node_has_is_left_to_it() {
    let gateway = beside(&[]).await;
    let waits = waits_elsewhere(said(&ConversationRef::new(ChannelId::new("gone", "main"), "ada"), "hello"));
    let turn = waits.turn.as_ref().expect("it has a turn").id;
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    let cancelled = gateway.engine().operations().cancel(turn, Farewell::Template, operator("a test")).await;
    cancelled.expect("it is cancelled");

    let now = gateway.clock.now();
    gateway.advance(MINUTE).await;

    let deliveries = gateway.dossier(turn).await.deliveries;
    let waiting: Vec<_> = deliveries.iter().map(|it| (it.state, it.attempts, it.next_attempt_at <= now)).collect();
    assert_eq!(waiting, [(DeliveryState::Pending, 0, true)]);
    gateway.end_owing();
}

#[tokio::test]
async fn a_turn_is_rerouted_when_no_node_has_its_agent() {
    let gateway = beside(&[]).await;
    let other_goes_on = async || {
        gateway.other_lives_with(&[main_channel()], &["helper"]).await;
        gateway.advance(secs(10)).await;
    };
    other_goes_on().await;
    let mut waits = waits_elsewhere(said(&chat("ada"), "hello"));
    waits.turn.as_mut().expect("it has a turn").handler = Handler::Agent("helper".into());
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");

    for _ in 0..6 {
        other_goes_on().await;
    }
    assert!(gateway.agent("main").runs().is_empty());

    gateway.advance(MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// D1. On SQLite there is no other node, and no row that decides it.
#[tokio::test]
async fn a_message_waits_for_the_run_of_another_node_in_its_conversation() {
    let gateway = beside(&[]).await;
    let left = runs_elsewhere(said(&chat("ada"), "one"));
    gateway.store.accept(vec![left], None).await.expect("it is accepted");
    if is_on_postgres() {
        gateway.receives(said(&chat("ada"), "two")).await;
        gateway.receives(said(&chat("bob"), "three")).await;
        assert_eq!(gateway.agent("main").runs().len(), 1, "elsewhere it runs at once");
        assert_eq!(gateway.visible(&chat("bob")), ["three"]);
        gateway.advance(MINUTE).await;
        assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    }
    gateway.advance(MINUTE).await;
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_runs_here_is_not_recovered() {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let gateway = setup.always(Script::replies("done").taking(MINUTE)).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(MINUTE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// This node has read before what she has used of the day.
#[tokio::test]
async fn what_other_nodes_accept_counts_for_the_day() {
    const DAY: i64 = 24 * 3600 * 1000;
    let mut setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    setup.limits = PersonLimits { turns_per_day: Some(3), ..PersonLimits::default() };
    let gateway = setup.always(Script::replies("done")).start().await;
    gateway.other_lives().await;
    gateway.advance(secs(5)).await;
    let asks = async |text| {
        let received_at = gateway.clock.now();
        comes_in(&gateway, InboundEvent { received_at, directed: Directed::Asked, ..said(&chat("ada"), text) }).await
    };
    assert!(matches!(asks("one").await, Accepted::Turn(_)));

    for text in ["two", "three"] {
        let mut elsewhere =
            runs_elsewhere(InboundEvent { received_at: gateway.clock.now(), ..said(&chat(text), text) });
        let turn = elsewhere.turn.as_mut().expect("it opens a turn");
        turn.day = Some(gateway.clock.now().as_millis().div_euclid(DAY));
        gateway.store.accept(vec![elsewhere], None).await.expect("it is accepted");
    }

    assert!(matches!(asks("four").await, Accepted::Limited { .. }));
    gateway.advance(MINUTE).await;
    assert_eq!([chat("two"), chat("three")].map(|chat| gateway.visible(&chat)), [["done"], ["done"]]);
    gateway.at_rest().await;
}
