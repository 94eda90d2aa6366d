//! The messages that wait and are marked, or will be.

use dashmap::DashMap;
use rejoinder_guard::Timestamp;
use tokio_util::sync::CancellationToken;

use super::leftovers::Leftovers;
use crate::model::{ConversationId, TurnId, TurnRecord, Version};

/// How many messages of a conversation are marked at once: of a flood only the first.
const MOST: usize = 5;

/// The messages that wait and are marked, or will be, by conversation.
#[derive(Default)]
pub(crate) struct Marks {
    waiting: DashMap<ConversationId, Vec<Waiting>>,
}

pub(crate) struct Waiting {
    turn: TurnId,
    /// The version of the turn when it began to wait.
    version: Version,
    ended: CancellationToken,
}

impl Marks {
    /// The turns whose messages wait, with their versions then.
    pub(crate) fn turns(&self) -> Vec<(TurnId, Version)> {
        let mut turns = Vec::new();
        for entry in &self.waiting {
            turns.extend(entry.value().iter().map(|waiting| (waiting.turn, waiting.version)));
        }
        turns
    }

    /// Notes that a message waits. Returns what is cancelled when it waits no more; `None` if too many wait.
    pub(crate) fn begin(&self, turn: &TurnRecord) -> Option<CancellationToken> {
        let mut waiting = self.waiting.entry(turn.conversation).or_default();
        let ended = CancellationToken::new();
        (waiting.len() < MOST).then(|| {
            waiting.push(Waiting { turn: turn.id, version: turn.version, ended: ended.clone() });
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

    /// A turn is not stored any more.
    pub(crate) fn forget(&self, turn: TurnId) {
        self.waiting.retain(|_, waiting| {
            for gone in waiting.extract_if(.., |one| one.turn == turn) {
                gone.ended.cancel();
            }
            !waiting.is_empty()
        });
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
