//! Sends undeliverable answers to their people on another channel. The guard allows it once for each turn. After a
//! crash the next start finds the rest among the dead letters. While other nodes live, where turns become dead letters as well, it looks
//! for them from time to time.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::sync::{Mutex, mpsc};
use tracing::warn;

use crate::{
    base::{crash::crash_point, lifecycle::Lifecycle, pauses},
    model::{LiveSettings, TurnId},
    nodes::hints::Hints,
    operations::Operations,
    operator::error::OperationError,
    ports::{DeadLetterFilter, OperatorStore, SharedClock, StoreError},
};

/// How long after it became a dead letter a turn is looked at by the next start.
const REMEMBERED: Duration = Duration::from_hours(24);

/// How often it looks for dead letters of other nodes of which it was not told.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How long ago these became dead letters at most.
const MISSED: Duration = Duration::from_mins(5);

/// How many dead letters are looked at.
const MOST: u32 = 500;

/// Sends answers elsewhere.
pub(crate) struct Forwarder {
    pub(crate) store: Arc<dyn OperatorStore>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) turns: Mutex<mpsc::UnboundedReceiver<TurnId>>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Forwarder {
    /// Sends the answers that earlier processes left, and then each new dead letter, until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, lifecycle: Lifecycle) {
        let mut turns = self.turns.lock().await;
        let left = loop {
            match self.left(REMEMBERED).await {
                Ok(left) => break left,
                Err(error) => warn!(%error, "cannot read which answers may go elsewhere, retrying"),
            }
            if !lifecycle.pause(pauses::READ_AGAIN).await {
                return;
            }
        };
        let mut waiting = VecDeque::from(left);
        loop {
            while let Ok(turn) = turns.try_recv() {
                waiting.push_back(turn);
            }
            let turn = if let Some(turn) = waiting.pop_front() {
                turn
            } else {
                tokio::select! {
                    turn = turns.recv() => match turn {
                        Some(turn) => turn,
                        None => return,
                    },
                    goes_on = lifecycle.pause_unless_stopping(LOOK_AGAIN), if self.hints.may_be_any() => {
                        if !goes_on {
                            return;
                        }
                        if self.hints.any() {
                            waiting.extend(self.left(MISSED).await.unwrap_or_default());
                        }
                        continue;
                    }
                    () = lifecycle.stopping.cancelled() => return,
                }
            };
            if !self.is_done(turn).await {
                // Not before the others: it may be this one alone that cannot be sent.
                waiting.push_back(turn);
                if !lifecycle.pause(pauses::READ_AGAIN).await {
                    return;
                }
            }
        }
    }

    /// The turns that became dead letters lately.
    async fn left(&self, span: Duration) -> Result<Vec<TurnId>, StoreError> {
        let since = self.clock.now();
        let filter = DeadLetterFilter { limit: MOST, ..DeadLetterFilter::default() };
        let mut letters = self.store.dead_letters(&filter).await?;
        letters.retain(|letter| !letter.is_copy && letter.ended_at.is_some_and(|at| at + span > since));
        Ok(letters.into_iter().map(|letter| letter.turn).collect())
    }

    /// Sends the answer of a turn. `false` if that must be tried again.
    async fn is_done(&self, turn: TurnId) -> bool {
        if !self.settings.get().elsewhere {
            return true;
        }
        crash_point!("before_elsewhere");
        match self.operations.send_elsewhere(turn).await {
            Ok(()) => true,
            Err(error) => {
                warn!(%turn, %error, "an answer was not sent elsewhere");
                matches!(error, OperationError::Store(StoreError::CorruptTurn { .. } | StoreError::Corrupt(_)))
            }
        }
    }
}
