//! The messages that wait and are marked, or will be.

use dashmap::DashMap;
use rejoinder_guard::Timestamp;
use tokio_util::sync::CancellationToken;

use super::leftovers::Leftovers;
use crate::model::{ConversationId, TurnId, TurnRecord};

/// How many messages of a conversation are marked at once: of a flood only the first.
const MOST: usize = 5;

/// The messages that wait and are marked, or will be, by conversation.
#[derive(Default)]
pub(crate) struct Marks {
    waiting: DashMap<ConversationId, Vec<Waiting>>,
}

pub(crate) struct Waiting {
    turn: TurnId,
    ended: CancellationToken,
}

impl Marks {
    /// Notes that a message waits. Returns what is cancelled when it waits no more; `None` if too many wait.
    pub(crate) fn begin(&self, turn: &TurnRecord) -> Option<CancellationToken> {
        let mut waiting = self.waiting.entry(turn.conversation).or_default();
        let ended = CancellationToken::new();
        (waiting.len() < MOST).then(|| {
            waiting.push(Waiting { turn: turn.id, ended: ended.clone() });
            ended
        })
    }

    pub(crate) fn remove(&self, turn: &TurnRecord) -> Option<Waiting> {
        let mut waiting = self.waiting.get_mut(&turn.conversation)?;
        let index = waiting.iter().position(|one| one.turn == turn.id)?;
        let removed = waiting.swap_remove(index);
        drop(waiting);
        self.waiting.remove_if(&turn.conversation, |_, waiting| waiting.is_empty());
        Some(removed)
    }

    /// The message of a turn waits no more. One that came before `since` may have been marked by another process.
    pub(crate) fn end(&self, turn: &TurnRecord, since: Timestamp, leftovers: &Leftovers) {
        match self.remove(turn) {
            Some(waiting) => waiting.ended.cancel(),
            None if turn.event.received_at < since => leftovers.take_mark_away(turn.clone()),
            None => {}
        }
    }
}
