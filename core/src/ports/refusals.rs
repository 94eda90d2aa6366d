//! What was sent for a turn by somebody who does not have it, on its way to the record of the turn.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use tracing::warn;

use crate::model::{Texts, TurnId};

/// How many wait to be recorded at most.
const MOST: usize = 256;

/// An outcome that a runtime does not use, because who sent it does not have the turn, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The turn, which may have ended long ago, or may be none at all.
    pub turn: TurnId,
    /// What was refused, from whom and why, in one line for the operator. None of its words.
    pub detail: String,
}

/// Refusals that wait to be recorded. Runtimes note them; the core takes them.
#[derive(Debug, Default)]
pub struct Refusals {
    waiting: Mutex<VecDeque<Refusal>>,
    noted: Notify,
}

impl Refusals {
    /// Has a refusal recorded with its turn soon. If too many wait, it is left out.
    pub fn note(&self, mut refusal: Refusal) {
        refusal.detail.strip_nul();
        let mut waiting = self.lock();
        if waiting.len() == MOST {
            drop(waiting);
            warn!(turn = %refusal.turn, "too many refused outcomes wait to be recorded, this one is left out");
            return;
        }
        waiting.push_back(refusal);
        drop(waiting);
        self.noted.notify_one();
    }

    /// Waits for the next one, and takes it out.
    pub async fn next(&self) -> Refusal {
        loop {
            if let Some(refusal) = self.take() {
                return refusal;
            }
            self.noted.notified().await;
        }
    }

    /// Takes the next one out, if there is one.
    pub fn take(&self) -> Option<Refusal> {
        self.lock().pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Refusal>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    #[tokio::test]
    async fn of_too_many_refusals_the_first_are_kept() {
        let refusals = Refusals::default();
        let turn = TurnId::new(Timestamp::from_millis(0));
        for number in 0..=MOST {
            refusals.note(Refusal { turn, detail: number.to_string() });
        }

        assert_eq!(refusals.next().await.detail, "0");
        let kept: Vec<_> = std::iter::from_fn(|| refusals.take()).collect();
        assert_eq!((kept.len(), &*kept[MOST - 2].detail), (MOST - 1, "255"));
    }
}
