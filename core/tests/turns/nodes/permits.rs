//! How nodes share the permits of an agent, and its workers.

use std::time::Duration;

use rejoinder_core::{
    AgentTurn, Farewell, InboundEvent, PersonRole, Policy, Resend, Sender, TurnId,
    conformance::scripted::{Script, ScriptedAgent},
    store::{ApprovalFilter, Hint, NodeStore, WantedPermits},
};

use super::{MINUTE, QUARTER, hint_of, waits_elsewhere};
use crate::{
    approvals::person,
    gateway::{GatewaySetup, TestGateway, chat, operator, other_node, policy, said, secs},
};

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

/// A heartbeat comes each five seconds, and a node without permits can answer nobody. If the one that has all is killed before it shares,
/// that lasts until its leases are over.
#[tokio::test]
async fn a_node_that_comes_gets_its_part_at_once() {
    let setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let gateway = setup.start().await;
    let other_asks = async || {
        let wanted = WantedPermits { agent: "main".into(), held: 0, wanted: 0, limit: 2, has_worker: true };
        gateway.leases().permits(other_node(), &[wanted]).await.expect("permits are granted")[0].1
    };
    // It has heard nothing for so long that it counts as alone.
    gateway.advance(MINUTE).await;
    gateway.other_lives().await;
    assert_eq!(other_asks().await, 0);

    gateway.hears(Hint::All).await;
    gateway.advance(Duration::from_millis(1_200)).await;
    assert_eq!(other_asks().await, 1);
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

/// How long a turn takes that is not quick.
const MOMENT: Duration = Duration::from_millis(100);

/// A gateway beside another node, whose agent has been fast. It has one permit, with which a turn runs.
async fn busy_beside_another() -> TestGateway {
    let setup = GatewaySetup { held_elsewhere: Some(Vec::new()), ..GatewaySetup::new() };
    let takes = |turn: &AgentTurn| if turn.message.text == "quick" { Duration::ZERO } else { MOMENT };
    let script = move |turn: &AgentTurn| Script::replies(&turn.message.text).taking(takes(turn));
    let gateway = setup.slots(1).agent("main", script).start().await;
    gateway.leases().live(other_node(), QUARTER);
    gateway.advance(secs(5)).await;
    for number in 0..60 {
        gateway.receives(by(&format!("quick {number}"), "quick")).await;
    }
    gateway.receives(by("ada", "runs")).await;
    gateway
}

/// A message of a person in a chat of their own.
fn by(name: &str, text: &str) -> InboundEvent {
    let event = said(&chat(name), text);
    InboundEvent { sender: Sender { id: name.to_owned(), ..event.sender.clone() }, ..event }
}

/// The other node accepts a turn that waits, and tells of it.
async fn other_accepts(gateway: &TestGateway, event: InboundEvent) -> TurnId {
    let waits = waits_elsewhere(event);
    let (hint, turn) = (hint_of(&waits), waits.turn.as_ref().expect("it has a turn").id);
    gateway.store.accept(vec![waits], None).await.expect("it is accepted");
    gateway.hears(hint).await;
    turn
}

/// A turn with the promise of a permit is stored as running. Otherwise it is a row.
async fn is_promised(gateway: &TestGateway, turn: TurnId) -> bool {
    let runs = gateway.dossier(turn).await.runs;
    assert!(runs.iter().all(|run| run.end.is_none()), "none has ended");
    !runs.is_empty()
}

/// What the agent was asked that was not quick, in order.
fn asked(gateway: &TestGateway) -> Vec<String> {
    let runs = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.text);
    runs.filter(|text| text != "quick").collect()
}

/// Otherwise its turns would be rows as well, of which it would tell the other node, which would promise nothing either.
#[tokio::test]
async fn a_busy_node_goes_on_promising_permits_while_rows_wait_at_another_one() {
    let gateway = busy_beside_another().await;
    other_accepts(&gateway, by("bob", "elsewhere")).await;

    let turn = gateway.receives(by("cid", "here")).await;

    assert!(is_promised(&gateway, turn).await);
    gateway.advance(secs(3)).await;
    assert_eq!(asked(&gateway), ["runs", "here", "elsewhere"]);
    gateway.at_rest().await;
}

/// It has a promise of its own for each permit that becomes free.
#[tokio::test]
async fn what_waits_at_another_node_does_not_starve_beside_a_busy_one() {
    let gateway = busy_beside_another().await;
    other_accepts(&gateway, by("bob", "elsewhere")).await;
    gateway.accepts(by("cid", "here")).await;

    for number in 0..30 {
        gateway.accepts(by(&format!("{number}"), "here")).await;
        gateway.advance(MOMENT).await;
    }

    let before = asked(&gateway).iter().position(|text| text == "elsewhere").expect("it has run");
    assert!((1..20).contains(&before), "{before}");
    gateway.advance(secs(5)).await;
    gateway.at_rest().await;
}

/// B1. The second case: by now it waits no more, and this node has not read that yet.
#[rstest::rstest]
#[case::that_waits(false)]
#[case::that_waits_no_more(true)]
#[tokio::test]
async fn a_turn_waits_for_the_earlier_one_of_its_conversation_at_another_node(#[case] is_over: bool) {
    let gateway = busy_beside_another().await;
    let earlier = other_accepts(&gateway, by("bob", "one")).await;
    if is_over {
        let operations = gateway.engine().operations();
        operations.cancel(earlier, Farewell::Silence, operator("a mistake")).await.expect("it is open");
    }

    let turn = gateway.receives(by("bob", "two")).await;

    assert_eq!(is_promised(&gateway, turn).await, is_over);
    gateway.advance(secs(3)).await;
    let expected: &[_] = if is_over { &["runs", "two"] } else { &["runs", "one", "two"] };
    assert_eq!(asked(&gateway), expected);
    gateway.at_rest().await;
}
