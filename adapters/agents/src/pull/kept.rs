//! The lease of a run as it is stored, so that its worker can go on after a restart of the gateway.

use rejoinder_core::{AgentTurn, RunEvents};
use serde::{Deserialize, Serialize};

use super::leases::KeptLease;
use crate::wire::WireTurn;

/// A lease, and of what.
#[derive(Serialize, Deserialize)]
struct Note {
    /// Of a cascade, the member.
    agent: String,
    /// [What is asked](WireTurn::digest): a worker that was asked something else answers something else.
    asked: String,
    /// Whether its worker has not been heard since a start: another start does not let it begin anew.
    is_silent: bool,
    #[serde(flatten)]
    kept: KeptLease,
}

/// The lease that a worker had of this turn when the process before ended, if it was asked the same.
pub(super) fn of(agent: &str, turn: &AgentTurn) -> Option<KeptLease> {
    let note: Note = serde_json::from_str(turn.past.holder.as_deref()?).ok()?;
    let is_asked = turn.rights.tools.is_none() && note.agent == agent && note.asked == WireTurn::digest(turn);
    (is_asked && !note.is_silent).then_some(note.kept)
}

/// Stores the lease of a run, before its worker gets the turn. Not of a run whose worker calls tools: their calls are in this process.
/// Returns false if the lease could not be stored.
pub(super) async fn keep(agent: &str, turn: &AgentTurn, kept: KeptLease, is_silent: bool, events: &RunEvents) -> bool {
    if turn.rights.tools.is_some() {
        return true;
    }
    let note = Note { agent: agent.to_owned(), asked: WireTurn::digest(turn), is_silent, kept };
    let note = serde_json::to_string(&note).expect("texts serialise to JSON");
    let stored = events.hand_out(note).await;
    if let Err(why) = &stored {
        tracing::warn!(agent, turn_id = %turn.turn, why, "the lease of a worker would not outlive a restart");
    }
    stored.is_ok()
}

/// Stores that the lease ends with this process, because what its worker has said is kept here alone.
///
/// # Errors
/// When it cannot be stored now.
pub(super) async fn forget(turn: &AgentTurn, events: &RunEvents) -> Result<(), String> {
    if turn.rights.tools.is_some() { Ok(()) } else { events.hand_out("").await }
}
