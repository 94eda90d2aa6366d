//! Channels and agents that are missing from the configuration for a time.

use rejoinder_core::{
    AgentTurn, Capabilities, ChannelId, ConversationRef, OperationError, Policy, Receipts, Support, TurnId,
    conformance::scripted::{Fault, Script, capabilities},
    store::{TurnFilter, TurnListState, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, policy, said, secs},
    life::Crash,
};

const HOUR: std::time::Duration = secs(3600);

fn gone() -> ChannelId {
    ChannelId::new("gone", "main")
}

/// A chat on the channel that becomes absent.
fn there(name: &str) -> ConversationRef {
    ConversationRef::new(gone(), name)
}

fn rows() -> Capabilities {
    Capabilities { receipts: Receipts::Row, ..capabilities() }
}

/// Starts a gateway that has the channel.
async fn with(capabilities: Capabilities, setup: GatewaySetup) -> TestGateway {
    let mut setup = setup;
    setup.channels.push((gone(), capabilities));
    setup.start().await
}

/// Replies with the turn's text after 5 s.
fn echo(turn: &AgentTurn) -> Script {
    Script::replies(&turn.message.text).taking(secs(5))
}

/// Kills the gateway, restarts it without the channel, and lets 25 hours pass.
async fn is_absent_for_a_day(gateway: &mut TestGateway) -> Capabilities {
    let capabilities = gateway.forget_channel(&gone());
    gateway.restart().await;
    gateway.advance(HOUR * 25).await;
    capabilities
}

/// Kills the gateway and restarts it with the channel.
async fn channel_returns(gateway: &mut TestGateway, capabilities: Capabilities) {
    gateway.know_channel(&gone(), capabilities);
    gateway.restart().await;
}

async fn listed(gateway: &TestGateway, state: TurnListState) -> Vec<TurnId> {
    let filter = TurnFilter { state: Some(state), limit: 100, ..TurnFilter::default() };
    let turns = gateway.store.list_turns(&filter).await.expect("readable");
    turns.into_iter().rev().map(|turn| turn.turn_id).collect()
}

/// D9, I4. When the channel is back, its running and waiting turns are given to the agent and answered in order.
#[tokio::test]
async fn turns_of_an_absent_channel_wait_and_are_answered_when_it_is_back() {
    for kind in [capabilities(), rows()] {
        let mut gateway = with(kind, GatewaySetup::new().agent("main", echo)).await;
        let mut turns = Vec::new();
        for text in ["one", "two", "three"] {
            turns.push(gateway.receives(said(&there("ada"), text)).await);
        }

        let kind = is_absent_for_a_day(&mut gateway).await;

        assert_eq!(gateway.agent("main").runs().len(), 1, "no run starts for an absent channel");
        assert_eq!(listed(&gateway, TurnListState::Absent).await, turns);
        assert_eq!(listed(&gateway, TurnListState::Overdue).await, []);
        for turn in &turns {
            assert_eq!(gateway.status(*turn).await, TurnStatus::Accepted);
            let explained = gateway.explained(*turn).await;
            assert!(explained.starts_with("The turn waits: its channel gone.main is not configured."), "{explained}");
            assert!(explained.contains("Next: Nothing until gone.main is configured again"), "{explained}");
        }

        channel_returns(&mut gateway, kind).await;
        gateway.advance(secs(20)).await;

        for (turn, text) in turns.iter().zip(["one", "two", "three"]) {
            let view = gateway.store.view(*turn).await.expect("readable").expect("it is there");
            assert_eq!((view.status, view.shown.expect("it is answered").text.as_str()), (TurnStatus::Answered, text));
        }
        assert_eq!(listed(&gateway, TurnListState::Absent).await, []);
        gateway.at_rest().await;
    }
}

/// H3. A debt is paid when its channel is back, however long it is overdue.
#[tokio::test]
async fn a_deferral_that_was_shown_is_paid_when_its_channel_is_back() {
    for kind in [capabilities(), rows()] {
        // One deferral only, and it has been sent.
        let setup = GatewaySetup::new().policy(Policy { max_deferrals: 1, ..policy() });
        let setup = setup.agent("main", |turn: &AgentTurn| match turn.attempt {
            1 => Script::hangs(),
            _ => Script::replies("done"),
        });
        let mut gateway = with(kind, setup).await;
        let turn = gateway.receives(said(&there("ada"), "hello")).await;
        gateway.advance(SOFT_DEADLINE).await;
        assert_eq!(gateway.status(turn).await, TurnStatus::Deferred);

        let kind = is_absent_for_a_day(&mut gateway).await;
        assert_eq!(gateway.status(turn).await, TurnStatus::Deferred);
        assert_eq!(gateway.dossier(turn).await.deliveries.len(), 1, "no deferral is made for an absent channel");
        channel_returns(&mut gateway, kind).await;

        let view = gateway.store.view(turn).await.expect("readable").expect("it is there");
        assert_eq!((view.status, view.shown.expect("it is answered").text.as_str()), (TurnStatus::Answered, "done"));
        gateway.at_rest().await;
    }
}

/// After its own deferral the agent is not run again until the channel is back.
#[tokio::test]
async fn an_agents_own_deferral_waits_for_its_channel_as_well() {
    let setup = GatewaySetup::new().agent("main", |turn: &AgentTurn| match turn.attempt {
        1 => Script::defers(Some("in a minute"), secs(60)),
        _ => Script::replies("done"),
    });
    let mut gateway = with(capabilities(), setup).await;
    gateway.receives(said(&there("ada"), "hello")).await;
    assert_eq!(gateway.visible(&there("ada")), ["in a minute"]);

    let kind = is_absent_for_a_day(&mut gateway).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    channel_returns(&mut gateway, kind).await;

    assert_eq!(gateway.visible(&there("ada")), ["done"]);
    gateway.at_rest().await;
}

