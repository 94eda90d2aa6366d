//! A run asks for an approval and waits for it: the decision lets it go on.

use rejoinder_core::{
    AgentApproval, AgentTurn, Amends, ApprovalRequest, ApprovalRule, ApprovalState, Budget, Cause, Clock, Farewell,
    InboundEvent, PersonRole, Policy, Resend, Rung, SeedPerson, Sender, Usage,
    conformance::{
        runtime::decision,
        scripted::{Script, ScriptedAgent},
    },
    store::{Approval, ApprovalFilter, NodeStore, WantedPermits},
};
use rstest::rstest;

use crate::{
    approvals::person,
    gateway::{GatewaySetup, HARD_DEADLINE, TestGateway, chat, operator, other_node, policy, said, secs},
    life::{at_every_write, comes_in_dying, passes_dying},
};

const WEEK: u64 = 7 * 24 * 3600;

const WAITS: &str = "Waits for a yes: pay the rent";

fn grace() -> Vec<SeedPerson> {
    vec![person("Grace", PersonRole::Owner)]
}

fn says(who: &str, text: &str) -> InboundEvent {
    let event = said(&chat(who), text);
    InboundEvent { sender: Sender { id: who.to_owned(), ..event.sender.clone() }, ..event }
}

/// Asks before it pays, and waits. After a restart it says what was decided.
fn careful(turn: &AgentTurn) -> Script {
    match (&*turn.message.text, turn.past.approvals.last()) {
        ("pay", None) => {
            Script::replies("paid").taking(secs(10)).asking_approval("pay the rent", None).taking(secs(10))
        }
        ("pay", Some(last)) => Script::replies(&format!("{} again", last.state.as_str())),
        (text, _) => Script::replies(text),
    }
}

fn setup() -> GatewaySetup {
    let mut setup = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent).agent("main", careful);
    setup.people = grace();
    setup
}

async fn started() -> TestGateway {
    let gateway = setup().start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway
}

async fn approvals(gateway: &TestGateway) -> Vec<Approval> {
    gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable")
}

fn told(gateway: &TestGateway) -> Vec<Result<AgentApproval, String>> {
    let runs = gateway.agent("main").runs();
    runs.into_iter().flat_map(|run| run.told).collect()
}

fn decided(state: ApprovalState, by: Option<&str>) -> AgentApproval {
    AgentApproval { by: by.map(str::to_owned), ..decision(&ApprovalRequest::action("pay the rent"), state) }
}

/// G3. Its deadline stands still, and with one slot in all the turns of others and of its own conversation run meanwhile.
#[tokio::test]
async fn a_run_goes_on_with_the_decision() {
    let gateway = setup().slots(1).start().await;
    gateway.receives(says("grace", "hello")).await;
    let turn = gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    assert_eq!(gateway.visible(&chat("ada")), [WAITS]);
    gateway.advance(HARD_DEADLINE * 3).await;
    gateway.receives(says("bob", "hi")).await;
    gateway.receives(says("ada", "meanwhile")).await;
    assert_eq!(
        (gateway.visible(&chat("bob")), gateway.visible(&chat("ada"))),
        (vec!["hi".to_owned()], vec![WAITS.to_owned(), "meanwhile".to_owned()])
    );
    assert!(gateway.explained(turn).await.contains("waits for an approval"));

    gateway.receives(says("grace", "Do it")).await;
    gateway.advance(secs(11)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["paid", "meanwhile"]);
    assert_eq!(told(&gateway), [Ok(decided(ApprovalState::Approved, Some("Grace")))]);
    assert_eq!(gateway.agent("main").runs().len(), 4, "the run went on");
    assert!(!gateway.engine().agents().iter().any(|(_, health)| health.failures > 0), "it was in time");
    gateway.at_rest().await;
}

#[tokio::test]
async fn its_time_goes_on_where_it_stood() {
    let setup = GatewaySetup::new()
        .agent("main", |_: &AgentTurn| Script::hangs().taking(secs(10)).asking_approval("pay the rent", None));
    let mut setup = setup;
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(HARD_DEADLINE * 2).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };

    gateway.engine().operations().decide(approval.id, false, operator("no")).await.expect("it is decided");
    gateway.advance(HARD_DEADLINE.saturating_sub(secs(11))).await;
    assert_eq!(gateway.visible(&chat("ada")), [WAITS]);
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Sorry, that took too long."]);
    gateway.at_rest().await;
}

