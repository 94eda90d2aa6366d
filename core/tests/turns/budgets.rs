//! What agents may use of a day, in tokens and money.

use rejoinder_core::{
    Budget, Cause, Clock, Cost, Currency, InboundEvent, Ladder, PersonLimits, PersonRole, Price, Rung, SeedPerson,
    Usage,
    conformance::scripted::{Gate, Script},
    store::ErrorFilter,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, main_channel, policy, secs},
    life::{at_every_write, comes_in_dying},
    linking::{identity, says},
    sessions::told,
    texts::FAILED,
};

const DAY: u64 = 24 * 3600;

/// The agent `main` uses ten tokens for a turn, at a millionth each, and has a budget. Ada is an owner.
fn with(budget: Budget) -> GatewaySetup {
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    let mut setup = GatewaySetup::new().always(Script::replies("done").consuming(usage));
    setup.prices.insert("main".into(), Price { input: 1.0, output: 1.0, currency: Currency::USD });
    setup.budgets.insert("main".into(), budget);
    setup.people = vec![SeedPerson {
        name: "Ada".to_owned(),
        role: PersonRole::Owner,
        identities: vec![identity(main_channel(), "ada")],
        home: None,
        language: None,
    }];
    setup
}

async fn writes(gateway: &TestGateway, person: &str, text: &str) -> String {
    told(gateway, says(&chat(person), text)).await
}

/// The run that reaches the budget is answered. What is used holds over a restart, and until the next day.
#[tokio::test]
async fn an_agent_begins_no_run_once_its_budget_is_used() {
    for budget in [Budget { tokens: Some(15), micros: None }, Budget { tokens: None, micros: Some(15) }] {
        let mut gateway = with(budget).start().await;
        assert_eq!(writes(&gateway, "ada", "one").await, "done");
        assert_eq!(writes(&gateway, "ada", "/budget").await, "10 tokens.\nmain: 66 %.\nUntil 1 d.");
        assert_eq!(writes(&gateway, "bob", "two").await, "done");
        assert_eq!(writes(&gateway, "bob", "three").await, "Used up.");
        gateway.restart().await;
        assert_eq!(writes(&gateway, "ada", "four").await, "Used up.");
        assert_eq!(gateway.agent("main").runs().len(), 2);
        assert!(!gateway.engine().agents().iter().any(|(_, health)| health.failures > 0), "it has not failed");

        gateway.advance(secs(DAY)).await;
        assert_eq!(writes(&gateway, "ada", "five").await, "done");
        gateway.at_rest().await;
    }
}

/// Another agent without a budget answers instead, if the ladder says so.
#[tokio::test]
async fn the_ladder_may_hand_the_turn_to_another_agent() {
    let rungs = vec![Rung::Handoff("cheap".to_owned()), Rung::Say("budget".to_owned())];
    let ladder = Ladder::empty().with(Cause::Budget, rungs);
    let gateway = with(Budget { tokens: Some(1), micros: None })
        .policy(rejoinder_core::Policy { ladder, ..policy() })
        .agent("cheap", |_| Script::replies("cheaply"))
        .start()
        .await;

    assert_eq!(writes(&gateway, "ada", "one").await, "done");
    assert_eq!(writes(&gateway, "ada", "two").await, "cheaply");
    assert_eq!(writes(&gateway, "bob", "/budget").await, "Nothing used.", "only owners see what agents have used");
    gateway.at_rest().await;
}

/// What agents cost for one person is limited, whatever they cost for others.
#[tokio::test]
async fn the_cost_of_a_day_is_limited_for_each_person() {
    let mut setup = with(Budget::default());
    setup.limits = PersonLimits { cost_per_day: Some(15), ..PersonLimits::default() };
    let mut gateway = setup.start().await;
    assert_eq!(writes(&gateway, "bob", "one").await, "done");
    assert_eq!(writes(&gateway, "bob", "two").await, "done");
    gateway.restart().await;
    assert!(writes(&gateway, "bob", "three").await.starts_with("Enough"));
    let used = writes(&gateway, "bob", "/budget").await;
    assert_eq!(used, "20 tokens.\n0.00002 USD of 0.000015 USD.\nUntil 1 d.");
    assert_eq!(writes(&gateway, "cy", "one").await, "done");

    gateway.advance(secs(DAY)).await;
    assert_eq!(writes(&gateway, "bob", "four").await, "done");
    gateway.at_rest().await;
}

