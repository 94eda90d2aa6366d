//! Agents with a memory of their own are told what happens to their sessions, and get their own ids of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rejoinder_core::{
    AgentTurn, Capabilities, Clock as _, InboundEvent, Lifetimes, Missed, NewSchedule, PersonRole, PromptSession,
    Resend, ScheduledAction, SessionNotice, SessionNoticeChange as Change, SessionReset, SessionSettings, TurnId, When,
    Words,
    conformance::scripted::{Gate, Script, ScriptedAgent, capabilities},
    store::{ApprovalFilter, Cutoffs},
};

use crate::{
    approvals::person,
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, operator, secs},
    life::{at_every_write, comes_in_dying},
    linking::{identity, other_channel, says, there},
    sessions::told,
};

const DAY: Duration = Duration::from_hours(24);

/// The agent names each session after the first words that it is given in it.
pub(crate) fn names_it(turn: &AgentTurn) -> Script {
    let script = Script::replies(&format!("{} {:?}", turn.message.text, turn.place.own_session));
    if turn.place.own_session.is_some() { script } else { script.naming_session(&format!("own-{}", turn.message.text)) }
}

fn with(director: impl Fn(&AgentTurn) -> Script + Clone + Send + Sync + 'static) -> GatewaySetup {
    let mut setup = GatewaySetup::new();
    setup.capabilities = Capabilities { resend: Resend::Idempotent, ..capabilities() };
    let make = move |clock| ScriptedAgent::new(clock, director.clone()).keeping_sessions();
    setup.agents.push(("main", Box::new(make)));
    setup
}

fn keeping() -> GatewaySetup {
    with(names_it)
}

pub(crate) async fn ada(gateway: &TestGateway, text: &str) -> String {
    told(gateway, says(&chat("ada"), text)).await
}

/// What happened to the sessions, with the agent's own ids, as far as the agent was told.
fn noticed(gateway: &TestGateway) -> Vec<(String, Change)> {
    let notices = gateway.agent("main").notices().into_iter();
    notices.map(|SessionNotice { own_session, change, .. }| (own_session.unwrap_or_default(), change)).collect()
}

fn notice(own_session: &str, change: Change) -> (String, Change) {
    (own_session.to_owned(), change)
}

/// The numbers of sessions that are kept, and of notices that are owed.
async fn rows(gateway: &TestGateway) -> (u64, u64) {
    let cutoffs = Cutoffs::at(gateway.clock.now(), &gateway.settings().lifetimes);
    let rows = gateway.store.stats(&cutoffs).await.expect("readable").rows;
    (rows["agent_sessions"], rows["agent_notices"])
}

pub(crate) fn turn_of(gateway: &TestGateway, text: &str) -> TurnId {
    let turns = gateway.agent("main").turns();
    turns.into_iter().find(|(_, said)| said == text).expect("it was asked").0
}

