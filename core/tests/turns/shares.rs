//! Who is next when more turns wait than may run.

use rejoinder_core::{
    AgentTurn, Cause, ChannelId, Condition, ConversationRef, Farewell, InboundEvent, Policy, PolicyChange, Rule, Rung,
    Sender,
    conformance::scripted::{Gate, Script, capabilities},
};

use crate::gateway::{GatewaySetup, TestGateway, ambient, chat, mention, operator, policy, said, secs};

/// An agent that echoes after a second.
fn echo(turn: &AgentTurn) -> Script {
    Script::replies(&turn.message.text).taking(secs(1))
}

async fn with(slots: usize) -> TestGateway {
    GatewaySetup::new().slots(slots).agent("main", echo).start().await
}

/// A message of the person `sender`.
fn by(sender: &str, event: InboundEvent) -> InboundEvent {
    InboundEvent { sender: Sender { id: sender.to_owned(), ..event.sender.clone() }, ..event }
}

/// A message of a person who writes in a chat of their own.
fn alone(name: &str) -> InboundEvent {
    by(name, said(&chat(name), "hello"))
}

fn is_answered(gateway: &TestGateway, conversation: &ConversationRef) -> bool {
    !gateway.visible(conversation).is_empty()
}

/// Ten new conversations come each second, and two turns a second are run.
#[tokio::test]
async fn a_new_conversation_overtakes_nobody() {
    let gateway = with(2).await;
    gateway.receives(alone("desk")).await;
    gateway.advance(secs(2)).await;
    for number in 0..20 {
        gateway.accepts(alone(&format!("before {number}"))).await;
    }
    gateway.accepts(by("desk", said(&chat("desk"), "again"))).await;

    for second in 0..20 {
        for number in 0..10 {
            gateway.accepts(alone(&format!("after {second} {number}"))).await;
        }
        gateway.advance(secs(1)).await;
    }

    assert_eq!(gateway.visible(&chat("desk")), ["hello", "again"], "20 turns that came before take 10 s");
    gateway.advance(secs(200)).await;
    gateway.at_rest().await;
}

/// An agent that was fast becomes slow: what was stored as running without a permit waits like other turns.
#[tokio::test]
async fn a_turn_that_was_promised_a_permit_is_run_once_it_is_there() {
    let is_slow = |turn: &AgentTurn| if turn.message.text == "slow" { secs(10) } else { secs(0) };
    let script = move |turn: &AgentTurn| Script::replies(&turn.message.text).taking(is_slow(turn));
    let gateway = GatewaySetup::new().slots(1).agent("main", script).start().await;
    for number in 0..60 {
        gateway.receives(alone(&format!("quick {number}"))).await;
    }
    gateway.accepts(by("ada", said(&chat("ada"), "slow"))).await;
    let promised = gateway.receives(by("bob", said(&chat("bob"), "slow"))).await;
    let before = gateway.dossier(promised).await;
    assert_eq!(before.runs.iter().map(|run| run.end.as_deref()).collect::<Vec<_>>(), [None], "it is stored as running");

    gateway.advance(secs(5)).await;
    let put_back = gateway.dossier(promised).await;
    assert_eq!(put_back.runs[0].end.as_deref(), Some("interrupted"));
    assert_eq!(put_back.runs[0].detail.as_deref(), Some("it had no permit to begin"));
    assert_eq!(gateway.agent("main").runs().len(), 61, "the agent was not asked");

    gateway.advance(secs(20)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["slow"]);
    assert_eq!(gateway.visible(&chat("bob")), ["slow"]);
    gateway.at_rest().await;
}

/// A channel with many people who wait does not push back the first turn of another.
#[tokio::test]
async fn a_channel_gets_its_share_beside_a_busy_one() {
    let other = ChannelId::new("test", "other");
    let mut setup = GatewaySetup::new().slots(1).agent("main", echo);
    setup.channels.push((other.clone(), capabilities()));
    let gateway = setup.start().await;
    for number in 0..200 {
        gateway.accepts(alone(&format!("busy {number}"))).await;
    }
    let quiet = |name: &str| ConversationRef::new(other.clone(), name);
    for name in ["one", "two", "three"] {
        gateway.accepts(by(name, said(&quiet(name), "hello"))).await;
    }

    gateway.advance(secs(8)).await;

    for name in ["one", "two", "three"] {
        assert!(is_answered(&gateway, &quiet(name)), "{name} waits");
    }
    gateway.advance(secs(300)).await;
    gateway.at_rest().await;
}

