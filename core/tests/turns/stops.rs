//! `/stop` in every state of a turn: it is acknowledged once, and nothing of the turn is shown afterwards.

use std::{future::Future, time::Duration};

use rejoinder_core::{
    AgentTurn, ApprovalSettings, Backlog, Capabilities, ChannelId, Clock, ConversationRef, Identity, InboundEvent,
    LateAnswer, PersonRole, Policy, QueueMode, Queues, Resend, Scope, SeedPerson, Sender, Support, TurnId,
    conformance::scripted::{Fault, Gate, Script, ScriptedChannel, capabilities},
    store::TurnStatus,
};
use rstest::rstest;

use crate::{
    gateway::{
        GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, main_channel, mention, operator, policy, said,
        secs,
    },
    texts::LATE,
};

/// How long nothing may come afterwards.
const LONG: Duration = Duration::from_hours(3);

/// The agent takes this long for an answer.
const WORK: Duration = secs(60);

/// Turns in a chat, about to be stopped.
struct Case {
    gateway: TestGateway,
    address: ConversationRef,
    turns: Vec<TurnId>,
    /// What becomes of them.
    status: TurnStatus,
    /// What stays in the chat: nothing takes it back.
    left: Vec<&'static str>,
}

impl Case {
    fn of(gateway: TestGateway, turns: impl Into<Vec<TurnId>>) -> Self {
        let turns = turns.into();
        Self { gateway, address: chat("ada"), turns, status: TurnStatus::Cancelled, left: Vec::new() }
    }

    fn leaving(self, left: &[&'static str]) -> Self {
        Self { left: left.to_vec(), ..self }
    }
}

/// An agent that answers after a while.
fn working() -> GatewaySetup {
    GatewaySetup::new().always(Script::replies("done").taking(WORK))
}

/// An agent that answers at once.
fn quick() -> GatewaySetup {
    GatewaySetup::new().always(Script::replies("done"))
}

fn queue(mode: QueueMode) -> GatewaySetup {
    GatewaySetup { queues: Queues { mode, ..Queues::default() }, ..working() }
}

fn from_ada(gateway: &TestGateway, text: &str) -> InboundEvent {
    InboundEvent { received_at: gateway.clock.now(), ..said(&chat("ada"), text) }
}

async fn receives_all(gateway: &TestGateway, texts: &[&str]) -> Vec<TurnId> {
    let mut turns = Vec::new();
    for text in texts {
        turns.push(gateway.receives(from_ada(gateway, text)).await);
    }
    turns
}

/// One turn, after some time.
async fn after(setup: GatewaySetup, time: Duration) -> Case {
    let gateway = setup.start().await;
    let turns = receives_all(&gateway, &["one"]).await;
    gateway.advance(time).await;
    Case::of(gateway, turns)
}

/// One turn whose deliveries meet with this for the given time.
async fn failing(fault: Fault, time: Duration) -> Case {
    let gateway = quick().start().await;
    gateway.platform.choose_faults(move |_| Some(fault.clone()));
    let turns = receives_all(&gateway, &["one"]).await;
    gateway.advance(time).await;
    Case::of(gateway, turns)
}

async fn running_and_waiting_behind_it() -> Case {
    let gateway = working().start().await;
    let turns = receives_all(&gateway, &["one", "two", "three"]).await;
    Case::of(gateway, turns)
}

async fn waiting_for_a_permit() -> Case {
    let gateway = working().slots(1).start().await;
    gateway.receives(said(&chat("bob"), "first")).await;
    let turns = receives_all(&gateway, &["one"]).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    Case::of(gateway, turns)
}

async fn with_an_open_window() -> Case {
    let gateway = queue(QueueMode::Collect).start().await;
    let turns = receives_all(&gateway, &["one", "two"]).await;
    assert!(gateway.agent("main").runs().is_empty(), "more may come");
    Case::of(gateway, turns)
}

/// Two are answered together, and another one waits.
async fn merged() -> Case {
    let gateway = queue(QueueMode::Collect).start().await;
    let mut turns = receives_all(&gateway, &["one", "two"]).await;
    gateway.advance(secs(2)).await;
    turns.extend(receives_all(&gateway, &["three"]).await);
    assert_eq!(gateway.agent("main").runs()[0].turn.more.len(), 1);
    Case::of(gateway, turns)
}

async fn steered_into_a_run() -> Case {
    let (gate, queues) = (Gate::default(), Queues { mode: QueueMode::Steer, ..Queues::default() });
    let script = Script::replies("done").waiting(&gate).listening().taking(WORK);
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().always(script) }.start().await;
    let turns = receives_all(&gateway, &["one", "two"]).await;
    gate.open();
    gateway.settle().await;
    assert_eq!(gateway.agent("main").runs()[0].heard, ["two"]);
    Case::of(gateway, turns)
}