fn said_cost(micros: u64, currency: &str) -> Cost {
    Cost { micros, currency: currency.parse().expect("a currency") }
}

/// Its own report counts in place of what its tokens cost, for the agent and the person, also if it reports no tokens.
#[tokio::test]
async fn a_budget_of_money_counts_what_the_agent_says_that_it_cost() {
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    for (script, currency, agent, person) in [
        (Script::replies("done").consuming(usage), "USD", "main: 40 %.", "0.00004 USD of"),
        (Script::replies("done"), "USD", "main: ~40 %.", "~0.00004 USD of"),
        (Script::replies("done").consuming(usage), "EUR", "main: 10 %.", "0.00001 USD of"),
    ] {
        let mut setup = with(Budget { tokens: None, micros: Some(100) });
        setup.agents.clear();
        setup.limits = PersonLimits { cost_per_day: Some(1000), ..PersonLimits::default() };
        let gateway = setup.always(script.costing(said_cost(40, currency))).start().await;
        assert_eq!(writes(&gateway, "ada", "one").await, "done");

        let told = writes(&gateway, "ada", "/budget").await;
        assert!(told.contains(agent) && told.contains(person), "{currency}: {told}");
        gateway.at_rest().await;
    }
}

/// The cost of a member is its own, whatever the others report.
#[tokio::test]
async fn what_members_say_that_they_cost_counts_for_them_and_for_the_cascade() {
    let used = |tokens| Usage { input_tokens: tokens, output_tokens: 0 };
    let script = Script::replies("done").asking_member("one").consuming(used(10)).costing(said_cost(30, "USD"));
    let script = script.asking_member("two").consuming(used(20));
    let budget = |micros| Budget { tokens: None, micros: Some(micros) };
    let mut setup = with(budget(200));
    setup.agents.clear();
    let mut setup = setup.team("main", &["one", "two"], script);
    setup.budgets.extend([("one".into(), budget(100)), ("two".into(), budget(100))]);
    let gateway = setup.start().await;

    let turn = gateway.receives(says(&chat("bob"), "1")).await;

    assert_eq!(gateway.dossier(turn).await.runs[0].cost.map(|cost| cost.micros), Some(40));
    let told = writes(&gateway, "ada", "/budget").await;
    assert!(told.starts_with("main: 20 %.\none: 30 %.\ntwo: 10 %."), "{told}");
    gateway.at_rest().await;
}

/// What a run used that was stopped counts, also if the store cannot write then.
#[tokio::test]
async fn what_a_run_used_that_was_stopped_is_stored_when_the_store_can_write() {
    let mut setup = with(Budget { tokens: Some(15), micros: None });
    setup.agents.clear();
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    let gateway = setup.always(Script::hangs().consuming(usage).ignoring_cancel()).start().await;
    gateway.accepts(says(&chat("ada"), "work")).await;
    gateway.advance(secs(1)).await;
    gateway.receives(says(&chat("ada"), "/stop")).await;
    gateway.life.set_store_down(true);
    gateway.advance(secs(30)).await;
    gateway.life.set_store_down(false);
    gateway.advance(secs(60)).await;

    assert!(writes(&gateway, "ada", "/budget").await.contains("main: 66 %."));
    gateway.at_rest().await;
}

