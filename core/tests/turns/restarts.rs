//! Restarts: owed answers are still owed afterwards.

use rejoinder_core::{
    AgentTurn, IntakeError, Policy, Support,
    conformance::scripted::{Script, ScriptedAgent},
};

use tokio::sync::oneshot::error::TryRecvError;

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, chat, policy, said, secs},
    texts::DEFERRAL,
};

fn echo(turn: &AgentTurn) -> Script {
    Script::replies(&turn.message.text).taking(secs(1))
}

/// D1, D9. Running and waiting turns are answered in order.
#[tokio::test]
async fn what_ran_and_what_waited_is_answered_in_its_order() {
    let mut gateway = GatewaySetup::new().agent("main", echo).start().await;
    for text in ["one", "two", "three"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }

    gateway.restart().await;
    gateway.receives(said(&chat("ada"), "four")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three", "four"]);
    let runs = gateway.agent("main").runs();
    assert_eq!((runs[0].turn.turn, runs[1].turn.attempt), (runs[1].turn.turn, 2), "the same turn, run again");
    gateway.at_rest().await;
}

/// D9. New turns do not overtake the backlog.
#[tokio::test]
async fn nobody_overtakes_the_backlog_right_after_a_start() {
    // No deferrals: an answer would be at the place of its deferral, out of order.
    let patient = Policy { soft_deadline: None, ..policy() };
    let mut gateway = GatewaySetup::new().slots(1).policy(patient).agent("main", echo).start().await;
    for number in 0..20 {
        gateway.receives(said(&chat(&format!("c{}", number % 4)), &format!("{number}"))).await;
    }
    gateway.life.kill();
    gateway.begin(std::sync::Arc::default()).await;
    for number in 20..24 {
        gateway.accepts(said(&chat(&format!("c{}", number % 4)), &format!("{number}"))).await;
    }
    gateway.advance(secs(60)).await;

    for number in 0..4 {
        let expected: Vec<String> = (0..6).map(|round| format!("{}", round * 4 + number)).collect();
        assert_eq!(gateway.visible(&chat(&format!("c{number}"))), expected);
    }
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_debt_survives_a_restart() {
    let mut gateway = GatewaySetup::new()
        .capable(|it| it.edit = Support::No)
        .agent("main", |turn: &AgentTurn| match turn.attempt {
            1 => Script::hangs(),
            _ => Script::replies("done"),
        })
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL, "done"]);
    gateway.at_rest().await;
}

/// A clean stop lets running turns end; the others wait as rows.
#[tokio::test]
async fn a_soft_stop_lets_running_turns_end_and_keeps_the_rest() {
    let mut gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(5)))
        .start()
        .await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    let intake = gateway.intake();

    gateway.stop(secs(20)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert!(matches!(intake.accept(said(&chat("ada"), "three")).await, Err(IntakeError::ShuttingDown)));
    gateway.begin_life().await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    assert_eq!(gateway.agent("main").runs().len(), 2);
    gateway.at_rest().await;
}

/// A stop does not wait for a run that hangs.
#[tokio::test]
async fn a_stop_ends_when_its_time_is_over() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.receives(said(&chat("ada"), "one")).await;

    gateway.stop(secs(20)).await;

    gateway.begin_life().await;
    gateway.advance(HARD_DEADLINE * 4).await;
    assert_eq!(gateway.visible(&chat("ada")).len(), 1);
    gateway.at_rest().await;
}

/// D11, D13. Runs that a clean stop has interrupted do not count towards `max_runs`; crashed runs do.
#[tokio::test]
async fn runs_that_a_stop_cut_off_do_not_count() {
    let mut gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match turn.attempt {
            0..6 => Script::hangs(),
            _ => Script::replies("done"),
        })
        .start()
        .await;
    let turn = gateway.receives(said(&chat("ada"), "one")).await;
    for _ in 0..5 {
        gateway.stop(secs(1)).await;
        gateway.begin_life().await;
    }

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let ends: Vec<_> = gateway.dossier(turn).await.runs.into_iter().map(|run| run.end.unwrap_or_default()).collect();
    assert_eq!(ends, ["stopped", "stopped", "stopped", "stopped", "stopped", "reply"]);
    assert!(gateway.explained(turn).await.contains("the gateway was stopped while it ran"));
    gateway.at_rest().await;
}