/// The first run has been told to stop, and goes on for a moment.
async fn with_an_interrupt_under_way() -> Case {
    let queues = Queues { mode: QueueMode::Interrupt, ..Queues::default() };
    let script = Script::replies("done").taking(WORK).ignoring_cancel();
    let gateway = GatewaySetup { queues, ..GatewaySetup::new().always(script) }.start().await;
    let turns = receives_all(&gateway, &["one", "two"]).await;
    assert_eq!(gateway.agent("main").runs().len(), 1);
    Case::of(gateway, turns)
}

/// What the agent promises itself, while its turn waits for the next run.
async fn promised_by_the_agent() -> Case {
    let script = |turn: &AgentTurn| match turn.past.deferred {
        None => Script::defers(Some("Soon."), WORK),
        Some(_) => Script::replies("done"),
    };
    after(GatewaySetup::new().agent("main", script), secs(5)).await
}

async fn waiting_for_approval() -> Case {
    let mut setup = GatewaySetup::new().agent("main", |turn| match turn.past.approvals.last() {
        None => Script::asks_approval("pay the rent", None),
        Some(_) => Script::replies("done"),
    });
    let identity = Identity { channel: main_channel(), id: "grace".to_owned() };
    setup.people = vec![SeedPerson {
        name: "Grace".to_owned(),
        role: PersonRole::Owner,
        identities: vec![identity],
        home: None,
        language: None,
    }];
    setup.approvals = ApprovalSettings { owners: true, ..ApprovalSettings::default() };
    let case = after(setup, secs(5)).await;
    assert_eq!(case.gateway.visible(&case.address), ["Waits for a yes: pay the rent"]);
    case
}

fn asking_about_late_messages() -> GatewaySetup {
    GatewaySetup { queues: Queues { backlog: Backlog::Ask, ..Queues::default() }, ..working() }
}

async fn postponed() -> Case {
    let gateway = asking_about_late_messages().start().await;
    gateway.advance(LONG).await;
    let late = InboundEvent { sent_at: Some(rejoinder_core::conformance::clock::START), ..from_ada(&gateway, "old") };
    let turn = gateway.receives(late).await;
    Case::of(gateway, [turn]).leaving(&["Answer the old ones?"])
}

/// The question about it has not reached the chat.
async fn postponed_with_a_question_that_was_not_sent() -> Case {
    let gateway = asking_about_late_messages().start().await;
    gateway.advance(LONG).await;
    gateway.platform.set_down(true);
    let late = InboundEvent { sent_at: Some(rejoinder_core::conformance::clock::START), ..from_ada(&gateway, "old") };
    let turn = gateway.receives(late).await;
    Case::of(gateway, [turn])
}

async fn waiting_out_a_limit() -> Case {
    failing(Fault::Limit { retry_after: WORK, scope: Scope::Account }, secs(1)).await
}

async fn waiting_out_a_retry() -> Case {
    failing(Fault::NotSent, secs(1)).await
}

