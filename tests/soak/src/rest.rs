//! Waits until nothing is owed any more, and shows what is wrong then.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use rejoinder_tests::Gateway;
use tokio::{task::JoinSet, time::sleep};

use crate::{channel::Channel, crowd::Crowd, evidence, judge::Verdict};

/// How long the gateway may take to settle everything once all failures are lifted.
const GRACE: Duration = Duration::from_mins(3);
/// How long nothing must be owed before it is judged: what is sent beside a signal comes after it.
const REST: Duration = Duration::from_secs(3);
/// How many problems are explained.
pub(crate) const EXPLAINED: usize = 10;

/// What is put to the test: one process, or several nodes with the same rows.
pub(crate) trait Subject {
    /// Starts again what has ended by itself.
    fn revive(&mut self);

    /// There is at least one.
    fn gateways(&self) -> &[Gateway];
}

/// Waits until every message of `crowd` is accepted and nothing is owed. `earlier` are the turns of other messages. Returns how long
/// that took; `None` if it took too long.
pub(crate) async fn settle(
    subject: &mut impl Subject,
    crowd: &Crowd,
    channels: &[Arc<dyn Channel>],
    writing: &mut JoinSet<()>,
    earlier: &HashSet<String>,
) -> Option<Duration> {
    let begun = Instant::now();
    let mut since = None;
    while begun.elapsed() < GRACE {
        sleep(Duration::from_millis(500)).await;
        subject.revive();
        while writing.try_join_next().is_some() {}
        if !writing.is_empty()
            || crowd.trying_count() > 0
            || channels.iter().any(|channel| channel.unacknowledged() > 0)
            || !nothing_is_owed(subject.gateways(), earlier.len() + crowd.said_count()).await
        {
            since = None;
            continue;
        }
        let since = *since.get_or_insert_with(Instant::now);
        if since.elapsed() >= REST {
            return Some(since.duration_since(begun));
        }
    }
    None
}

/// Whether all are ready and have so many turns, none of which is owed.
async fn nothing_is_owed(gateways: &[Gateway], said: usize) -> bool {
    for gateway in gateways {
        if !is_ready(gateway).await {
            return false;
        }
    }
    let (turns, owed) = evidence::counts(&gateways[0]).await;
    owed == 0 && turns >= said
}

pub(crate) async fn is_ready(gateway: &Gateway) -> bool {
    let ready = gateway.http().get(format!("{}/readyz", gateway.url())).send().await;
    ready.is_ok_and(|response| response.status().is_success())
}

/// Prints what was left over, and why.
pub(crate) fn explain_leftovers(verdict: &Verdict, gateway: &Gateway) {
    for leftover in verdict.leftovers.iter().take(EXPLAINED) {
        eprintln!("left over: {}", leftover.detail);
        if let Some(turn) = &leftover.turn {
            eprintln!("{}", gateway.explain(turn));
        }
    }
}

/// Prints the first problems, and how they came about.
pub(crate) fn explain_problems(verdict: &Verdict, gateway: &Gateway) {
    for problem in verdict.problems.iter().take(EXPLAINED) {
        eprintln!("\n{:?}: {} ({}): {}", problem.wrong, problem.about, problem.chat, problem.detail);
        if let Some(turn) = &problem.turn {
            eprintln!("{}", gateway.explain(turn));
        }
    }
}
