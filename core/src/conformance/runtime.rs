//! The runtime suite: checks that every agent runtime must pass.
//!
//! A runtime's crate implements [`AgentDouble`] for a double of its agent, and
//! [`runtime_conformance`](crate::runtime_conformance) makes a test of each check. To add a check, write it here, list it in
//! the macro, and seed a runtime that it finds in `core/tests/runtime_kit.rs`.

mod double;
mod driver;
mod stopping;
mod streams;

pub use self::{
    double::{AgentDouble, Conduct, decision, turn},
    stopping::{
        a_cancelled_run_ends_in_time, a_dropped_run_leaves_nothing, a_panic_ends_one_run,
        a_run_ends_when_nobody_reads_its_events,
    },
    streams::{a_flood_waits_and_loses_nothing, half_an_answer_is_an_error, what_a_run_hears_reaches_the_agent},
};
use self::{
    double::{again, says},
    driver::{Run, reply},
};

/// Makes a test of each check of the runtime suite. The argument is an expression whose value is a future of a new
/// [`AgentDouble`](crate::conformance::runtime::AgentDouble).
#[macro_export]
macro_rules! runtime_conformance {
    ($make:expr) => {
        $crate::runtime_conformance! { $make =>
            an_answer_is_whole
            nothing_is_reported_after_the_end
            two_runs_of_one_turn_do_not_mix
            a_dropped_run_leaves_nothing
            a_cancelled_run_ends_in_time
            a_run_ends_when_nobody_reads_its_events
            a_panic_ends_one_run
            a_flood_waits_and_loses_nothing
            half_an_answer_is_an_error
            what_a_run_hears_reaches_the_agent
        }
    };
    ($make:expr => $($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                $crate::conformance::runtime::$check(&$make.await).await;
            }
        )*
    };
}

/// The outcome holds the whole answer. Of what is reported meanwhile, the person sees the same, or nothing.
///
/// # Panics
/// When the check fails.
pub async fn an_answer_is_whole(double: &dyn AgentDouble) {
    assert!(double.conduct(1, says(&["Hello", ", ", "Ada."])), "every agent can say something");
    let mut run = Run::begin(double, turn("Hi"));
    assert_eq!(reply(run.end().await), "Hello, Ada.", "the outcome holds the whole answer");
    let text = run.leaves_nothing().await;
    assert!(text.is_empty() || text == "Hello, Ada.", "the drafts are not the answer: {text:?}");
    assert!(double.given().iter().any(|given| given.contains("Hi")), "the agent was not given the message");
}

/// After a run has ended, nothing reports events for it.
///
/// # Panics
/// When the check fails.
pub async fn nothing_is_reported_after_the_end(double: &dyn AgentDouble) {
    assert!(double.conduct(1, says(&["Hello", ", ", "Ada."])), "every agent can say something");
    let mut run = Run::begin(double, turn("Hi"));
    reply(run.end().await);
    run.leaves_nothing().await;
}

/// Two runs of one turn at once, as after a crash of which one side knows nothing, have their own answers.
///
/// # Panics
/// When the check fails.
pub async fn two_runs_of_one_turn_do_not_mix(double: &dyn AgentDouble) {
    let turn = turn("Hi");
    for (attempt, said) in [(1, ["one ", "is here"]), (2, ["two ", "is here"])] {
        assert!(double.conduct(attempt, says(&said)), "every agent can say something");
    }
    let (mut one, mut two) = (Run::begin(double, again(&turn, 1)), Run::begin(double, again(&turn, 2)));
    let ends = tokio::join!(one.end(), two.end());
    for (end, run, said) in [(ends.0, one, "one is here"), (ends.1, two, "two is here")] {
        assert_eq!(reply(end), said, "the answer is that of another run");
        let text = run.leaves_nothing().await;
        assert!(text.is_empty() || text == said, "the drafts are those of another run: {text:?}");
    }
}