/// It has no deadline before it is stored that its time goes on: until then it is told nothing.
#[tokio::test]
async fn a_run_does_not_go_on_without_a_deadline() {
    let mut setup = GatewaySetup::new().agent("main", |_: &AgentTurn| Script::hangs().asking_approval("pay", None));
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(60)).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.life.hold(Some("turn"));
    gateway.settle().await;
    gateway.life.hold(Some("approvals"));
    gateway.settle().await;
    gateway.life.reject_writes(true);
    gateway.life.hold(None);

    gateway.advance(secs(3600)).await;
    assert!(told(&gateway).is_empty());
    gateway.life.reject_writes(false);
    gateway.advance(secs(60)).await;
    assert_eq!(told(&gateway).len(), 1);
    gateway.advance(HARD_DEADLINE).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Sorry, that took too long."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_rule_lets_it_go_on_at_once() {
    let mut setup = setup();
    let rule =
        ApprovalRule { kind: None, agents: Vec::new(), people: Vec::new(), conditions: Vec::new(), approves: true };
    setup.approvals.rules = vec![rule];
    let gateway = setup.start().await;
    gateway.accepts(says("ada", "pay")).await;

    gateway.advance(secs(21)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    assert_eq!(told(&gateway), [Ok(decided(ApprovalState::Approved, Some("rule 1 of the configuration")))]);
    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Approved);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_nobody_decides_counts_as_a_no() {
    let gateway = started().await;
    gateway.accepts(says("ada", "pay")).await;

    gateway.advance(secs(WEEK + 30)).await;

    assert_eq!(told(&gateway), [Ok(decided(ApprovalState::Expired, None))]);
    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    gateway.at_rest().await;
}

/// B3.
#[tokio::test]
async fn a_cancel_stops_it_and_closes_the_approval() {
    for by_operator in [false, true] {
        let gateway = started().await;
        let turn = gateway.accepts(says("ada", "pay")).await;
        gateway.advance(secs(11)).await;
        if by_operator {
            let by = operator("a mistake");
            gateway.engine().operations().cancel(turn, Farewell::Template, by).await.expect("it is cancelled");
        } else {
            gateway.receives(says("ada", "/stop")).await;
        }
        gateway.advance(secs(10)).await;

        assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Dropped, "{by_operator}");
        assert!(told(&gateway).is_empty(), "its run is over");
        gateway.receives(says("grace", "Do it")).await;
        assert!(!gateway.visible(&chat("ada")).iter().any(|text| text == "paid"));
        gateway.at_rest().await;
    }
}

/// What an agent that waits no longer has asked for is asked once, and the turn runs again with the decision.
#[tokio::test]
async fn it_may_leave_what_it_asked_for_behind() {
    let mut setup = setup().agent("main", |turn: &AgentTurn| match turn.past.approvals.last() {
        None => Script::asks_approval("pay the rent", None).asking_approval_for("pay the rent", secs(60)),
        Some(last) => Script::replies(&format!("{} again", last.state.as_str())),
    });
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(70)).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };

    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["approved again"]);
    assert_eq!(approvals(&gateway).await.len(), 1);
    gateway.at_rest().await;
}

#[tokio::test]
async fn it_may_take_back_what_it_asked_for() {
    let mut setup = setup().agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "pay" => Script::replies("never mind").taking_approval_back("pay the rent", secs(60)).taking(secs(10)),
        text => Script::replies(text),
    });
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(59)).await;
    assert_eq!((gateway.visible(&chat("ada")), told(&gateway)), (vec![WAITS.to_owned()], Vec::new()));
    gateway.advance(secs(2)).await;
    gateway.receives(says("grace", "Do it")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(told(&gateway), [Ok(decided(ApprovalState::Dropped, None))]);
    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Dropped);
    assert_eq!(gateway.visible(&chat("ada")), ["never mind"]);
    gateway.at_rest().await;
}

/// It stops to wait at once, and no permit is free: it goes on once there is one.
#[tokio::test]
async fn it_may_take_back_what_it_asked_for_and_not_wait() {
    let mut setup = setup().slots(1).agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "pay" => Script::replies("never mind").taking_approval_back_unheard("pay the rent", secs(60)).taking(secs(30)),
        text => Script::replies(text).taking(secs(40)),
    });
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.accepts(says("grace", "hello")).await;
    gateway.advance(secs(41)).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(59)).await;
    gateway.accepts(says("bob", "hi")).await;
    gateway.advance(secs(20)).await;
    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Dropped);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["never mind"]);
    assert_eq!(gateway.agent("main").runs().iter().filter(|run| run.turn.message.text == "pay").count(), 1);
    gateway.at_rest().await;
}

