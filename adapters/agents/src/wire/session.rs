//! What an agent with a memory of its own is told of a session.

use rejoinder_core::SessionNotice;
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// What happened to a session of which the agent was given a turn, for an agent with `sessions = true`.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionChanged)]
pub(crate) struct WireSession {
    session_changed: Changed,
}

/// A change of a session.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionChange)]
struct Changed {
    session_id: String,
    /// `deleted`: forget all of it, no turn of it will come. `turn_removed`: forget the turn. `left`: nothing need be done, somebody may
    /// go back to it.
    change: &'static str,
    /// The removed turn, which the agent may not have had.
    #[schema(nullable = false)]
    turn_id: Option<String>,
}

impl WireSession {
    pub(crate) fn of(notice: &SessionNotice) -> Self {
        let SessionNotice { session, change, .. } = notice;
        Self {
            session_changed: Changed {
                session_id: session.to_string(),
                change: change.as_str(),
                turn_id: change.turn().map(|turn| turn.to_string()),
            },
        }
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts serialise to JSON")
    }

    /// By what the same change is recognised when the agent is told again.
    pub(crate) fn id(&self) -> String {
        let Changed { session_id, change, turn_id } = &self.session_changed;
        match turn_id {
            Some(turn) => format!("{session_id}-{change}-{turn}"),
            None => format!("{session_id}-{change}"),
        }
    }
}
