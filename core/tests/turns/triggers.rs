//! Triggers: turns that begin because of what is said in a conversation.

use rejoinder_core::{
    Access, AgentTurn, ChatKind, Clock as _, Condition, ConversationTrigger, Expectation, InboundEvent, Words,
    conformance::scripted::Script,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, ambient, chat, comes_in, mention, other_node, said, secs},
    life::{at_every_write, passes_dying},
    linking::{says, setup},
    nodes::waits_elsewhere,
};

const PROMPT: &str = "Sum it up.";

fn trigger() -> ConversationTrigger {
    ConversationTrigger {
        name: "summary".into(),
        conditions: Vec::new(),
        after_messages: None,
        idle: None,
        cooldown: secs(3600),
        prompt: PROMPT.into(),
        agent: None,
        quiet: true,
        words: Words::default(),
    }
}

fn after(messages: u32) -> ConversationTrigger {
    ConversationTrigger { after_messages: Some(messages), ..trigger() }
}

fn idle(minutes: u64) -> ConversationTrigger {
    ConversationTrigger { idle: Some(secs(minutes * 60)), ..trigger() }
}

/// An agent that repeats what it is told, and sums up.
fn sums_up(turn: &AgentTurn) -> Script {
    Script::replies(if &*turn.message.text == PROMPT { "So much for that." } else { &turn.message.text })
}

async fn with(triggers: Vec<ConversationTrigger>) -> TestGateway {
    let mut setup = GatewaySetup::new().agent("main", sums_up);
    setup.triggers = triggers;
    setup.start().await
}

fn summaries(gateway: &TestGateway, name: &str) -> usize {
    gateway.visible(&chat(name)).iter().filter(|text| *text == "So much for that.").count()
}

async fn hears(gateway: &TestGateway, name: &str, messages: usize) {
    for _ in 0..messages {
        comes_in(gateway, says(&chat(name), "hello")).await;
    }
}

/// Each conversation counts for itself, over restarts; what the trigger itself says does not count.
#[tokio::test]
async fn a_turn_begins_after_some_messages() {
    let mut gateway = with(vec![after(3)]).await;
    hears(&gateway, "ada", 2).await;
    hears(&gateway, "grace", 2).await;
    gateway.restart().await;
    assert_eq!(summaries(&gateway, "ada"), 0);

    hears(&gateway, "ada", 1).await;
    assert_eq!((summaries(&gateway, "ada"), summaries(&gateway, "grace")), (1, 0));
    let turn = gateway.agent("main").runs().pop().expect("a run").turn;
    assert_eq!((&*turn.message.text, turn.past.history.len()), (PROMPT, 6));

    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(3600)).await;
    assert_eq!(summaries(&gateway, "ada"), 1, "two messages are not three");
    hears(&gateway, "ada", 1).await;
    assert_eq!(summaries(&gateway, "ada"), 2);
    gateway.at_rest().await;
}

/// Hints may be lost.
#[tokio::test]
async fn a_message_counts_that_another_node_has_accepted() {
    let mut setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new().agent("main", sums_up) };
    setup.triggers = vec![after(3)];
    let gateway = setup.start().await;
    gateway.leases().live(other_node(), secs(3600));
    gateway.advance(secs(5)).await;
    hears(&gateway, "ada", 2).await;

    let event = InboundEvent { received_at: gateway.clock.now(), ..says(&chat("ada"), "hello") };
    gateway.store.accept(vec![waits_elsewhere(event)], None).await.expect("it is accepted");
    gateway.advance(secs(70)).await;

    assert_eq!(summaries(&gateway, "ada"), 1);
    gateway.at_rest().await;
}

/// Between two turns there is a time, over a restart as well; what was said meanwhile is not forgotten.
#[rstest::rstest]
#[case::one_life(false)]
#[case::a_restart(true)]
#[tokio::test]
async fn a_trigger_cools_down(#[case] restarts: bool) {
    let mut gateway = with(vec![after(2)]).await;
    hears(&gateway, "ada", 2).await;
    hears(&gateway, "ada", 5).await;
    if restarts {
        gateway.restart().await;
    }
    gateway.advance(secs(3599)).await;
    assert_eq!(summaries(&gateway, "ada"), 1);
    gateway.advance(secs(1)).await;
    assert_eq!(summaries(&gateway, "ada"), 2);
    gateway.advance(secs(7200)).await;
    assert_eq!(summaries(&gateway, "ada"), 2, "nothing was said since");
    gateway.at_rest().await;
}