/// An agent that does not say what it used: a token for each four bytes that it was given or has said. `/budget` marks the estimate.
#[tokio::test]
async fn a_budget_ends_also_for_an_agent_that_reports_nothing() {
    let mut setup = with(Budget { tokens: Some(5), micros: None });
    setup.agents.clear();
    setup.limits = PersonLimits { cost_per_day: Some(6), ..PersonLimits::default() };
    let gateway = setup.always(Script::replies("done")).start().await;

    let first = gateway.receives(says(&chat("bob"), "one")).await;
    let run = &gateway.dossier(first).await.runs[0];
    assert_eq!((run.usage, run.cost), (None, None), "an estimate is not what the run reports");
    assert_eq!(writes(&gateway, "bob", "/budget").await, "~0.000002 USD of 0.000006 USD.\nUntil 1 d.");
    assert!(writes(&gateway, "ada", "/budget").await.contains("main: ~40 %."));
    // The lines before it count as well.
    assert_eq!(writes(&gateway, "bob", "two").await, "done");
    assert!(writes(&gateway, "ada", "/budget").await.contains("main: ~120 %."));
    assert_eq!(writes(&gateway, "cy", "three").await, "Used up.");
    gateway.at_rest().await;
}

/// What a member uses in the place of a cascade counts for both, also if it failed. One that has used its budget is not asked, and
/// the record says so; without another one the ladder answers.
#[tokio::test]
async fn what_members_use_counts_for_them_and_for_the_cascade() {
    let used = |tokens| Usage { input_tokens: tokens, output_tokens: 0 };
    let script = Script::replies("done");
    let script = script.asking_member("one").consuming(used(10)).asking_member("two").consuming(used(40));
    let budget = |tokens| Budget { tokens: Some(tokens), micros: None };
    let mut setup = with(budget(200));
    setup.agents.clear();
    let mut setup = setup.team("main", &["one", "two"], script);
    setup.budgets.extend([("one".into(), budget(20)), ("two".into(), budget(100))]);
    let gateway = setup.start().await;

    let first = gateway.receives(says(&chat("bob"), "1")).await;
    assert_eq!(gateway.dossier(first).await.runs[0].cost.map(|cost| cost.micros), Some(40));
    let told = writes(&gateway, "ada", "/budget").await;
    assert!(told.starts_with("main: 20 %.\none: 50 %.\ntwo: 30 %."), "{told}");
    writes(&gateway, "bob", "2").await;
    let third = gateway.receives(says(&chat("bob"), "3")).await;
    let explained = gateway.explained(third).await;
    assert!(explained.contains("Not asked, because their budgets of the day are used: one."), "{explained}");
    assert_eq!(*gateway.agent("main").runs()[2].turn.rights.spent, ["one".into()]);

    writes(&gateway, "bob", "4").await;
    assert_eq!(writes(&gateway, "bob", "5").await, "Used up.");
    assert_eq!(gateway.agent("main").runs().len(), 4);
    gateway.at_rest().await;
}