#[tokio::test]
async fn an_agent_gets_its_own_id_of_a_session_also_after_a_restart() {
    let mut gateway = keeping().start().await;
    assert_eq!(ada(&gateway, "one").await, "one None");
    assert_eq!(ada(&gateway, "two").await, "two Some(\"own-one\")");
    gateway.restart().await;
    assert_eq!(ada(&gateway, "three").await, "three Some(\"own-one\")");
    assert_eq!(told(&gateway, says(&chat("bob"), "else")).await, "else None");
    assert_eq!(noticed(&gateway), []);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_is_told_once_of_each_change_of_a_session() {
    let gateway = keeping().start().await;
    ada(&gateway, "one").await;
    ada(&gateway, "two").await;
    ada(&gateway, "/undo").await;
    let mut expected = vec![notice("own-one", Change::TurnRemoved(turn_of(&gateway, "two")))];
    assert_eq!(noticed(&gateway), expected);

    assert_eq!(ada(&gateway, "/retry").await, "one Some(\"own-one\")");
    expected.push(notice("own-one", Change::TurnRemoved(turn_of(&gateway, "one"))));
    assert_eq!(noticed(&gateway), expected);

    ada(&gateway, "/new").await;
    expected.push(notice("own-one", Change::Left));
    assert_eq!(noticed(&gateway), expected);

    assert_eq!(ada(&gateway, "three").await, "three None");
    ada(&gateway, "/session use 1").await;
    expected.push(notice("own-three", Change::Left));
    assert_eq!(ada(&gateway, "four").await, "four Some(\"own-one\")");
    ada(&gateway, "/session delete 2").await;
    expected.push(notice("own-three", Change::Deleted));
    assert_eq!(rows(&gateway).await, (1, 0));
    ada(&gateway, "/session delete 1").await;
    expected.push(notice("own-one", Change::Deleted));
    gateway.advance(DAY).await;

    assert_eq!(noticed(&gateway), expected);
    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}

/// An agent that cannot take out one turn gets no id of a session in which the turn still is.
#[tokio::test]
async fn what_an_agent_calls_a_session_is_forgotten_with_a_turn_that_it_cannot_forget() {
    let mut setup = keeping();
    let make = |clock| ScriptedAgent::new(clock, names_it).keeping_whole_sessions();
    setup.agents = vec![("main", Box::new(make))];
    let mut gateway = setup.start().await;
    for text in ["one", "two", "/undo"] {
        ada(&gateway, text).await;
    }
    gateway.restart().await;

    assert_eq!(ada(&gateway, "three").await, "three None");
    assert_eq!(ada(&gateway, "four").await, "four Some(\"own-three\")");
    gateway.at_rest().await;
}

/// The next turn does not go to the session before the agent has forgotten it.
#[tokio::test]
async fn a_turn_right_after_an_undo_gets_no_session_with_the_removed_turn() {
    for fails in [false, true] {
        let mut setup = keeping();
        let make = |clock| ScriptedAgent::new(clock, names_it).keeping_whole_sessions().taking_for_notices(secs(10));
        setup.agents = vec![("main", Box::new(make))];
        let gateway = setup.start().await;
        gateway.agent("main").fail_notices(fails);
        for text in ["one", "two", "/undo"] {
            ada(&gateway, text).await;
        }

        gateway.accepts(says(&chat("ada"), "three")).await;
        gateway.advance(secs(60)).await;
        assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("three None"), "{fails}");

        gateway.agent("main").fail_notices(false);
        gateway.advance(DAY).await;
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn an_agent_is_told_that_a_session_ended_by_itself() {
    let mut setup = keeping();
    setup.sessions =
        SessionSettings { reset: SessionReset::Idle(Duration::from_hours(1)), ..SessionSettings::default() };
    let gateway = setup.start().await;
    ada(&gateway, "one").await;
    gateway.advance(Duration::from_hours(2)).await;
    assert_eq!(ada(&gateway, "two").await, "two None");

    assert_eq!(noticed(&gateway), [notice("own-one", Change::Left)]);
    gateway.at_rest().await;
}

/// What agents keep of a person goes with what the gateway keeps.
#[tokio::test]
async fn an_agent_forgets_who_is_forgotten() {
    let gateway = keeping().start().await;
    ada(&gateway, "secret").await;
    ada(&gateway, "/new").await;
    ada(&gateway, "other").await;
    for (who, text) in [("bob", "hello"), ("ada", "mine")] {
        let sender = says(&chat(who), "").sender;
        comes_in(&gateway, InboundEvent { sender, ..mention(&chat("room"), text) }).await;
    }
    let before = noticed(&gateway).len();

    let forgotten =
        gateway.engine().erasure().forget(&identity(main_channel(), "ada"), secs(60), operator("her wish")).await;
    assert!(forgotten.expect("done").is_done);
    gateway.settle().await;

    let mut told = noticed(&gateway).split_off(before);
    told.retain(|(_, change)| !matches!(change, Change::TurnRemoved(turn) if *turn != turn_of(&gateway, "mine")));
    let in_room = notice("own-hello", Change::TurnRemoved(turn_of(&gateway, "mine")));
    for expected in [notice("own-secret", Change::Deleted), notice("own-other", Change::Deleted), in_room] {
        assert!(told.contains(&expected), "{expected:?}: {told:?}");
    }
    assert_eq!(told.len(), 3);
    assert_eq!(rows(&gateway).await, (1, 0), "the group goes on");
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_is_told_of_turns_that_are_past_their_time() {
    let mut setup = keeping();
    setup.lifetimes = Lifetimes { turns: Some(DAY * 2), payloads: None, ..Lifetimes::default() };
    let gateway = setup.start().await;
    ada(&gateway, "one").await;
    gateway.advance(DAY).await;
    ada(&gateway, "two").await;
    gateway.advance(DAY + secs(2 * 3600)).await;
    assert_eq!(noticed(&gateway), [notice("own-one", Change::TurnRemoved(turn_of(&gateway, "one")))]);

    gateway.advance(DAY * 2).await;
    assert_eq!(noticed(&gateway).pop(), Some(notice("own-one", Change::Deleted)));
    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}

/// `kill -9` before and after each write.
#[tokio::test]
async fn no_crash_loses_what_an_agent_is_told() {
    for (text, change) in [("/new", Change::Left), ("/session delete 1", Change::Deleted)] {
        at_every_write(3, async |crash, write| {
            let mut gateway = keeping().start().await;
            ada(&gateway, "one").await;
            gateway.advance(secs(60)).await;
            let event = InboundEvent { received_at: gateway.clock.now(), ..says(&chat("ada"), text) };
            let has_died = comes_in_dying(&mut gateway, (crash, write), event).await;
            gateway.advance(secs(600)).await;

            let told = noticed(&gateway);
            let is_told = told.iter().all(|told| *told == notice("own-one", change));
            assert!(is_told && (1..=2).contains(&told.len()), "{text}, {crash:?} write {write}: {told:?}");
            assert_eq!(rows(&gateway).await.1, 0);
            gateway.at_rest().await;
            has_died
        })
        .await;
    }
}

#[tokio::test]
async fn an_agent_that_fails_is_told_again_also_after_a_restart() {
    let mut gateway = keeping().start().await;
    ada(&gateway, "one").await;
    gateway.agent("main").fail_notices(true);
    ada(&gateway, "/session delete 1").await;
    assert_eq!(noticed(&gateway).len(), 1);
    gateway.advance(secs(5)).await;
    assert_eq!(noticed(&gateway).len(), 2);
    gateway.restart().await;
    assert_eq!(noticed(&gateway).len(), 2, "the pause goes on");
    assert_eq!(rows(&gateway).await, (1, 1));

    gateway.agent("main").fail_notices(false);
    gateway.advance(secs(30)).await;

    assert_eq!(noticed(&gateway), vec![notice("own-one", Change::Deleted); 3]);
    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}

/// Nothing of a deleted session is kept for ever.
#[tokio::test]
async fn an_agent_that_fails_for_a_week_is_told_no_more() {
    let gateway = keeping().start().await;
    ada(&gateway, "one").await;
    gateway.agent("main").fail_notices(true);
    ada(&gateway, "/session delete 1").await;
    gateway.advance(DAY * 6).await;
    assert_eq!(rows(&gateway).await, (1, 1));

    gateway.advance(DAY * 2).await;

    assert_eq!(noticed(&gateway).len(), 33);
    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}

/// An agent that was never told of a turn's removal gets no id of the session in which the turn still is.
#[tokio::test]
async fn what_an_agent_calls_a_session_is_forgotten_if_it_is_not_told_of_a_removal_for_a_week() {
    let gateway = keeping().start().await;
    ada(&gateway, "one").await;
    gateway.agent("main").fail_notices(true);
    ada(&gateway, "/undo").await;
    gateway.advance(DAY * 8).await;

    assert_eq!(ada(&gateway, "two").await, "two None");
    gateway.at_rest().await;
}

/// Somebody who goes back at once has not left.
#[tokio::test]
async fn an_agent_that_was_away_is_not_told_of_a_session_to_which_somebody_went_back() {
    let gateway = keeping().start().await;
    ada(&gateway, "one").await;
    gateway.agent("main").fail_notices(true);
    ada(&gateway, "/new").await;
    assert_eq!(rows(&gateway).await, (1, 1));
    ada(&gateway, "/session use 1").await;
    assert_eq!(rows(&gateway).await, (1, 0));
    gateway.at_rest().await;
}

/// A turn of an agent without a memory costs nothing, and that of one with a memory three reads, and a write for a new session.
#[tokio::test]
async fn an_agent_without_a_memory_costs_nothing() {
    let mut costs = Vec::new();
    for keeps in [false, true] {
        let mut setup = GatewaySetup::new();
        let make = move |clock| {
            let agent = ScriptedAgent::new(clock, |_| Script::replies("yes"));
            if keeps { agent.keeping_sessions() } else { agent }
        };
        setup.agents.push(("main", Box::new(make)));
        let gateway = setup.start().await;
        let turn = async |text: &str| {
            let before = (gateway.life.writes(), gateway.life.done());
            comes_in(&gateway, InboundEvent { received_at: gateway.clock.now(), ..says(&chat("ada"), text) }).await;
            (gateway.life.writes() - before.0, gateway.life.done() - before.1)
        };
        costs.push(turn("one").await);
        // What loops read meanwhile counts for some turns, and not for all; on a busy machine for many.
        let mut later = Vec::new();
        for number in 2..32 {
            later.push(turn(&number.to_string()).await);
        }
        costs.push(later.into_iter().min_by_key(|(_, all)| *all).expect("there are some"));
        ada(&gateway, "/session delete 1").await;
        costs.push(rows(&gateway).await);
        gateway.at_rest().await;
    }
    let [one, two, none, first, second, told] = costs[..] else { panic!("{costs:?}") };
    assert_eq!((none, told), ((0, 0), (0, 0)));
    assert_eq!(first.0, one.0 + 1);
    assert_eq!((second.0, second.1), (two.0, two.1 + 3));
}

/// A session that was deleted while the agent began one of its own.
#[tokio::test]
async fn an_agent_is_told_of_a_session_that_was_gone_when_it_named_its_own() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let script =
        move |_: &AgentTurn| Script::replies("late").waiting(&waiting).naming_session("own-one").ignoring_cancel();
    let gateway = with(script).start().await;
    comes_in(&gateway, says(&chat("ada"), "one")).await;
    gateway.agent("main").wait_for_runs(1).await;
    ada(&gateway, "/session delete all").await;
    gate.open();
    gateway.advance(secs(3600)).await;

    assert_eq!(noticed(&gateway), [notice("", Change::Deleted), notice("own-one", Change::Deleted)]);
    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}

/// The session of a scheduled prompt that leaves no line is gone when its last run has ended, also one that was put off for longer
/// than a run may take.
#[tokio::test]
async fn a_copy_is_kept_until_its_last_run_has_ended() {
    const PROMPT: &str = "Reflect.";
    let gate = Gate::default();
    let waiting = gate.clone();
    let script = move |turn: &AgentTurn| match (&*turn.message.text, &turn.past.deferred) {
        (PROMPT, None) => Script::defers(None, secs(5000)).naming_session("own-copy"),
        (PROMPT, Some(_)) => Script::replies("late").waiting(&waiting),
        _ => names_it(turn),
    };
    let gateway = with(script).start().await;
    ada(&gateway, "one").await;
    let words = Words { session: PromptSession::Copy, ..Words::default() };
    gateway.engine().schedules().add(reflection(PROMPT, words), &operator("a test")).await.expect("it is made");
    gateway.advance(DAY).await;
    gateway.advance(secs(4800)).await;
    assert_eq!(noticed(&gateway), [], "its turn is open");
    gateway.advance(secs(210)).await;
    gateway.agent("main").wait_for_runs(3).await;

    gateway.advance(secs(300)).await;
    assert_eq!(noticed(&gateway), [], "the first run would have ended, and the second has not");
    gate.open();
    gateway.advance(secs(600)).await;

    assert_eq!(noticed(&gateway), [notice("own-copy", Change::Deleted)]);
    gateway.at_rest().await;
}

/// The wait for an approval is part of its run.
#[tokio::test]
async fn a_copy_is_kept_while_its_run_waits_for_an_approval() {
    const PROMPT: &str = "Reflect.";
    let has_asked = Arc::new(AtomicBool::new(false));
    let script = move |turn: &AgentTurn| match &*turn.message.text {
        PROMPT if has_asked.swap(true, Ordering::Relaxed) => Script::replies("reflected again"),
        PROMPT => Script::replies("reflected").naming_session("own-copy").asking_approval("think", None),
        _ => names_it(turn),
    };
    let mut setup = with(script);
    setup.people = vec![person("Ada", PersonRole::Owner)];
    let gateway = setup.start().await;
    ada(&gateway, "one").await;
    let words = Words { session: PromptSession::Copy, ..Words::default() };
    gateway.engine().schedules().add(reflection(PROMPT, words), &operator("a test")).await.expect("it is made");
    gateway.advance((DAY * 2).saturating_sub(secs(60))).await;
    let [approval] = &gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable")[..] else {
        panic!("one waits")
    };
    assert_eq!(noticed(&gateway), [], "its run waits");

    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(5)).await;
    assert!(gateway.agent("main").runs().last().is_some_and(|run| run.told.len() == 1));
    gateway.advance(DAY * 8).await;

    assert!(noticed(&gateway).contains(&notice("own-copy", Change::Deleted)));
    gateway.at_rest().await;
}

