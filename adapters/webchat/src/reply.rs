//! What a socket answers to the frames of its page.

use axum::extract::ws::Utf8Bytes;
use rejoinder_core::{TurnId, TurnView};

use crate::protocol::{Problem, ServerFrame};

/// A frame to write, and the turns whose final state it shows.
pub(crate) struct Reply {
    pub(crate) text: Utf8Bytes,
    pub(crate) shown_turns: Vec<TurnId>,
}

impl Reply {
    pub(crate) fn plain(frame: &ServerFrame<'_>) -> Self {
        Self { text: frame.to_text(), shown_turns: Vec::new() }
    }

    pub(crate) fn with_turns(frame: &ServerFrame<'_>, turns: &[TurnView]) -> Self {
        let shown_turns = turns.iter().filter(|turn| turn.status.is_final()).map(|turn| turn.turn_id).collect();
        Self { text: frame.to_text(), shown_turns }
    }
}

/// Says that a frame could not be handled.
pub(crate) fn refusal(id: Option<&str>, problem: Problem) -> Reply {
    Reply::plain(&ServerFrame::Error { id, problem })
}