/// It stops to wait in the moment of the decision: it was not told, and nobody is asked again. If it defers its answer, the run that
/// pays the debt acts on the decision.
#[rstest]
#[case::asks_again(Script::asks_approval("pay the rent", None))]
#[case::defers(Script::defers(None, secs(60)))]
#[tokio::test]
async fn a_decision_that_a_run_has_not_heard_is_given_to_the_next_one(#[case] then: Script) {
    let mut setup = setup().agent("main", move |turn: &AgentTurn| match turn.past.approvals.last() {
        None => then.clone().asking_approval_unheard("pay the rent", secs(60)),
        Some(last) => Script::replies(if last.is_used { "may be paid" } else { "paid" }),
    });
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(1)).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };

    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(70)).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("paid"));
    assert_eq!(approvals(&gateway).await.len(), 1);
    gateway.at_rest().await;
}

/// One that hangs then is ended, and one that asks for something else has failed.
#[tokio::test]
async fn a_run_that_waits_no_longer_ends() {
    let other = || Script::asks_approval("pay more", None);
    for (then, seen) in [(Script::hangs(), "approved again"), (other(), "failed")] {
        let mut setup = setup().agent("main", move |turn: &AgentTurn| match turn.past.approvals.last() {
            None => then.clone().asking_approval_for("pay the rent", secs(60)),
            Some(last) => Script::replies(&format!("{} again", last.state.as_str())),
        });
        setup.people = grace();
        let gateway = setup.start().await;
        gateway.accepts(says("ada", "pay")).await;
        gateway.advance(secs(70)).await;
        if seen != "failed" {
            let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
            gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
        }
        gateway.advance(secs(10)).await;

        let visible = gateway.visible(&chat("ada"));
        assert!(visible.len() == 1 && (visible == [seen] || seen == "failed" && visible != [WAITS]), "{visible:?}");
        assert_eq!(approvals(&gateway).await.len(), 1);
        gateway.at_rest().await;
    }
}

/// B8. Its message is deleted: nobody needs the answer, and nothing is done.
#[tokio::test]
async fn a_deletion_ends_it() {
    let gateway = started().await;
    let event = says("ada", "pay");
    gateway.accepts(event.clone()).await;
    gateway.advance(secs(11)).await;

    let deletion = InboundEvent { revision: 1, amends: Some(Amends::Withdraws), text: String::new(), ..event };
    gateway.intake().accept(deletion).await.expect("it is accepted");
    gateway.settle().await;
    gateway.advance(secs(10)).await;

    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Dropped);
    assert!(told(&gateway).is_empty());
    gateway.at_rest().await;
}

/// A clean stop does not wait for it.
#[tokio::test]
async fn a_stop_of_the_gateway_leaves_the_question_open() {
    let mut gateway = started().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    let engine = gateway.engine().clone();
    let stopping = tokio::spawn(async move { engine.stop(secs(600)).await });
    gateway.settle().await;
    assert!(stopping.is_finished());
    gateway.restart().await;
    gateway.settle().await;
    assert_eq!(approvals(&gateway).await[0].state, ApprovalState::Waiting);

    gateway.receives(says("grace", "Do it")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["approved again"]);
    gateway.at_rest().await;
}

