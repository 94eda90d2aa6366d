//! Turns that were accepted lately and wait, so that they need not be read before they run.

use quick_cache::sync::Cache;

use crate::{
    model::{ids::TurnId, turn::TurnRecord},
    ports::store::record::WaitingTurn,
};

/// How many turns are kept.
const TURNS: usize = 512;

/// How much text and payload a turn that is kept may have, in bytes.
const LARGEST: usize = 8 << 10;

/// Some of the turns that wait.
pub(crate) struct Lately(Cache<TurnId, TurnRecord>);

impl Default for Lately {
    fn default() -> Self {
        Self(Cache::new(TURNS))
    }
}

impl Lately {
    /// Keeps a turn that was just accepted.
    pub(super) fn keep(&self, turn: TurnRecord) {
        let event = &turn.event;
        if event.text.len() + event.raw.len() <= LARGEST {
            // Turns that run before it may begin the transcript.
            self.0.insert(turn.id, TurnRecord { has_history: true, ..turn });
        }
    }

    /// Takes a turn out, if it is here as the store has it.
    pub(super) fn take(&self, stored: &WaitingTurn) -> Option<TurnRecord> {
        let (_, turn) = self.0.remove(&stored.turn)?;
        (turn.version == stored.version).then_some(turn)
    }
}