async fn parked() -> Case {
    let case = failing(Fault::NotSent, secs(300)).await;
    let explained = case.gateway.explained(case.turns[0]).await;
    assert!(explained.contains("is parked"), "{explained}");
    case
}

/// The platform has shown the answer, and its response is lost: it counts as the answer once that is known.
async fn shown_without_a_receipt() -> Case {
    let gateway = quick().capable(|it| it.resend = Resend::Idempotent).start().await;
    gateway.platform.choose_faults(|_| Some(Fault::LoseResponse));
    let turns = receives_all(&gateway, &["one"]).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    Case { status: TurnStatus::Answered, ..Case::of(gateway, turns).leaving(&["done"]) }
}

async fn held_by_an_operator() -> Case {
    let gateway = working().slots(1).start().await;
    gateway.receives(said(&chat("bob"), "first")).await;
    let turns = receives_all(&gateway, &["one"]).await;
    gateway.engine().operations().hold(turns[0], operator("wait")).await.expect("it is held");
    gateway.settle().await;
    Case::of(gateway, turns)
}

async fn with_an_answer_that_is_held() -> Case {
    let case = waiting_out_a_retry().await;
    case.gateway.engine().operations().hold(case.turns[0], operator("wait")).await.expect("it is held");
    case.gateway.settle().await;
    case
}

async fn on_a_paused_channel() -> Case {
    let gateway = quick().start().await;
    gateway.engine().operations().pause_channel(main_channel(), true, operator("wait")).await.expect("it is paused");
    let turns = receives_all(&gateway, &["one"]).await;
    Case::of(gateway, turns)
}

fn showing_drafts(it: &mut Capabilities) {
    (it.drafts, it.draft_interval) = (Support::Full, Duration::from_millis(500));
    it.drafts_are_messages = true;
}

async fn with_a_draft(time: Duration) -> Case {
    let script = Script::replies("done").streaming("well").taking(HARD_DEADLINE / 2);
    let case = after(GatewaySetup::new().capable(showing_drafts).always(script), time).await;
    assert_eq!(case.gateway.visible(&case.address).len(), 1);
    case
}

/// A deferral that a draft has edited.
async fn with_half_an_answer_in_its_deferral() -> Case {
    let wait = SOFT_DEADLINE + secs(5);
    let script = Script::replies("done").taking(wait).streaming("half").taking(HARD_DEADLINE / 2);
    let case = after(GatewaySetup::new().capable(showing_drafts).always(script), wait + secs(2)).await;
    assert_eq!(case.gateway.visible(&case.address), ["half"]);
    case
}

/// Two parts of four are sent, and the third fails.
async fn half_sent() -> Case {
    let parts = ["one", "two", "three", "four"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&parts)).await;
    gateway.platform.choose_faults(|delivery| (delivery.part().0 == 3).then_some(Fault::NotSent));
    let turns = receives_all(&gateway, &["count"]).await;
    Case::of(gateway, turns).leaving(&["one", "two"])
}

async fn a_late_run() -> Case {
    let policy = Policy { late_answer: LateAnswer::Deliver, late_window: secs(120), ..policy() };
    let script = Script::replies("at last").taking(HARD_DEADLINE + secs(60));
    let case = after(GatewaySetup::new().policy(policy).always(script), HARD_DEADLINE).await;
    Case { status: TurnStatus::Answered, ..case.leaving(&[LATE]) }
}

/// Its channel was away over a start, and is back.
async fn back_from_an_absent_channel() -> Case {
    let away = ChannelId::new("away", "main");
    let address = ConversationRef::new(away.clone(), "ada");
    let mut setup = working();
    setup.channels.push((away.clone(), capabilities()));
    let mut gateway = setup.start().await;
    let turn = gateway.receives(said(&address, "one")).await;
    gateway.forget_channel(&away);
    gateway.restart().await;
    gateway.advance(LONG).await;
    gateway.know_channel(&away, capabilities());
    gateway.restart().await;
    Case { address, ..Case::of(gateway, [turn]) }
}