/// That the store cannot read what is used is the store's trouble: the turn is answered by the ladder, and the agent is not down.
#[tokio::test]
async fn an_unread_budget_is_no_failure_of_the_agent() {
    let gateway = with(Budget { tokens: Some(100), micros: None }).start().await;
    assert_eq!(writes(&gateway, "bob", "one").await, "done");
    gateway.changes_rows("alter table agent_use rename to gone; update probe set count = 0").await;

    for _ in 0..2 {
        gateway.receives(says(&chat("bob"), "two")).await;
        gateway.advance(secs(60)).await;
    }

    assert_eq!(gateway.visible(&chat("bob"))[1..], [FAILED, FAILED]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    assert!(gateway.engine().agents().iter().all(|(_, health)| health.failures == 0 && health.error.is_none()));
    gateway.at_rest().await;
}

/// How often operators were told of a budget that is nearly used, and what.
async fn told_operators(gateway: &TestGateway) -> Vec<String> {
    let errors = gateway.store.errors(&ErrorFilter { limit: 10, ..ErrorFilter::default() }).await.expect("readable");
    let about = errors.iter().filter(|error| error.message.contains("budget"));
    about.map(|error| format!("{}: {}", error.count, error.fields["what"].as_str().unwrap_or_default())).collect()
}

/// Two runs that end at once use most of a budget together: that is told once, and so is the end of the budget.
#[tokio::test]
async fn operators_are_told_once_of_runs_that_end_together() {
    let gate = Gate::default();
    let mut setup = with(Budget { tokens: Some(25), micros: None });
    setup.agents.clear();
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    let gateway = setup.always(Script::replies("done").consuming(usage).waiting(&gate)).start().await;
    for person in ["bob", "cy"] {
        gateway.receives(says(&chat(person), "one")).await;
    }
    gate.open();
    gateway.settle().await;
    assert_eq!(told_operators(&gateway).await, ["1: main, 80 %"]);

    for person in ["bob", "cy"] {
        writes(&gateway, person, "two").await;
    }
    assert_eq!(told_operators(&gateway).await, ["1: main, 120 %", "1: main, 80 %"]);
    gateway.at_rest().await;
}

/// What a run used is stored before another one begins in its place, however long the store cannot write.
#[tokio::test]
async fn no_more_runs_go_over_a_budget_than_run_at_once() {
    let gate = Gate::default();
    let mut setup = with(Budget { tokens: Some(10), micros: None });
    setup.agents.clear();
    setup.agent_slots.insert("main".into(), 1);
    let usage = Usage { input_tokens: 7, output_tokens: 3 };
    let gateway = setup.always(Script::replies("done").consuming(usage).waiting(&gate)).start().await;
    for person in ["bob", "cy", "dan"] {
        gateway.receives(says(&chat(person), "one")).await;
    }
    gateway.life.set_store_down(true);
    gate.open();
    gateway.advance(secs(90)).await;
    gateway.life.set_store_down(false);
    gateway.advance(secs(90)).await;

    let last = |person| gateway.visible(&chat(person)).pop();
    assert_eq!((last("cy"), last("dan")), (Some("Used up.".to_owned()), Some("Used up.".to_owned())));
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// Once a day, with the first message after it.
#[tokio::test]
async fn a_person_is_told_once_that_most_of_the_day_is_used() {
    let mut setup = with(Budget::default());
    setup.limits = PersonLimits { tokens_per_day: Some(50), ..PersonLimits::default() };
    let mut gateway = setup.start().await;
    for number in 0..4 {
        assert_eq!(writes(&gateway, "bob", &number.to_string()).await, "done");
    }
    gateway.restart().await;
    writes(&gateway, "bob", "5").await;
    writes(&gateway, "bob", "6").await;
    let visible = gateway.visible(&chat("bob"));
    assert_eq!(visible.iter().filter(|text| *text == "Nearly used, for 1 d.").count(), 1, "{visible:?}");
    assert_eq!(visible.len(), 7, "{visible:?}");

    gateway.advance(secs(DAY)).await;
    for number in 0..6 {
        writes(&gateway, "bob", &number.to_string()).await;
    }
    let visible = gateway.visible(&chat("bob"));
    assert_eq!(visible.iter().filter(|text| text.starts_with("Nearly used")).count(), 2, "{visible:?}");
    gateway.at_rest().await;
}

/// `kill -9` at every write: a run counts once for its agent, and operators are told once. One that was not stored used nothing that is known.
#[tokio::test]
async fn a_crash_counts_a_run_once() {
    at_every_write(3, async |crash, write| {
        let mut gateway = with(Budget { tokens: Some(11), micros: None }).start().await;
        let event = InboundEvent { received_at: gateway.clock.now(), ..says(&chat("bob"), "one") };
        let has_died = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(secs(600)).await;

        let used = writes(&gateway, "ada", "/budget").await;
        assert!(used.contains("main: 90 %."), "{crash:?} write {write}: {used}");
        assert_eq!(told_operators(&gateway).await, ["1: main, 90 %"], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}
