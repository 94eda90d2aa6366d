//! The checks of runs that do not end by themselves.

use std::time::Duration;

use super::{
    double::{AgentDouble, Conduct, again, says, turn},
    driver::{Run, works},
};
use crate::worker::GRACE;

/// How often a run may wait before it has ended: enough for a few pieces of text over a connection.
const MOST_STEPS: usize = 200;

/// How long a run may take to end that nobody cancels.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run that is dropped at any await leaves nothing behind: no events, and no work of the agent. The next run of its turn
/// works.
///
/// # Panics
/// When the check fails.
pub async fn a_dropped_run_leaves_nothing(double: &dyn AgentDouble) {
    let turn = turn("Hi");
    let attempts = (1..).step_by(2);
    for (steps, attempt) in (1..=MOST_STEPS).zip(attempts) {
        assert!(double.conduct(attempt, says(&["Hello", ", ", "Ada."])), "every agent can say something");
        let mut run = Run::begin(double, again(&turn, attempt));
        let has_ended = run.steps(steps).await.is_some();
        run.leaves_nothing().await;
        works(double, again(&turn, attempt + 1)).await;
        if has_ended {
            return;
        }
    }
    panic!("the run has not ended after {MOST_STEPS} steps");
}

/// A run that is cancelled ends within two seconds, also if it was cancelled before it began, and leaves nothing behind. The
/// next run works.
///
/// # Panics
/// When the check fails.
pub async fn a_cancelled_run_ends_in_time(double: &dyn AgentDouble) {
    let turn = turn("Hi");
    for (attempt, is_early) in [(1, true), (3, false)] {
        if !double.conduct(attempt, Conduct::Hangs("Let me".to_owned())) {
            return;
        }
        let mut run = Run::begin(double, again(&turn, attempt));
        if !is_early {
            run.reach_the_agent().await;
        }
        run.cancel.cancel();
        assert!(run.end_within(GRACE).await.is_some(), "the run goes on though it is cancelled");
        run.leaves_nothing().await;
        works(double, again(&turn, attempt + 1)).await;
    }
}

/// A run ends although the core reads no more of its events: what it sends is suppressed, and what it listens to is silent.
///
/// # Panics
/// When the check fails.
pub async fn a_run_ends_when_nobody_reads_its_events(double: &dyn AgentDouble) {
    let turn = turn("Hi");
    let listens = Conduct::Listens("Tea.".to_owned(), "Coffee.".to_owned());
    let conducts = [says(&["Hello", ", ", "Ada."]), Conduct::Sends("Hello.".to_owned()), listens];
    for (attempt, conduct) in (1..).zip(conducts) {
        if !double.conduct(attempt, conduct.clone()) {
            continue;
        }
        let mut run = Run::begin(double, again(&turn, attempt));
        run.close();
        let end = run.end_within(PATIENCE).await;
        assert!(end.is_some(), "the run goes on though nobody reads its events: {conduct:?}");
        run.leaves_nothing().await;
    }
}

/// A panic ends one run. The next one works.
///
/// # Panics
/// When the check fails.
pub async fn a_panic_ends_one_run(double: &dyn AgentDouble) {
    if !double.conduct(1, Conduct::Panics) {
        return;
    }
    let turn = turn("Hi");
    let mut run = Run::begin(double, again(&turn, 1));
    let end = run.end_or_panic().await;
    assert!(end.is_none(), "the run was to panic: {end:?}");
    run.leaves_nothing().await;
    works(double, again(&turn, 2)).await;
}