/// The time may pass while the gateway is down.
#[rstest::rstest]
#[case::it_runs(false)]
#[case::it_is_down(true)]
#[tokio::test]
async fn a_turn_begins_when_nothing_was_said_for_a_time(#[case] is_down: bool) {
    let mut gateway = with(vec![idle(30)]).await;
    hears(&gateway, "ada", 1).await;
    gateway.advance(secs(1500)).await;
    hears(&gateway, "ada", 1).await;
    gateway.advance(secs(1799)).await;
    assert_eq!(summaries(&gateway, "ada"), 0);
    if is_down {
        gateway.stop(secs(1)).await;
        gateway.clock.advance(secs(600));
        gateway.begin_life().await;
        gateway.settle().await;
    } else {
        gateway.advance(secs(1)).await;
    }
    assert_eq!(summaries(&gateway, "ada"), 1);

    gateway.restart().await;
    gateway.advance(secs(86_400)).await;
    assert_eq!(summaries(&gateway, "ada"), 1, "once for what was said");
    gateway.at_rest().await;
}

/// A turn that cannot be read costs its own conversation a message at most: the other ones' triggers fire.
#[tokio::test]
async fn a_turn_that_cannot_be_read_holds_up_no_trigger() {
    let mut gateway = with(vec![after(2)]).await;
    let damaged = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.damage(damaged).await;
    gateway.restart().await;

    hears(&gateway, "grace", 2).await;
    gateway.advance(secs(5)).await;
    assert_eq!(summaries(&gateway, "grace"), 1);

    hears(&gateway, "ada", 2).await;
    assert_eq!(summaries(&gateway, "ada"), 1);
    gateway.end_damaged();
}

/// It owes nothing: an agent that says nothing is heard of nowhere. In a group talk counts, and the turn is the group's.
#[tokio::test]
async fn a_trigger_owes_nothing() {
    let silent =
        |turn: &AgentTurn| if &*turn.message.text == PROMPT { Script::is_silent("nothing") } else { sums_up(turn) };
    let mut setup = GatewaySetup::new().agent("main", silent).agent("cheap", silent);
    let is_group = vec![Condition::Chat(vec![ChatKind::Group])];
    setup.triggers = vec![ConversationTrigger { conditions: is_group, agent: Some("cheap".into()), ..after(2) }];
    let gateway = setup.start().await;
    hears(&gateway, "ada", 2).await;
    assert_eq!(gateway.agent("cheap").runs().len(), 0, "it is no group");

    gateway.receives(mention(&chat("room"), "hello")).await;
    gateway.receives(ambient(&chat("room"), "well")).await;

    assert_eq!(gateway.agent("cheap").runs().len(), 1);
    assert!(!gateway.visible(&chat("room")).contains(&crate::texts::SILENT.to_owned()));
    let turn = gateway.turns().await.remove(0);
    let dossier = gateway.dossier(turn.turn_id).await;
    assert_eq!(dossier.turn.obligation.expectation(), Expectation::Nothing);
    assert_eq!(dossier.turn.event.chat, ChatKind::Group);
    gateway.at_rest().await;
}

/// D1. Whatever write the gateway dies at, it begins once.
#[tokio::test]
async fn a_trigger_fires_once_whatever_write_the_gateway_dies_at() {
    at_every_write(3, async |crash, write| {
        let mut idempotent = setup(Access::open());
        idempotent.access.clear();
        idempotent.agents.clear();
        let mut idempotent = idempotent.agent("main", sums_up);
        idempotent.triggers = vec![idle(1)];
        let mut gateway = idempotent.start().await;
        comes_in(&gateway, says(&chat("ada"), "hello")).await;
        let has_crashed = passes_dying(&mut gateway, (crash, write), secs(60)).await;
        gateway.advance(secs(7200)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["hello", "So much for that."], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}
