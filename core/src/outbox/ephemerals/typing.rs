//! Typing notices.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::show::{Ephemerals, MIN_PAUSE};
use crate::model::{Action, Capabilities, Class, DeliveryError, TurnRecord};

/// The delay before the first notice: a faster answer needs none.
const TYPING_AFTER: Duration = Duration::from_millis(200);

/// How long the conversation's next turn may wait for the end of the notice.
const END_WAIT: Duration = Duration::from_secs(1);

/// How often the end of the notice is sent until it gets through: an answer goes first, and interrupts it.
const END_ATTEMPTS: u32 = 5;

/// A typing notice that is renewed until it is ended.
pub(crate) struct Typing {
    ephemerals: Arc<Ephemerals>,
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Typing {
    /// `is_own`: whether this node runs the turn.
    pub(crate) fn start(
        ephemerals: &Arc<Ephemerals>,
        turn: &TurnRecord,
        capabilities: &Capabilities,
        stop: &CancellationToken,
        is_own: bool,
    ) -> Self {
        let ended = stop.child_token();
        let (interval, ends_by_itself) = (capabilities.typing_interval, capabilities.typing_ends_by_itself);
        let (shown, turn, until) = (Arc::clone(ephemerals), turn.clone(), ended.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = shown.clock.sleep(TYPING_AFTER) => {}
                () = until.cancelled() => return,
            }
            let mut is_told = false;
            while !until.is_cancelled() {
                if is_own && shown.may_be_shown_elsewhere(&turn) {
                    is_told = true;
                    shown.tell(&turn, None).await;
                }
                if !shown.is_shown_elsewhere(&turn) {
                    shown.show(&turn, Action::Typing { on: true }, Class::Typing, Some(&until)).await;
                }
                tokio::select! {
                    () = shown.clock.sleep(interval.max(MIN_PAUSE)) => {}
                    () = until.cancelled() => {}
                }
            }
            if is_told {
                shown.remove_told(turn.id, turn.runs);
            }
            if !ends_by_itself && !shown.is_shown_elsewhere(&turn) {
                shown.end_typing(&turn).await;
            }
        });
        Self { ephemerals: Arc::clone(ephemerals), ended, task }
    }

    /// Ends the notice, and waits for up to [`END_WAIT`] until the platform was notified.
    pub(crate) async fn end(self) {
        self.ended.cancel();
        tokio::select! {
            _ = self.task => {}
            _ = self.ephemerals.lifecycle.pause(END_WAIT) => {}
        }
    }
}

impl Ephemerals {
    async fn end_typing(&self, turn: &TurnRecord) {
        for attempt in 0..END_ATTEMPTS {
            let result = self.show(turn, Action::Typing { on: false }, Class::Typing, None).await;
            let is_interrupted = matches!(result, None | Some(Err(DeliveryError::Unknown(_))));
            if !is_interrupted || !self.lifecycle.pause(MIN_PAUSE * 2_u32.pow(attempt)).await {
                return;
            }
        }
    }
}
