//! What operators see of turns and agents.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::{
    AgentName, Cost, FallbackView, Obligation, ObligationState, Settlement, StoreError, TurnStatus, Via,
    store::{AgentFigures, Backlog, TurnSummary},
};

use super::{
    columns::{Columns, record, records},
    run::cost,
};

pub(crate) fn record(row: &impl Columns) -> Result<TurnSummary, StoreError> {
    let state: String = row.value("state")?;
    // The operator sees also what cannot be read, as far as the columns tell.
    let obligation = row.value::<Obligation>("body").ok();
    let status = obligation.as_ref().map_or_else(|| status_of(&state), TurnStatus::of);
    let (signal, fallback) = match obligation.as_ref().map(Obligation::state) {
        Some(ObligationState::Settled(Settlement::Signal { signal, via, .. })) => (Some(*signal), fallback(via)),
        _ => (None, None),
    };
    let error: Option<String> = row.value("error")?;
    let is_paused: bool = row.value("is_paused")?;
    Ok(record!(row => TurnSummary {
        turn_id: id, conversation_id, accepted_at, owed, wake_at, ended_at;
        sender: row.sender(),
        is_spoken: row.is_spoken(),
        text: row.value::<Option<String>>("text")?.unwrap_or_default(),
        why: obligation.as_ref().and_then(|obligation| why(obligation, is_paused, error)),
        conversation: row.conversation()?,
        handler: row.handler()?,
        state,
        status,
        is_unreadable: obligation.is_none(),
        signal,
        fallback,
    }))
}

fn why(obligation: &Obligation, is_paused: bool, error: Option<String>) -> Option<String> {
    let what = match obligation.state() {
        ObligationState::Undeliverable { reason } => return Some(reason.clone()),
        ObligationState::Settled(Settlement::Cancelled { by }) => return Some(by.to_string()),
        ObligationState::Settled(Settlement::Signal { via: Via::GivenUp { reason }, .. }) => {
            return Some(format!("given up by the operator: {reason}"));
        }
        ObligationState::Settled(_) => return None,
        _ if obligation.is_held() => "it is held by the operator",
        _ if obligation.is_postponed() => "it came late, and the chat is asked whether to answer it",
        ObligationState::Claimed(_) if is_paused => "its channel is paused",
        ObligationState::Claimed(_) => match error {
            Some(error) => return Some(format!("it cannot be sent: {error}")),
            None => "it is being sent",
        },
        ObligationState::Merged { .. } => "another turn answers for it",
        _ if obligation.is_waiting() => "it waits for a run",
        _ if obligation.is_suspended() => "it waits for an approval",
        _ if obligation.is_running() => "the agent works on it",
        ObligationState::Deferred => "it is deferred",
        ObligationState::Open => "its run has ended",
    };
    Some(what.to_owned())
}

fn status_of(state: &str) -> TurnStatus {
    match state {
        "settled" => TurnStatus::Answered,
        "undeliverable" => TurnStatus::Undeliverable,
        "deferred" => TurnStatus::Deferred,
        _ => TurnStatus::Accepted,
    }
}

fn fallback(via: &Via) -> Option<FallbackView> {
    match via {
        Via::Fallback { cause, rung } => Some(FallbackView { cause: *cause, rung: rung.to_string() }),
        _ => None,
    }
}

records! {
    pub(crate) fn backlog(row) -> Backlog {
        open, overdue, waiting, pending_deliveries: pending, parked_deliveries: parked, absent, undeliverable,
        dead_copies, deferred, oldest_open
    }
}

/// From rows of runs that have ended, and from rows with a number for each agent: of turns that wait for it, and of its sessions.
pub(crate) fn of_agents<R: Columns>(
    runs: &[R],
    waiting: &[R],
    sessions: &[R],
) -> Result<Vec<AgentFigures>, StoreError> {
    let mut agents: BTreeMap<AgentName, (AgentFigures, Vec<u64>)> = BTreeMap::new();
    for row in runs {
        let (figures, times) = agents.entry(row.value("agent")?).or_default();
        figures.runs += 1;
        figures.failed += u64::from(row.value::<bool>("failed")?);
        figures.usage.input_tokens += row.value::<u64>("input")?;
        figures.usage.output_tokens += row.value::<u64>("output")?;
        if let Some(cost) = cost(row)? {
            let sum = figures.cost.get_or_insert(Cost { micros: 0, currency: cost.currency });
            if sum.currency == cost.currency {
                sum.micros = sum.micros.saturating_add(cost.micros);
            }
        }
        times.push(row.value("took")?);
    }
    for row in waiting {
        agents.entry(row.value("agent")?).or_default().0.waiting = row.value("number")?;
    }
    for row in sessions {
        agents.entry(row.value("agent")?).or_default().0.sessions = row.value("number")?;
    }
    let figures = agents.into_iter().map(|(agent, (figures, mut times))| {
        times.sort_unstable();
        let quantile = |percent: usize| {
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(index).map_or(Duration::ZERO, |took| Duration::from_millis(*took))
        };
        AgentFigures { agent, p50: quantile(50), p95: quantile(95), ..figures }
    });
    Ok(figures.collect())
}
