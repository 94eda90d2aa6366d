//! The lines of a session as a statement gives them: JSON in one row.

use std::sync::Arc;

use rejoinder_core::{HistoryLine, LineState, SessionId, StoreError, TurnId, json_error, store::TurnSeq};
use serde::Deserialize;

/// A line with its keys for finding and ordering.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StoredLine {
    pub(crate) seq: TurnSeq,
    pub(crate) claim: u32,
    pub(crate) turn: TurnId,
    state: State,
    reason: Option<String>,
    pub(crate) line: Arc<HistoryLine>,
}

/// The column `state` of `transcript_lines`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Seen,
    Partly,
    Stopped,
    OnItsWay,
    NotDelivered,
}

impl StoredLine {
    #[cfg(test)]
    pub(crate) fn of(seq: TurnSeq, claim: u32, turn: TurnId, line: HistoryLine) -> Self {
        Self { seq, claim, turn, state: State::Seen, reason: None, line: Arc::new(line) }
    }

    fn with_state(mut self) -> Self {
        let state = match self.state {
            State::Seen => LineState::Seen,
            State::Partly => LineState::Partly,
            State::Stopped => LineState::Stopped,
            State::OnItsWay => LineState::OnItsWay,
            State::NotDelivered => LineState::NotDelivered(self.reason.take().unwrap_or_else(|| "not_sent".to_owned())),
        };
        Arc::make_mut(&mut self.line).state = state;
        self
    }
}

/// The lines that can be read. Only if there is another one is each read by itself.
pub(crate) fn parse_lines(session: SessionId, text: &str) -> Result<Vec<StoredLine>, StoreError> {
    if let Ok(lines) = serde_json::from_str::<Vec<StoredLine>>(text) {
        return Ok(lines.into_iter().map(StoredLine::with_state).collect());
    }
    let lines: Vec<serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("a transcript: {}", json_error(&error))))?;
    let read = |line| match serde_json::from_value::<StoredLine>(line) {
        Ok(line) => Some(line.with_state()),
        Err(error) => {
            tracing::error!(%session, error = json_error(&error), "a line of a transcript cannot be read, and is left out");
            None
        }
    };
    Ok(lines.into_iter().filter_map(read).collect())
}