/// A person with turns in many conversations does not push back the first turn of another person.
#[tokio::test]
async fn a_person_gets_a_share_beside_one_who_floods() {
    let gateway = with(1).await;
    for number in 0..200 {
        gateway.accepts(by("flood", said(&chat(&format!("flood {number}")), "hello"))).await;
    }
    gateway.accepts(alone("bob")).await;

    gateway.advance(secs(10)).await;

    assert!(is_answered(&gateway, &chat("bob")));
    gateway.advance(secs(300)).await;
    gateway.at_rest().await;
}

/// A conversation with many waiting turns takes its place again after each of them.
#[tokio::test]
async fn a_long_line_in_one_conversation_pushes_back_nobody() {
    let gateway = with(1).await;
    for number in 0..200 {
        gateway.accepts(by("flood", said(&chat("flood"), &format!("{number}")))).await;
    }
    gateway.accepts(alone("bob")).await;

    gateway.advance(secs(10)).await;

    assert!(is_answered(&gateway, &chat("bob")));
    gateway.advance(secs(300)).await;
    gateway.at_rest().await;
}

/// A mention does not wait behind what people say to each other.
#[tokio::test]
async fn a_mention_goes_before_the_talk_that_came_first() {
    let gateway = with(4).await;
    let group = chat("group");
    for number in 0..30 {
        gateway.accepts(by(&format!("p{number}"), ambient(&group, &format!("talk {number}")))).await;
    }
    gateway.accepts(by("ada", mention(&group, "the question"))).await;

    gateway.advance(secs(3)).await;
    assert!(gateway.visible(&group).contains(&"the question".to_owned()), "{:?}", gateway.visible(&group));

    gateway.advance(secs(40)).await;
    assert_eq!(gateway.visible(&group).len(), 31, "the talk is put before the agent as well");
    gateway.at_rest().await;
}

/// The same between conversations.
#[tokio::test]
async fn what_is_owed_goes_before_the_talk_of_other_groups() {
    let gateway = with(1).await;
    for number in 0..30 {
        gateway.accepts(by(&format!("p{number}"), ambient(&chat(&format!("group {number}")), "talk"))).await;
    }
    gateway.accepts(by("ada", mention(&chat("another group"), "the question"))).await;

    gateway.advance(secs(3)).await;
    assert!(is_answered(&gateway, &chat("another group")));

    gateway.advance(secs(40)).await;
    assert!((0..30).all(|number| is_answered(&gateway, &chat(&format!("group {number}")))));
    gateway.at_rest().await;
}

/// Two agents with two slots each, `stuck` on a channel of its own. It hangs; `main` echoes.
async fn with_a_stuck_agent() -> (TestGateway, ChannelId) {
    let channel = ChannelId::new("test", "stuck");
    let mut setup =
        GatewaySetup::new().slots(4).agent("main", echo).agent("stuck", |_| Script::replies("done").taking(secs(60)));
    setup.channels.push((channel.clone(), capabilities()));
    setup.channel_agents.insert(channel.clone(), "stuck".into());
    setup.agent_slots.extend([("main".into(), 2), ("stuck".into(), 2)]);
    (setup.start().await, channel)
}

/// Turns that wait for an agent that hangs keep no turn of another agent waiting, before and after a restart.
#[tokio::test]
async fn an_agent_that_hangs_holds_up_only_its_own_turns() {
    let (mut gateway, stuck) = with_a_stuck_agent().await;
    for number in 0..20 {
        gateway.accepts(said(&ConversationRef::new(stuck.clone(), &format!("{number}")), "hello")).await;
    }
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    assert_eq!(gateway.agent("stuck").runs().len(), 2);

    gateway.restart().await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("bob")), ["hello"]);

    gateway.advance(secs(60 * 20)).await;
    gateway.at_rest().await;
}

