//! The runtime suite: checks that every agent runtime must pass.
//!
//! A runtime's crate implements [`AgentDouble`] for a double of its agent, and
//! [`runtime_conformance`](crate::runtime_conformance) makes a test of each check. To add a check, write it here, list it in
//! the macro, and seed a runtime that it finds in `core/tests/runtime_kit.rs`.

mod driver;
mod stopping;
mod streams;

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Timestamp;

use self::driver::{Run, reply};
pub use self::{
    stopping::{
        a_cancelled_run_ends_in_time, a_dropped_run_leaves_nothing, a_panic_ends_one_run,
        a_run_ends_when_nobody_reads_its_events,
    },
    streams::{a_flood_waits_and_loses_nothing, half_an_answer_is_an_error, what_a_run_hears_reaches_the_agent},
};
use super::scripted::capabilities;
use crate::{
    model::{
        agent::{AgentTurn, DeferralLimits, Surface},
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Sender, SenderKind},
        ids::{SessionId, TurnId},
    },
    ports::agent::AgentRuntime,
};

/// What the agent does in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// It says these pieces of text, which together are its answer.
    Says(Vec<String>),
    /// It sends this text as its answer before the end of the run.
    Sends(String),
    /// It says the first text, and answers what came meanwhile, if the run has heard anything, with the second one.
    Listens(String, String),
    /// It says this, and then nothing more, and does not end.
    Hangs(String),
    /// It says this, and then breaks: its connection is cut, its process is killed, or it sends what cannot be read.
    Breaks(String),
    /// It makes the runtime panic.
    Panics,
}

/// A double of an agent, with a runtime that is connected to it.
pub trait AgentDouble: Send + Sync {
    /// The runtime under test.
    fn runtime(&self) -> Arc<dyn AgentRuntime>;

    /// Says what the agent does in the run with this [`attempt`](AgentTurn::attempt). Returns `false` if it cannot do that.
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool;

    /// On how many runs the agent works now.
    fn at_work(&self) -> usize;

    /// All that the agent was given in all runs.
    fn given(&self) -> Vec<String>;
}

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

/// A message from Ada in a direct chat, in the first run of its turn.
#[must_use]
pub fn turn(text: &str) -> AgentTurn {
    // 2023-11-14T22:13:20Z
    let now = Timestamp::from_millis(1_700_000_000_000);
    AgentTurn {
        turn: TurnId::new(now),
        conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
        chat: ChatKind::Direct,
        surface: Surface::Chat("Telegram".into()),
        session: SessionId::new(now),
        model: None,
        attempt: 1,
        deferred: None,
        may_defer: DeferralLimits { left: 3, longest: Duration::from_hours(24) },
        approvals: Vec::new(),
        may_ask_approval: false,
        may_schedule: false,
        sender: Sender { id: "ada".into(), name: Some("Ada".into()), username: None, kind: SenderKind::Person },
        language: None,
        text: text.into(),
        forwarded: None,
        instructions: None,
        reaction: None,
        attachments: Vec::new(),
        quoted: None,
        more: Vec::new(),
        history: Vec::new(),
        capabilities: capabilities(),
        cut_off: "The rest is missing.".to_owned(),
        now,
        deadline: now + Duration::from_mins(10),
        trace: None,
    }
}

/// The same turn in another run.
fn again(turn: &AgentTurn, attempt: u32) -> AgentTurn {
    AgentTurn { attempt, ..turn.clone() }
}

fn says(pieces: &[&str]) -> Conduct {
    Conduct::Says(pieces.iter().map(|piece| (*piece).to_owned()).collect())
}

/// The runtime works on this run of the turn as if there had been none before.
async fn works(double: &dyn AgentDouble, turn: AgentTurn) {
    assert!(double.conduct(turn.attempt, says(&["It ", "works."])), "every agent can say something");
    let mut run = Run::begin(double, turn);
    assert_eq!(reply(run.end().await), "It works.", "the next run works");
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
