//! The voice notes that are being written down for this node, and who waits for the words.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::model::TurnId;

/// The voice notes that are being written down. Their turns are stored, so this may be lost.
pub(crate) struct Hearings {
    wanted: mpsc::UnboundedSender<TurnId>,
    /// Each with a token that is cancelled when it ends.
    under_way: Mutex<HashMap<TurnId, CancellationToken>>,
}

impl Hearings {
    /// Also returns the receiver of the turns whose voice notes are to be written down.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<TurnId>) {
        let (wanted, turns) = mpsc::unbounded_channel();
        (Arc::new(Self { wanted, under_way: Mutex::default() }), turns)
    }

    /// Has the voice note of a turn written down, unless it is under way. The token is cancelled at the end, with words or without.
    pub(crate) fn begin(&self, turn: TurnId) -> CancellationToken {
        let mut under_way = self.under_way();
        let ended = under_way.entry(turn).or_insert_with(|| {
            // Sending fails only after the gateway has ended.
            let _ = self.wanted.send(turn);
            CancellationToken::new()
        });
        ended.clone()
    }

    /// The voice note of a turn is under way until this is dropped.
    pub(crate) const fn ends(&self, turn: TurnId) -> Ends<'_> {
        Ends { hearings: self, turn }
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<TurnId, CancellationToken>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the writing down of a voice note when it is dropped.
pub(crate) struct Ends<'a> {
    hearings: &'a Hearings,
    turn: TurnId,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.hearings.under_way().remove(&self.turn) {
            ended.cancel();
        }
    }
}
