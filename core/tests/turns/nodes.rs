//! Several nodes on one store. The gateway is one of them, and the test does what another one would do.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, ChannelId, Clock as _, ConversationId, ConversationRef, Directed, EventId, Expectation,
    Farewell, HandedOut, Handler, InboundEvent, Missed, NewSchedule, Obligation, OperationError, PersonLimits,
    PersonRole, Policy, Resend, ScheduleId, ScheduledAction, Sender, SessionId, StoredRuns, TurnId, When,
    conformance::scripted::{Fault, Script, ScriptedAgent, ScriptedChannel},
    store::{
        ApprovalFilter, AttemptEnd, BlockedScope, DeliveryChange, DeliveryState, Hint, LeaseName, NewEvent, NewTurn,
        NodeStore, RunStart, Schedule, ScheduleChange, SessionUse, Transition, WantedPermits,
    },
};
use rejoinder_guard::Event;

use crate::{
    approvals::person,
    gateway::{
        GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, comes_in, is_on_postgres, main_channel,
        operator, other_node, policy, said, secs,
    },
    life::Crash,
};

const MINUTE: Duration = secs(60);

const QUARTER: Duration = secs(900);

fn of_channel() -> LeaseName {
    LeaseName::Channel(main_channel())
}

/// A gateway whose agent says what it hears, while another node holds these leases.
async fn beside(held: &[LeaseName]) -> TestGateway {
    let setup = GatewaySetup { held_elsewhere: Some(held.to_vec()), ..GatewaySetup::new() };
    setup
        .capable(|it| it.resend = Resend::Idempotent)
        .policy(Policy { soft_deadline: None, ..policy() })
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text))
        .start()
        .await
}

/// A turn that another node has accepted, and that waits.
pub(crate) fn waits_elsewhere(event: InboundEvent) -> NewEvent {
    let at = event.received_at;
    let turn = NewTurn {
        id: TurnId::new(at),
        handler: Handler::Agent("main".into()),
        rule: None,
        obligation: Obligation::open(Expectation::Answer, &policy(), None, at),
        run: None,
        conversation: ConversationId::new(at),
        about: None,
        session: SessionUse::current(SessionId::new(at)),
        model: None,
        remark: None,
        repeats: None,
        day: None,
    };
    NewEvent { id: EventId::new(at), event: Arc::new(event), turn: Some(turn), only_if_known: false, files: Vec::new() }
}

/// A turn that another node has accepted and runs.
pub(crate) fn runs_elsewhere(event: InboundEvent) -> NewEvent {
    let at = event.received_at;
    let mut new = waits_elsewhere(event);
    let turn = new.turn.as_mut().expect("it has a turn");
    let _ = turn.obligation.on(Event::Begin, &policy(), at);
    turn.run = Some(RunStart { turn: turn.id, number: 1, handler: turn.handler.clone(), node: other_node(), at });
    new
}

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