/// `kill -9` at every write while it asks, and while that is decided.
#[tokio::test]
async fn a_crash_asks_and_decides_once() {
    at_every_write(3, async |crash, write| {
        let mut gateway = started().await;
        let event = InboundEvent { received_at: gateway.clock.now(), ..says("ada", "pay") };
        gateway.accepts(event).await;
        let has_died = passes_dying(&mut gateway, (crash, write), secs(15)).await;
        gateway.advance(secs(60)).await;
        let waiting: Vec<_> = approvals(&gateway).await.into_iter().map(|it| it.state).collect();
        assert_eq!(waiting, [ApprovalState::Waiting], "{crash:?} {write}");

        gateway.receives(says("grace", "Do it")).await;
        gateway.advance(secs(60)).await;

        let seen = gateway.visible(&chat("ada"));
        assert!(seen == ["paid"] || seen == ["approved again"], "{crash:?} {write}: {seen:?}");
        gateway.at_rest().await;
        has_died
    })
    .await;
    at_every_write(3, async |crash, write| {
        let mut gateway = started().await;
        gateway.accepts(says("ada", "pay")).await;
        gateway.advance(secs(15)).await;
        let event = InboundEvent { received_at: gateway.clock.now(), ..says("grace", "Do it") };
        let has_died = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(secs(60)).await;

        let states: Vec<_> = approvals(&gateway).await.into_iter().map(|it| it.state).collect();
        assert_eq!(states, [ApprovalState::Approved], "{crash:?} {write}");
        let seen = gateway.visible(&chat("ada"));
        assert!(seen == ["paid"] || seen == ["approved again"], "{crash:?} {write}: {seen:?}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}

/// What Ada sees of an agent whose run dies after the approval.
async fn seen_after_a_crash(pays: impl Fn(&AgentTurn) -> Script + Clone + Send + Sync + 'static) -> Vec<String> {
    let answers = move |turn: &AgentTurn| {
        if turn.message.text == "pay" { pays(turn) } else { Script::replies(&turn.message.text) }
    };
    let mut gateway = setup().agent("main", answers).start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(1)).await;
    gateway.receives(says("grace", "Do it")).await;
    gateway.advance(secs(1)).await;

    gateway.restart().await;
    gateway.advance(secs(60)).await;

    let seen = gateway.visible(&chat("ada"));
    gateway.at_rest().await;
    seen
}

/// G3. Nobody knows whether the run that had the approval has acted: the next one is told that it is used.
#[tokio::test]
async fn an_approval_is_for_one_run() {
    let seen = seen_after_a_crash(|turn| match &turn.past.approvals[..] {
        [] => Script::asks_approval("pay the rent", None),
        [once] if !once.is_used => Script::replies("paid").taking(secs(30)),
        _ => Script::replies("may be paid"),
    });

    assert_eq!(seen.await, ["may be paid"]);
}

/// G3. What it waited for was approved, and it went on.
#[tokio::test]
async fn an_approval_that_a_run_was_told_is_used() {
    let seen = seen_after_a_crash(|turn| match &turn.past.approvals[..] {
        [] => Script::replies("paid").asking_approval("pay the rent", None).taking(secs(30)),
        [once] => Script::replies(if once.is_used { "may be paid" } else { "paid again" }),
        _ => Script::replies("asked twice"),
    });

    assert_eq!(seen.await, ["may be paid"]);
}

/// Runs that may go on are as many at once as runs that begin, and the others follow in their order.
#[tokio::test]
async fn runs_that_go_on_need_a_permit_again() {
    let gateway = setup().slots(1).start().await;
    gateway.receives(says("grace", "hello")).await;
    let people = ["ada", "bob", "cy"];
    for person in people {
        gateway.accepts(says(person, "pay")).await;
        gateway.advance(secs(11)).await;
    }
    let waiting = approvals(&gateway).await;
    assert_eq!(waiting.len(), 3);
    for approval in waiting.iter().rev() {
        gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    }

    for done in 1..=3 {
        gateway.advance(secs(11)).await;
        let paid = people.map(|person| gateway.visible(&chat(person)) == ["paid"]);
        assert_eq!(paid, [true, done > 1, done > 2]);
    }
    gateway.at_rest().await;
}

/// A turn that came meanwhile runs first, and one that comes later waits.
#[tokio::test]
async fn a_run_that_goes_on_waits_for_what_runs_and_goes_before_what_waits() {
    let gateway = setup().agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "hello" => Script::replies("hello"),
        "pay" => careful(turn),
        text => Script::replies(text).taking(secs(30)),
    });
    let gateway = gateway.slots(1).start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    gateway.accepts(says("bob", "one")).await;
    gateway.accepts(says("cy", "two")).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");

    gateway.advance(secs(29)).await;
    assert_eq!(gateway.visible(&chat("ada")), [WAITS]);
    gateway.advance(secs(12)).await;
    assert_eq!(
        (gateway.visible(&chat("bob")), gateway.visible(&chat("ada"))),
        (vec!["one".into()], vec!["paid".into()])
    );
    assert!(!gateway.visible(&chat("cy")).iter().any(|text| text == "two"));
    gateway.advance(secs(31)).await;
    assert!(gateway.visible(&chat("cy")).iter().any(|text| text == "two"));
    gateway.at_rest().await;
}

/// Its deadline stands still until there is a permit for it.
#[tokio::test]
async fn the_time_for_which_a_run_waits_for_its_permit_does_not_count() {
    let gateway = setup().agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "hello" => Script::replies("hello"),
        "pay" => careful(turn),
        text => Script::replies(text).taking(HARD_DEADLINE.saturating_sub(secs(1))),
    });
    let gateway = gateway.slots(1).start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    gateway.accepts(says("bob", "one")).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");

    gateway.advance(HARD_DEADLINE + secs(11)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    gateway.at_rest().await;
}