/// D10. Pending deliveries and attempts without a result wait unchanged, and are not given up for their age.
#[tokio::test]
async fn deliveries_of_an_absent_channel_wait_and_are_sent_when_it_is_back() {
    let mut gateway = with(capabilities(), GatewaySetup::new().always(Script::replies("done"))).await;
    gateway.platform.queue_fault(Fault::NotSent);
    gateway.platform.queue_fault(Fault::NotSent);
    let waiting = gateway.receives(said(&there("ada"), "hello")).await;
    gateway.platform.hold(true);
    let begun = gateway.receives(said(&there("bob"), "hello")).await;

    gateway.life.kill();
    gateway.platform.hold(false);
    let kind = is_absent_for_a_day(&mut gateway).await;
    let seen = gateway.platform.seen().len();
    gateway.advance(HOUR * 48).await;

    assert_eq!(listed(&gateway, TurnListState::Absent).await, [waiting, begun]);
    assert_eq!(gateway.platform.seen().len(), seen);
    channel_returns(&mut gateway, kind).await;
    gateway.advance(secs(120)).await;

    assert_eq!(gateway.status(waiting).await, TurnStatus::Answered);
    assert_eq!(gateway.status(begun).await, TurnStatus::Answered);
    assert_eq!(gateway.visible(&there("ada")), ["done"]);
    gateway.at_rest().await;
}

/// A callback that was given up is sent again only while its channel is configured.
#[tokio::test]
async fn a_dead_letter_of_an_absent_channel_stays_one() {
    let copied = Capabilities { receipts: Receipts::RowThenCopy, edit: Support::No, ..capabilities() };
    let mut gateway = with(copied, GatewaySetup::new().always(Script::replies("done"))).await;
    gateway.platform.queue_fault(Fault::Refuse);
    gateway.receives(said(&there("ada"), "hello")).await;
    let letters = gateway.dead_letters().await;
    let kind = is_absent_for_a_day(&mut gateway).await;

    let refused = gateway.retry(letters[0].id).await;
    assert!(matches!(refused, Err(OperationError::Unfit(_))), "{refused:?}");
    gateway.settle().await;

    assert_eq!(gateway.dead_letters().await, letters);
    channel_returns(&mut gateway, kind).await;
    gateway.retry(letters[0].id).await.expect("it is sent again");
    gateway.settle().await;
    assert_eq!(gateway.visible(&there("ada")), ["done"]);
    gateway.at_rest().await;
}

/// Turns of an absent channel take no slot, delay no others, and do not wake the sweep.
#[tokio::test]
async fn an_absent_channel_holds_up_nobody() {
    let mut gateway = with(capabilities(), GatewaySetup::new().slots(1).agent("main", echo)).await;
    for number in 0..600 {
        gateway.accepts(said(&there(&format!("c{number}")), "hello")).await;
    }
    gateway.settle().await;
    let kind = gateway.forget_channel(&gone());
    gateway.restart().await;

    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(5)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    let done = gateway.life.done();
    gateway.advance(HOUR * 25).await;
    let more = gateway.life.done() - done;
    assert!(more < 20, "{more} store calls without any work");

    gateway.set_slots(64);
    channel_returns(&mut gateway, kind).await;
    gateway.advance(secs(120)).await;
    assert!(gateway.turns().await.iter().all(|turn| turn.status == TurnStatus::Answered));
    gateway.at_rest().await;
}

/// D18. A command interrupted by a crash is executed when its channel is back.
#[tokio::test]
async fn a_command_waits_for_its_channel_as_well() {
    let mut gateway = with(capabilities(), GatewaySetup::new().always(Script::hangs())).await;
    let running = gateway.receives(said(&there("ada"), "one")).await;
    gateway.life.crash_at(2, Crash::Before);
    gateway.accepts(said(&there("ada"), "/stop")).await;
    gateway.settle().await;

    let kind = is_absent_for_a_day(&mut gateway).await;
    assert_eq!(gateway.status(running).await, TurnStatus::Accepted);
    channel_returns(&mut gateway, kind).await;

    assert_eq!(gateway.visible(&there("ada")), ["Stopped."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// Several starts and a clean stop without the channel change nothing.
#[tokio::test]
async fn a_channel_may_be_absent_for_several_starts() {
    let mut gateway = with(capabilities(), GatewaySetup::new().agent("main", echo)).await;
    gateway.receives(said(&there("ada"), "one")).await;
    gateway.receives(said(&there("ada"), "two")).await;

    let kind = gateway.forget_channel(&gone());
    for _ in 0..5 {
        gateway.restart().await;
        gateway.advance(HARD_DEADLINE * 4).await;
    }
    gateway.stop(secs(1)).await;
    gateway.know_channel(&gone(), kind);
    gateway.begin_life().await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&there("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// Running and waiting turns of a removed agent are given to the current agent of their channel.
#[tokio::test]
async fn turns_of_an_agent_that_is_gone_go_to_the_channels_agent_of_now() {
    let mut gateway = GatewaySetup::new().agent("main", echo).start().await;
    let ran = gateway.receives(said(&chat("ada"), "one")).await;
    let waited = gateway.receives(said(&chat("ada"), "two")).await;

    gateway.rename_agent("main", "other");
    gateway.restart().await;
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    let explained = gateway.explained(ran).await;
    assert!(explained.contains("Run 1: given to `main`."), "{explained}");
    assert!(explained.contains("Run 2: given to `other`, as `main` is not configured any more."), "{explained}");
    let explained = gateway.explained(waited).await;
    assert!(explained.contains("Run 1: given to `other`, as `main` is not configured any more."), "{explained}");
    gateway.at_rest().await;
}
