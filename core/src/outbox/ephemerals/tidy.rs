//! Removes messages that ended turns leave in the chat.

use std::sync::Arc;

use rejoinder_guard::{ObligationState, Settlement};
use tokio::sync::{Mutex, mpsc};

use super::{leftovers::Leftover, show::Ephemerals};
use crate::{
    model::{
        delivery::{Action, Class, DeliveryError},
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::TurnRecord,
    },
    pauses,
};

/// Removes drafts and deferrals that no signal replaced.
pub(crate) struct Tidier {
    ephemerals: Arc<Ephemerals>,
    leftovers: Mutex<mpsc::UnboundedReceiver<Leftover>>,
}

impl Tidier {
    pub(crate) fn new(ephemerals: Arc<Ephemerals>, leftovers: mpsc::UnboundedReceiver<Leftover>) -> Self {
        Self { ephemerals, leftovers: Mutex::new(leftovers) }
    }

    /// Removes messages of queued turns, until the gateway has ended.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut leftovers = self.leftovers.lock().await;
        loop {
            let Leftover { turn, work } = tokio::select! {
                Some(leftover) = leftovers.recv() => leftover,
                () = self.ephemerals.lifecycle.ended.cancelled() => return,
            };
            let tidier = Arc::clone(&self);
            tokio::spawn(async move {
                let _work = work;
                tidier.tidy_up(&turn).await;
            });
        }
    }

    /// Removes the draft and the deferral of a turn that was cancelled or settled by silence. Of any other turn it
    /// removes the draft if no delivery replaces it; a reaction does not.
    async fn tidy_up(&self, turn: &TurnRecord) {
        let obligation = &turn.obligation;
        if matches!(
            obligation.state(),
            ObligationState::Settled(Settlement::Cancelled { .. } | Settlement::Silence { .. })
        ) {
            for message in obligation.unfinished_messages() {
                self.remove(turn, message).await;
            }
            return;
        }
        let Some(draft) = obligation.draft_message() else { return };
        let Ok(deliveries) = self.ephemerals.store.deliveries(turn.id).await else { return };
        if !deliveries.iter().any(|delivery| replaces_draft(draft, delivery)) {
            self.remove(turn, draft).await;
        }
    }

    async fn remove(&self, turn: &TurnRecord, message: &str) {
        for pause in pauses::REMOVE {
            let action = Action::Delete { message: message.to_owned() };
            let removed = self.ephemerals.show(turn, action, Class::Interim, None).await;
            let is_worth_another = matches!(
                removed,
                None | Some(Err(DeliveryError::Limited { .. }
                    | DeliveryError::NotSent { .. }
                    | DeliveryError::Unknown(_)))
            );
            if !is_worth_another || !self.ephemerals.lifecycle.pause(*pause).await {
                return;
            }
        }
    }
}

/// Whether a delivery edits or deletes the message of a draft, or has done so.
fn replaces_draft(draft: &str, delivery: &DeliveryRecord) -> bool {
    let is_alive = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Delivered);
    let (Action::Edit { message, .. } | Action::Delete { message }) = &delivery.action else { return false };
    is_alive && message == draft
}
