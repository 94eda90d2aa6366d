//! The checks of what goes to and fro during a run.

use std::time::Duration;

use super::{
    double::{AgentDouble, Conduct, again, turn},
    driver::{Run, reply, works},
};
use crate::model::agent::AgentMessage;

/// How many pieces of text a flood has: more than any channel holds.
const FLOOD: usize = 500;

/// How long the core reads none of them.
const PAUSE: Duration = Duration::from_millis(200);

/// A run that reports faster than the core reads waits for it: no text is lost, and it stays in order.
///
/// # Panics
/// When the check fails.
pub async fn a_flood_waits_and_loses_nothing(double: &dyn AgentDouble) {
    let words = (1..FLOOD).map(|number| format!(" and {number}"));
    let pieces: Vec<_> = std::iter::once("0".to_owned()).chain(words).collect();
    let whole = pieces.concat();
    assert!(double.conduct(1, Conduct::Says(pieces)), "every agent can say something");
    let mut run = Run::begin(double, turn("Hi"));
    let end = match run.starve(PAUSE).await {
        Some(end) => end,
        None => run.end().await,
    };
    assert_eq!(reply(end), whole, "the outcome holds the whole answer");
    let text = run.leaves_nothing().await;
    assert!(text.is_empty() || text == whole, "text was lost: {} of {} bytes came", text.len(), whole.len());
}

/// An answer that broke off is an error, never half an answer. The next run works.
///
/// # Panics
/// When the check fails.
pub async fn half_an_answer_is_an_error(double: &dyn AgentDouble) {
    if !double.conduct(1, Conduct::Breaks("Half an".to_owned())) {
        return;
    }
    let turn = turn("Hi");
    let mut run = Run::begin(double, again(&turn, 1));
    let end = run.end().await;
    assert!(end.is_err(), "half an answer was returned: {end:?}");
    run.leaves_nothing().await;
    works(double, again(&turn, 2)).await;
}

/// The agent is given what the run hears when it listens, because the run answers for it. Without a message the answer stays
/// as it was.
///
/// # Panics
/// When the check fails.
pub async fn what_a_run_hears_reaches_the_agent(double: &dyn AgentDouble) {
    const SAID: &str = "No, coffee!";
    let turn = turn("Hi");
    let listens = Conduct::Listens("Tea.".to_owned(), "Coffee.".to_owned());
    if !double.conduct(1, listens.clone()) || !double.conduct(2, listens) {
        return;
    }
    let mut run = Run::begin(double, again(&turn, 1));
    let sender = turn.message.sender.clone();
    let message = AgentMessage {
        sender,
        text: SAID.to_owned(),
        forwarded: None,
        attachments: Vec::new(),
        voice: None,
        quoted: None,
        reaction: None,
    };
    run.came.push(message);
    let said = reply(run.end().await);
    if run.has_listened {
        assert!(double.given().iter().any(|given| given.contains(SAID)), "the agent was not given what the run heard");
        assert!(said.contains("Coffee."), "the answer does not take it into account: {said:?}");
    } else {
        assert_eq!(said, "Tea.");
    }
    run.leaves_nothing().await;

    let mut run = Run::begin(double, again(&turn, 2));
    assert_eq!(reply(run.end().await), "Tea.", "nothing came");
    run.leaves_nothing().await;
}