/// What others have used of its agent's budget meanwhile counts.
#[tokio::test]
async fn a_run_does_not_go_on_once_the_budget_is_used() {
    let mut setup = setup().agent("main", |turn: &AgentTurn| match &*turn.message.text {
        "pay" => careful(turn),
        text => Script::replies(text).consuming(Usage { input_tokens: 10, output_tokens: 0 }),
    });
    setup.budgets.insert("main".into(), Budget { tokens: Some(15), micros: None });
    let gateway = setup.start().await;
    gateway.receives(says("grace", "hello")).await;
    let turn = gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    gateway.receives(says("bob", "hi")).await;

    gateway.receives(says("grace", "Do it")).await;
    gateway.advance(secs(11)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Used up."]);
    assert!(told(&gateway).is_empty());
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("it did not go on: the agent main has used its budget of the day"), "{explained}");
    gateway.at_rest().await;
}

/// The explanation tells a deferral after the decision from the one that asks to wait for it.
#[tokio::test]
async fn a_deferral_of_a_run_that_goes_on_is_told_as_one() {
    let rule =
        ApprovalRule { kind: None, agents: Vec::new(), people: Vec::new(), conditions: Vec::new(), approves: true };
    let mut setup = setup().agent("main", |_: &AgentTurn| {
        Script::replies("paid").taking(secs(1)).asking_approval("pay", None).taking(secs(60))
    });
    setup.approvals.rules = vec![rule];
    let gateway = setup.start().await;
    let turn = gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(70)).await;

    let explained = gateway.explained(turn).await;
    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    assert!(explained.contains("There is no answer yet, so a deferral is cleared"), "{explained}");
    gateway.at_rest().await;
}

/// A15, G3. It is for the agent that asked.
#[tokio::test]
async fn an_approval_is_not_handed_over() {
    let ladder = policy().ladder.with(Cause::Silent, vec![Rung::Handoff("boss".to_owned())]);
    let mut setup = setup()
        .policy(Policy { ladder, ..policy() })
        .agent("main", |turn: &AgentTurn| match (&*turn.message.text, turn.past.approvals.is_empty()) {
            ("pay", true) => Script::asks_approval("pay the rent", None),
            ("pay", false) => Script::is_silent("never mind"),
            (text, _) => Script::replies(text),
        })
        .agent("boss", |turn: &AgentTurn| Script::replies(&format!("{} approvals", turn.past.approvals.len())));
    setup.people = grace();
    let gateway = setup.start().await;
    gateway.receives(says("grace", "hello")).await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(1)).await;

    gateway.receives(says("grace", "Do it")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["0 approvals"]);
    gateway.at_rest().await;
}

/// As a run of a cascade, of which one member has its workers at the other node.
#[tokio::test]
async fn a_run_goes_on_where_its_agent_has_no_worker() {
    let mut setup = GatewaySetup {
        held_elsewhere: Some(Vec::new()),
        agent_slots: [("main".into(), 2)].into(),
        ..GatewaySetup::new()
    };
    let make = |clock| ScriptedAgent::new(clock, careful).without_worker();
    setup.agents.push(("main", Box::new(make)));
    setup.people = grace();
    let gateway = setup.policy(Policy { soft_deadline: None, ..policy() }).start().await;
    gateway.accepts(says("ada", "pay")).await;
    gateway.advance(secs(11)).await;
    let [approval] = &approvals(&gateway).await[..] else { panic!("one waits") };
    let (agent, held, wanted, limit, has_worker) = ("main".into(), 0, 0, 2, true);
    let wanted = [WantedPermits { agent, held, wanted, limit, has_worker }];
    gateway.leases().live(other_node(), secs(900));
    gateway.leases().permits(other_node(), &wanted).await.expect("permits are granted");
    gateway.advance(secs(10)).await;

    gateway.engine().operations().decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["paid"]);
    gateway.leases().live(other_node(), secs(0));
    gateway.advance(secs(10)).await;
    gateway.at_rest().await;
}
