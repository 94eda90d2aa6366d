//! Removes messages that ended turns leave in the chat.

use std::sync::Arc;

use rejoinder_guard::{ObligationState, Settlement};
use tokio::sync::{Mutex, mpsc};

use super::{leftovers::Leftover, show::Ephemerals};
use crate::{
    model::{
        capabilities::Support,
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
    /// removes the draft if no delivery replaces it, as a reaction does not, and the deferral if the answer was sent as a
    /// new message because the edit got nowhere or a draft's edit is late.
    async fn tidy_up(&self, turn: &TurnRecord) {
        let obligation = &turn.obligation;
        let is_answered = !matches!(
            obligation.state(),
            ObligationState::Settled(Settlement::Cancelled { .. } | Settlement::Silence { .. })
        );
        if is_answered && !self.can_edit(turn) {
            // The answer follows its deferral.
            return;
        }
        let deliveries = if is_answered {
            let Ok(deliveries) = self.ephemerals.store.deliveries(turn.id).await else { return };
            deliveries
        } else {
            Vec::new()
        };
        let is_beside = !is_answered || deliveries.iter().any(was_sent_instead);
        for message in obligation.unfinished_messages() {
            let may_be_removed = is_beside
                || Some(message) == obligation.draft_message()
                || self.ephemerals.caller.late_edits.may_change(turn.conversation, message);
            if may_be_removed && !deliveries.iter().any(|delivery| replaces(message, delivery)) {
                self.remove(turn, message).await;
            }
        }
    }

    fn can_edit(&self, turn: &TurnRecord) -> bool {
        let address = &turn.event.conversation;
        let channel = self.ephemerals.channels.get(&address.channel);
        channel.is_some_and(|channel| channel.capabilities(address).edit == Support::Full)
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

/// Whether a delivery that got nowhere as an edit was delivered as a new message.
fn was_sent_instead(delivery: &DeliveryRecord) -> bool {
    delivery.parked && delivery.state == DeliveryState::Delivered && matches!(delivery.action, Action::Send { .. })
}

/// Whether a delivery edits or deletes a message, or has done so.
fn replaces(unfinished: &str, delivery: &DeliveryRecord) -> bool {
    let is_alive = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Delivered);
    let (Action::Edit { message, .. } | Action::Delete { message }) = &delivery.action else { return false };
    is_alive && message == unfinished
}