/// D13. Three crashes with a clean stop in between count as three.
#[tokio::test]
async fn a_stop_in_between_does_not_forgive_crashes() {
    let mut gateway = TestGateway::with(Script::hangs()).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.restart().await;
    gateway.stop(secs(1)).await;
    gateway.begin_life().await;
    gateway.restart().await;
    assert_eq!(gateway.agent("main").runs().len(), 4);

    gateway.restart().await;

    assert_eq!(gateway.agent("main").runs().len(), 4);
    assert_eq!(gateway.visible(&chat("ada")), [crate::texts::FAILED]);
    gateway.at_rest().await;
}

/// An agent outside of the process. Each run stores who did the one before and itself, and never ends; the third one defers.
fn outside(turn: &AgentTurn) -> Script {
    match turn.attempt {
        3 => Script::defers(None, secs(30)),
        4 => Script::replies(&format!("{:?}", turn.past.holder)),
        attempt => Script::hangs().handing_out(&format!("{:?}, worker {attempt}", turn.past.holder)),
    }
}

/// The next run hears who did the one before, after a crash as after a stop; not after a run that ended otherwise.
#[tokio::test]
async fn a_run_hears_who_did_the_one_before_the_start() {
    let mut setup = GatewaySetup::new();
    setup.agents.push(("main", Box::new(|clock| ScriptedAgent::new(clock, outside).handing_out())));
    let mut gateway = setup.start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.restart().await;
    gateway.stop(secs(1)).await;

    gateway.begin_life().await;
    gateway.advance(secs(60)).await;

    let holders: Vec<_> = gateway.agent("main").runs().into_iter().map(|run| run.turn.past.holder).collect();
    let second = "None, worker 1";
    let third = format!("Some({second:?}), worker 2");
    assert_eq!(holders, [None, Some(second.to_owned()), Some(third), None]);
    assert_eq!(gateway.visible(&chat("ada")), ["None"]);
    gateway.at_rest().await;
}

/// What costs a read is not read for an agent that does not want it.
#[tokio::test]
async fn an_agent_in_the_process_hears_nothing_of_it() {
    let script = |turn: &AgentTurn| match turn.attempt {
        1 => Script::hangs().handing_out("a worker"),
        _ => Script::replies(&format!("{:?}", turn.past.holder)),
    };
    let mut gateway = GatewaySetup::new().agent("main", script).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.restart().await;

    assert_eq!(gateway.visible(&chat("ada")), ["None"]);
    gateway.at_rest().await;
}

/// A run outside of the process, whose agent says this.
async fn outside_saying(script: fn(&AgentTurn) -> Script) -> TestGateway {
    let mut setup = GatewaySetup::new();
    setup.agents.push(("main", Box::new(move |clock| ScriptedAgent::new(clock, script).handing_out())));
    setup.start().await
}

#[tokio::test]
async fn an_agent_hears_that_its_outcome_counts_once_it_is_stored() {
    let gateway = outside_saying(|_| Script::replies("done").taking(secs(1))).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.life.set_store_down(true);

    gateway.advance(secs(2)).await;
    assert_eq!(gateway.life.end_heard(), Err(TryRecvError::Empty), "it is not stored yet");
    gateway.life.set_store_down(false);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.life.end_heard(), Ok(true));
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_hears_that_its_outcome_came_too_late() {
    let gateway = outside_saying(|_| Script::hangs()).await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.advance(HARD_DEADLINE * 4).await;

    assert_eq!(gateway.life.end_heard(), Ok(false));
    gateway.at_rest().await;
}
