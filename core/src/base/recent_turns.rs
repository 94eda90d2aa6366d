//! Turns that were just stored, and are needed again soon: they need not be read.

use quick_cache::sync::Cache;

use crate::model::{TurnId, TurnRecord};

const TURNS: usize = 512;

/// How much text and payload a turn that is kept may have, in bytes.
const LARGEST: usize = 8 << 10;

/// Turns as they were stored. They may have changed since.
pub(crate) struct RecentTurns(Cache<TurnId, TurnRecord>);

impl Default for RecentTurns {
    fn default() -> Self {
        Self(Cache::new(TURNS))
    }
}

impl RecentTurns {
    /// Keeps a turn, unless it is large.
    pub(crate) fn keep(&self, turn: TurnRecord) {
        let event = &turn.event;
        if event.text.len() + event.raw.len() <= LARGEST {
            self.0.insert(turn.id, turn);
        }
    }

    /// Whether a turn is kept.
    pub(crate) fn has(&self, turn: TurnId) -> bool {
        self.0.contains_key(&turn)
    }

    /// Takes a turn out.
    pub(crate) fn take(&self, turn: TurnId) -> Option<TurnRecord> {
        self.0.remove(&turn).map(|(_, turn)| turn)
    }
}