/// Each read is a round trip to the database. If another turn had come behind it, there would have been a hint.
#[tokio::test]
async fn a_turn_that_another_node_has_accepted_is_read_once() {
    let gateway = beside(&[]).await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    let before = gateway.life.reads("next_waiting");

    let waits = waits_elsewhere(said(&chat("ada"), "one"));
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    gateway.hears(Hint::Waiting("main".into())).await;
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
        gateway.store.accept(vec![waits], None).await.expect("it is accepted");
        if text == "one" {
            gateway.hears(Hint::Waiting("main".into())).await;
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

/// The other one wants one of two permits. Of that this node learns with a heartbeat.
#[tokio::test]
async fn the_limit_of_an_agent_holds_over_all_nodes() {
    let setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let gateway = setup
        .policy(Policy { soft_deadline: None, ..policy() })
        .always(Script::replies("done").taking(MINUTE))
        .start()
        .await;
    let other_asks = async || {
        let wanted = WantedPermits { agent: "main".into(), held: 0, wanted: 1, limit: 2, has_worker: true };
        gateway.leases().permits(other_node(), &[wanted]).await.expect("permits are granted")[0].1
    };
    gateway.leases().live(other_node(), QUARTER);
    assert_eq!(other_asks().await, 0);
    gateway.advance(secs(10)).await;
    assert_eq!(other_asks().await, 1);

    for name in ["ada", "bob"] {
        gateway.receives(said(&chat(name), "hello")).await;
    }
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.leases().live(other_node(), Duration::ZERO);
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "it is alone");

    gateway.advance(MINUTE * 2).await;
    gateway.at_rest().await;
}

/// The workers of the agent ask the other one.
#[tokio::test]
async fn a_turn_is_left_to_the_node_at_which_the_agent_has_a_worker() {
    let mut setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let make = |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).without_worker();
    setup.agents.push(("main", Box::new(make)));
    let gateway = setup.policy(Policy { soft_deadline: None, ..policy() }).start().await;
    let (agent, held, wanted, limit, has_worker) = ("main".into(), 0, 0, 2, true);
    let wanted = [WantedPermits { agent, held, wanted, limit, has_worker }];
    gateway.leases().live(other_node(), MINUTE);
    gateway.leases().permits(other_node(), &wanted).await.expect("permits are granted");
    gateway.advance(secs(10)).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 0);
    gateway.leases().live(other_node(), Duration::ZERO);
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"], "no node has a worker");
    gateway.at_rest().await;
}

/// A gateway without a worker that has begun a turn, and hears then that another node has a worker.
async fn begun_before_another_node_has_a_worker(
    withdraws: bool,
    members: &'static [&'static str],
) -> (TestGateway, TurnId) {
    let mut setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let make = move |clock| {
        let asked = move || members.iter().fold(Script::replies("done"), |script, member| script.asking_member(member));
        let agent = ScriptedAgent::new(clock, move |_| asked().taking(MINUTE)).handing_out().without_worker();
        if withdraws { agent.withdrawing() } else { agent }
    };
    setup.agents.push(("main", Box::new(make)));
    let gateway = setup.policy(Policy { soft_deadline: None, ..policy() }).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);

    another_node_has_a_worker(&gateway).await;
    (gateway, turn)
}

/// Another node lives from now on, for a while, and has a worker.
async fn another_node_has_a_worker(gateway: &TestGateway) {
    let (agent, held, wanted, limit, has_worker) = ("main".into(), 0, 0, 2, true);
    let wanted = [WantedPermits { agent, held, wanted, limit, has_worker }];
    gateway.leases().live(other_node(), MINUTE);
    gateway.leases().permits(other_node(), &wanted).await.expect("permits are granted");
    gateway.advance(secs(10)).await;
}

/// Its turn waits for the other node, which is lost here.
#[tokio::test]
async fn a_run_that_no_worker_has_had_is_left_to_the_node_with_one() {
    let (gateway, turn) = begun_before_another_node_has_a_worker(true, &["fleet"]).await;

    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.runs.iter().map(|run| run.end.as_deref()).collect::<Vec<_>>(), [Some("interrupted")]);
    assert_eq!(gateway.store.slot_of(dossier.turn.conversation).await.expect("it is read"), None);
    gateway.leases().live(other_node(), Duration::ZERO);
    gateway.advance(secs(10)).await;
    let attempts: Vec<_> = gateway.agent("main").runs().iter().map(|run| run.turn.attempt).collect();
    assert_eq!(attempts, [1, 2]);
    gateway.advance(MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Nobody has acted on the approval.
#[tokio::test]
async fn an_approval_is_left_to_the_node_with_a_worker() {
    let mut setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let script = |turn: &AgentTurn| match turn.past.approvals.last() {
        None => Script::asks_approval("pay the rent", None),
        Some(last) => Script::replies(if last.is_used { "may be paid" } else { "paid" }).taking(MINUTE),
    };
    let make = move |clock| ScriptedAgent::new(clock, script).without_worker().withdrawing();
    setup.agents.push(("main", Box::new(make)));
    setup.people = vec![person("Grace", PersonRole::Owner)];
    let setup = setup.capable(|it| it.resend = Resend::Idempotent);
    let gateway = setup.policy(Policy { soft_deadline: None, ..policy() }).start().await;
    gateway.receives(said(&chat("ada"), "pay")).await;
    gateway.advance(secs(10)).await;
    let approvals = gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable");
    let [approval] = &approvals[..] else { panic!("one waits") };
    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "it has the approval");

    another_node_has_a_worker(&gateway).await;
    gateway.leases().live(other_node(), Duration::ZERO);
    gateway.advance(MINUTE * 2).await;

    assert_eq!(gateway.agent("main").runs().len(), 3);
    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    gateway.at_rest().await;
}

