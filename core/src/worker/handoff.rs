//! What an agent is told of a turn that the ladder handed to it.

use rejoinder_guard::{Cause, Rung, SignalKind, Via};

use super::{input::Inputs, record::cut};
use crate::{
    base::words::excerpt,
    events::Run,
    model::{Action, AgentName, DeliveryRecord, Handler, Handoff, Masker, TriedRun, TurnRecord},
    ports::{AgentError, RunRecord, StoreError},
};

/// How many runs the agent is told of.
const MOST_RUNS: usize = 8;

/// How many characters the reason has.
const MOST_WHY: usize = 300;

/// How many bytes of what another agent said the agent is told.
const MOST_SAID: usize = 2 << 10;

/// The reason for silence of a run that gave an empty answer.
pub(super) const EMPTY: &str = "empty";

/// The `end` of a run that gave no answer in its time, in its record.
pub(super) const STOPPED: &str = "stopped";

impl Inputs {
    /// Why the ladder handed the turn to the agent of `run`; `None` if it did not.
    pub(super) async fn handoff(&self, turn: &TurnRecord, run: &Run) -> Result<Option<Handoff>, StoreError> {
        let obligation = &turn.obligation;
        let (Some(_), Some((cause, why))) = (obligation.handoff(), obligation.fallback()) else { return Ok(None) };
        let settings = self.settings.get();
        let why = if cause == Cause::Error { AgentError::summary_of(why) } else { why };
        let why = excerpt(&settings.masker.text(why.to_owned()), MOST_WHY);
        let runs = self.store.runs(turn.id).await?;
        let sent = if obligation.claims() == 0 { Vec::new() } else { self.outbox.deliveries(turn.id).await? };
        // Its own runs are the last ones.
        let before = run.number.saturating_sub(run.attempt) as usize;
        let tried = (0..before.min(runs.len())).filter_map(|index| tried(&runs, index, &sent, &settings.masker));
        let mut tried: Vec<_> = tried.collect();
        tried.drain(..tried.len().saturating_sub(MOST_RUNS));
        Ok(Some(Handoff { cause, why, tried }))
    }
}

/// What is told of one of the runs; `None` if it is no agent's.
fn tried(runs: &[RunRecord], index: usize, sent: &[DeliveryRecord], masker: &Masker) -> Option<TriedRun> {
    let run = &runs[index];
    let Handler::Agent(agent) = &run.handler else { return None };
    let end = run.end.as_deref().unwrap_or(STOPPED);
    let said = match end {
        "silent" => run.detail.clone().filter(|reason| reason != EMPTY),
        "deferral" | "approval" | "question" => run.detail.clone(),
        _ => answer(run, agent, runs.get(index + 1), sent),
    };
    let said = said.filter(|said| !said.trim().is_empty());
    let said = said.map(|said| cut(masker.text(said), MOST_SAID));
    Some(TriedRun { agent: agent.clone(), end: end.to_owned(), said })
}

/// The latest answer that was claimed for an agent between the start of its run and that of the next one.
fn answer(run: &RunRecord, agent: &AgentName, next: Option<&RunRecord>, sent: &[DeliveryRecord]) -> Option<String> {
    let is_its = |delivery: &&DeliveryRecord| {
        let is_agents = match &delivery.via {
            Via::Fallback { rung: Rung::Handoff(other), .. } => **other == **agent,
            Via::Fallback { .. } => false,
            _ => true,
        };
        let is_later = next.is_some_and(|next| delivery.created_at > next.started_at);
        is_agents
            && delivery.signal == SignalKind::Reply
            && !(delivery.is_draft() || delivery.is_copy || is_later)
            && delivery.created_at >= run.started_at
    };
    let claim = sent.iter().rfind(is_its)?.claim;
    let parts = sent.iter().filter(is_its).filter(|delivery| delivery.claim == claim);
    let texts = parts.filter_map(|delivery| match &delivery.action {
        Action::Send { content, .. } | Action::Edit { content, .. } => Some(content.text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}