/// The process has died during its run, and it runs again.
async fn run_again_after_a_crash() -> Case {
    let mut case = after(working(), secs(5)).await;
    case.gateway.restart().await;
    assert_eq!(case.gateway.agent("main").runs().len(), 2);
    case
}

/// D18, B3.
#[rstest]
#[case::running(after(working(), secs(1)))]
#[case::running_and_waiting_behind_it(running_and_waiting_behind_it())]
#[case::waiting_for_a_permit(waiting_for_a_permit())]
#[case::with_an_open_window(with_an_open_window())]
#[case::merged(merged())]
#[case::steered_into_a_run(steered_into_a_run())]
#[case::with_an_interrupt_under_way(with_an_interrupt_under_way())]
#[case::deferred(after(GatewaySetup::new().always(Script::replies("done").taking(SOFT_DEADLINE * 2)), SOFT_DEADLINE + secs(1)))]
#[case::promised_by_the_agent(promised_by_the_agent())]
#[case::waiting_for_approval(waiting_for_approval())]
#[case::postponed(postponed())]
#[case::postponed_with_a_question_that_was_not_sent(postponed_with_a_question_that_was_not_sent())]
#[case::waiting_out_a_limit(waiting_out_a_limit())]
#[case::waiting_out_a_retry(waiting_out_a_retry())]
#[case::parked(parked())]
#[case::shown_without_a_receipt(shown_without_a_receipt())]
#[case::held_by_an_operator(held_by_an_operator())]
#[case::with_an_answer_that_is_held(with_an_answer_that_is_held())]
#[case::on_a_paused_channel(on_a_paused_channel())]
#[case::with_a_draft(with_a_draft(secs(1)))]
#[case::with_a_draft_in_its_deferral(with_a_draft(SOFT_DEADLINE + secs(1)))]
#[case::with_half_an_answer_in_its_deferral(with_half_an_answer_in_its_deferral())]
#[case::half_sent(half_sent())]
#[case::a_late_run(a_late_run())]
#[case::back_from_an_absent_channel(back_from_an_absent_channel())]
#[case::run_again_after_a_crash(run_again_after_a_crash())]
#[tokio::test]
async fn a_stop_ends_what_is(#[case] case: impl Future<Output = Case>) {
    let Case { gateway, address, turns, status, mut left } = case.await;

    gateway.receives(InboundEvent { received_at: gateway.clock.now(), ..said(&address, "/stop") }).await;
    gateway.platform.clear_faults();
    if gateway.engine().paused(&main_channel()).is_some() {
        gateway
            .engine()
            .operations()
            .pause_channel(main_channel(), false, operator("go on"))
            .await
            .expect("it is resumed");
    }
    gateway.advance(LONG).await;

    left.push("Stopped.");
    assert_eq!(gateway.visible(&address), left);
    for turn in turns {
        assert_eq!(gateway.status(turn).await, status);
    }
    let runs = gateway.agent("main").runs().len();
    gateway.receives(InboundEvent { received_at: gateway.clock.now(), ..said(&address, "/stop") }).await;
    assert_eq!(gateway.visible(&address).last().map(String::as_str), Some("There is nothing to stop."));
    assert_eq!(gateway.agent("main").runs().len(), runs);
    gateway.at_rest().await;
}

/// D18. Other chats go on.
#[tokio::test]
async fn a_stop_stops_nothing_elsewhere() {
    let gateway = working().start().await;
    let elsewhere = gateway.receives(said(&chat("bob"), "three")).await;
    receives_all(&gateway, &["one", "/stop"]).await;
    let by_carl = InboundEvent {
        sender: Sender { id: "carl".to_owned(), ..said(&chat("room"), "").sender },
        ..mention(&chat("room"), "/stop")
    };
    gateway.receives(by_carl).await;
    gateway.advance(WORK * 2).await;

    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    assert_eq!(gateway.status(elsewhere).await, TurnStatus::Answered);
    gateway.at_rest().await;
}