/// `main` has one slot, and waits at the gate. What begins with `/quick` is for another agent.
async fn with_a_quick_agent(gate: &Gate) -> TestGateway {
    let gate = gate.clone();
    let mut setup = GatewaySetup::new()
        .slots(2)
        .agent("main", move |_| Script::replies("done").waiting(&gate))
        .agent("quick", |_| Script::replies("quick"));
    setup.agent_slots.insert("main".into(), 1);
    let (conditions, agent) = (vec![Condition::Command(vec!["/quick".to_owned()])], Some("quick".into()));
    let (name, policy) = ("quick".into(), PolicyChange::default());
    setup.rules = vec![Rule { name, conditions, agent, language: None, queue: None, policy }];
    setup.start().await
}

/// B1. The order in a conversation counts before a free agent.
#[tokio::test]
async fn a_turn_waits_for_the_earlier_ones_of_its_conversation_also_for_another_agent() {
    let gate = Gate::default();
    let gateway = with_a_quick_agent(&gate).await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    for _ in 0..2 {
        gateway.receives(said(&chat("ada"), "/quick")).await;
    }
    gateway.receives(said(&chat("carol"), "/quick")).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    assert_eq!(gateway.visible(&chat("carol")), ["quick"]);
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "quick", "quick"]);
    gateway.at_rest().await;
}

/// At a start, no more rows are read than may run soon.
#[tokio::test]
async fn a_turn_does_not_overtake_one_of_its_conversation_that_was_not_read() {
    let gate = Gate::default();
    let mut gateway = with_a_quick_agent(&gate).await;
    for number in 0..20 {
        gateway.accepts(alone(&format!("{number}"))).await;
    }
    gateway.restart().await;

    gateway.receives(by("19", said(&chat("19"), "/quick"))).await;
    gateway.receives(by("ada", said(&chat("ada"), "/quick"))).await;
    assert!(gateway.visible(&chat("19")).is_empty());
    assert_eq!(gateway.visible(&chat("ada")), ["quick"]);
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("19")), ["done", "quick"]);
    gateway.at_rest().await;
}

/// The slots are not told that it waits no more.
#[tokio::test]
async fn a_turn_does_not_wait_for_one_of_its_conversation_that_was_cancelled() {
    let gate = Gate::default();
    let gateway = with_a_quick_agent(&gate).await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    let waits = gateway.receives(said(&chat("ada"), "hello")).await;
    let operations = gateway.engine().operations();
    operations.cancel(waits, Farewell::Silence, operator("a mistake")).await.expect("it is open");

    gateway.receives(said(&chat("ada"), "/quick")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["quick"]);
    gate.open();
    gateway.settle().await;
    gateway.at_rest().await;
}

/// The turns of an agent that is not configured any more are run by another one, and take its slots.
#[tokio::test]
async fn turns_of_a_removed_agent_wait_for_the_one_that_runs_them() {
    let mut setup = GatewaySetup::new().agent("main", echo).slots(1);
    setup.agent_slots.insert("main".into(), 1);
    let mut gateway = setup.start().await;
    for number in 0..5 {
        gateway.accepts(alone(&format!("{number}"))).await;
    }
    gateway.rename_agent("main", "chief");

    gateway.restart().await;
    gateway.advance(secs(10)).await;

    assert!((0..5).all(|number| is_answered(&gateway, &chat(&format!("{number}")))));
    gateway.at_rest().await;
}

/// A turn that the ladder hands over takes a slot of its new agent, and gives back the one it had.
#[tokio::test]
async fn a_turn_that_is_handed_over_takes_a_slot_of_its_new_agent() {
    let ladder =
        policy().ladder.with(Cause::Silent, vec![Rung::Handoff("second".to_owned()), Rung::Say("silent".to_owned())]);
    let mut setup = GatewaySetup::new()
        .policy(Policy { ladder, ..policy() })
        .agent("main", |_| Script::is_silent("nothing to say"))
        .agent("second", echo);
    setup.agent_slots.extend([("main".into(), 1), ("second".into(), 1)]);
    let gateway = setup.start().await;

    for number in 0..5 {
        gateway.accepts(alone(&format!("{number}"))).await;
    }
    gateway.settle().await;

    assert_eq!(gateway.agent("main").runs().len(), 5, "the first agent does not wait for the second one");
    assert_eq!(gateway.agent("second").runs().len(), 1);
    gateway.advance(secs(10)).await;
    assert!((0..5).all(|number| gateway.visible(&chat(&format!("{number}"))) == ["hello"]));
    gateway.at_rest().await;
}