/// The worker asks seldom, now at one node and now at the other: the run waits at one of them until the worker asks there again.
#[tokio::test]
async fn a_run_is_left_to_another_node_once() {
    let (gateway, turn) = begun_before_another_node_has_a_worker(true, &[]).await;
    gateway.leases().live(other_node(), Duration::ZERO);
    gateway.advance(secs(10)).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "the other one has left it to this one");

    another_node_has_a_worker(&gateway).await;

    let runs = gateway.dossier(turn).await.runs;
    assert_eq!(runs.iter().map(|run| run.end.as_deref()).collect::<Vec<_>>(), [Some("interrupted"), None]);
    gateway.advance(MINUTE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// The second case is a cascade, whose first member has failed: it may have acted, and is not asked anew.
#[rstest::rstest]
#[case::has_it(false, &[])]
#[case::of_the_second_member(true, &["main", "fleet"])]
#[tokio::test]
async fn a_run_that_somebody_has_had_is_not_left_to_another_node(
    #[case] withdraws: bool,
    #[case] members: &'static [&'static str],
) {
    let (gateway, turn) = begun_before_another_node_has_a_worker(withdraws, members).await;

    gateway.advance(MINUTE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.dossier(turn).await.runs.len(), 1);
    gateway.at_rest().await;
}

/// The gateway has turns of no agent, and looks for some each second.
#[tokio::test]
async fn an_idle_node_leaves_another_one_its_permit() {
    let setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 1)].into(),
        ..GatewaySetup::new()
    };
    let gateway = setup.always(Script::replies("done")).start().await;
    let other_asks = async |held: u32, wanted: u32| {
        let wanted = WantedPermits { agent: "main".into(), held, wanted, limit: 1, has_worker: true };
        gateway.leases().permits(other_node(), &[wanted]).await.expect("permits are granted")[0].1
    };
    gateway.leases().live(other_node(), QUARTER);
    other_asks(0, 1).await;
    gateway.advance(secs(10)).await;
    assert_eq!(other_asks(0, 1).await, 1);

    for _ in 0..20 {
        gateway.advance(secs(1)).await;
        assert_eq!(other_asks(1, 0).await, 1);
    }
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(2)).await;
    assert_eq!(other_asks(1, 0).await, 0, "it has a turn that waits");
    other_asks(0, 0).await;
    gateway.advance(secs(2)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// What its last runs do not need, others have.
#[tokio::test]
async fn a_gateway_that_stops_gives_its_permits_up_before_its_runs_have_ended() {
    let setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 3)].into(),
        ..GatewaySetup::new()
    };
    let setup = setup.policy(Policy { soft_deadline: None, ..policy() });
    let mut gateway = setup.always(Script::replies("done").taking(MINUTE)).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.other_lives().await;

    let stopping = gateway.begin_stop(MINUTE * 2);
    gateway.advance(secs(2)).await;
    let wanted = WantedPermits { agent: "main".into(), held: 0, wanted: 3, limit: 3, has_worker: true };
    let granted = gateway.leases().permits(other_node(), &[wanted]).await.expect("permits are granted");
    assert_eq!(granted[0].1, 2);
    gateway.advance(MINUTE).await;
    stopping.await.expect("stopping does not panic");

    gateway.begin_life().await;
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
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