fn reflection(prompt: &str, words: Words) -> NewSchedule {
    NewSchedule {
        name: "reflection".to_owned(),
        when: When::Every(DAY),
        time_zone: "UTC".into(),
        to: chat("ada").to_string().parse().expect("a target"),
        action: ScheduledAction::Prompt { text: prompt.to_owned(), agent: None, quiet: false, words },
        missed: Missed::Once,
    }
}

#[tokio::test]
async fn an_agent_that_takes_long_for_a_notice_holds_up_no_other_one() {
    let mut setup = keeping();
    setup.channels.push((other_channel(), setup.capabilities.clone()));
    setup.channel_agents = [(other_channel(), "slow".into())].into();
    let make = |clock| ScriptedAgent::new(clock, names_it).keeping_sessions().taking_for_notices(secs(29));
    setup.agents.push(("slow", Box::new(make)));
    let gateway = setup.start().await;
    let in_time = |agent: &str| gateway.agent(agent).notices().len();
    for event in [says(&there("bob"), "one"), says(&there("bob"), "/new"), says(&chat("ada"), "one")] {
        told(&gateway, event).await;
    }
    assert_eq!((in_time("slow"), in_time("main")), (1, 0));

    ada(&gateway, "/new").await;
    told(&gateway, says(&there("bob"), "/session delete all")).await;
    gateway.settle().await;

    assert_eq!((in_time("slow"), in_time("main")), (1, 1), "the first notice of the slow one takes its time");
    gateway.advance(secs(60)).await;
    assert_eq!(in_time("slow"), 2);
    assert_eq!(rows(&gateway).await.1, 0);
    gateway.at_rest().await;
}

/// An id that is too long is an error for the runtime, and nothing else.
#[tokio::test]
async fn a_long_id_of_a_session_is_not_stored() {
    let long = "x".repeat(4097);
    let gateway =
        with(move |turn| Script::replies(&format!("{:?}", turn.place.own_session)).naming_session(&long)).start().await;
    ada(&gateway, "one").await;
    assert_eq!(ada(&gateway, "two").await, "None");
    gateway.at_rest().await;
}
