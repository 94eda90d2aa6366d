//! Removes what turns leave in the chat.

use std::sync::Arc;

use rejoinder_guard::{ObligationState, Settlement};
use tokio::sync::{Mutex, mpsc};

use super::{
    marker::{Marker, is_worth_another},
    show::Ephemerals,
};
use crate::{
    base::pauses,
    handles::leftovers::Leftover,
    model::{Action, Class, DeliveryRecord, DeliveryState, Support, TurnRecord},
};

/// Removes drafts and deferrals that no signal replaced, and marks that an earlier process left.
pub(crate) struct Tidier {
    ephemerals: Arc<Ephemerals>,
    marker: Arc<Marker>,
    leftovers: Mutex<mpsc::UnboundedReceiver<Leftover>>,
}

impl Tidier {
    pub(crate) fn new(marker: Arc<Marker>, leftovers: mpsc::UnboundedReceiver<Leftover>) -> Self {
        Self { ephemerals: Arc::clone(&marker.ephemerals), marker, leftovers: Mutex::new(leftovers) }
    }

    /// Removes what queued turns left, until the gateway has ended.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut leftovers = self.leftovers.lock().await;
        loop {
            let Leftover { turn, is_mark, work } = tokio::select! {
                Some(leftover) = leftovers.recv() => leftover,
                () = self.ephemerals.lifecycle.ended.cancelled() => return,
            };
            let tidier = Arc::clone(&self);
            tokio::spawn(async move {
                let _work = work;
                if is_mark {
                    tidier.marker.take_away(&turn).await;
                } else {
                    tidier.tidy_up(&turn).await;
                }
            });
        }
    }

    /// Removes the draft and the deferral of a turn that was cancelled, settled by silence or with another one. Of an answered turn it removes
    /// what no delivery replaces, for example because the answer was sent as a new message. Of any other turn it removes
    /// the draft alone: the deferral is the last that the person hears.
    async fn tidy_up(&self, turn: &TurnRecord) {
        let obligation = &turn.obligation;
        let (deliveries, keeps_deferral) = match obligation.state() {
            ObligationState::Settled(
                Settlement::Cancelled { .. } | Settlement::Silence { .. } | Settlement::Merged { .. },
            ) => (Vec::new(), false),
            // The answer follows its deferral.
            _ if !self.can_edit(turn) => return,
            state => {
                let Ok(deliveries) = self.ephemerals.store.deliveries(turn.id).await else { return };
                (deliveries, !matches!(state, ObligationState::Settled(Settlement::Signal { .. })))
            }
        };
        for message in obligation.unfinished_messages() {
            let is_kept = keeps_deferral && Some(message) != obligation.draft_message();
            if !is_kept && !deliveries.iter().any(|delivery| replaces(message, delivery)) {
                self.remove(turn, message).await;
            }
        }
    }

    fn can_edit(&self, turn: &TurnRecord) -> bool {
        let address = &turn.event.conversation;
        let channel = self.ephemerals.channels.get(&address.channel);
        channel.is_some_and(|channel| channel.capabilities(address).edit == Support::Full)
    }

    /// Whether the turn has another state by now: the operator may have its answer sent again, which edits the message.
    async fn is_over(&self, turn: &TurnRecord) -> bool {
        let now = self.ephemerals.store.turn(turn.id).await;
        !matches!(now, Ok(Some(now)) if now.obligation.state() == turn.obligation.state())
    }

    async fn remove(&self, turn: &TurnRecord, message: &str) {
        for pause in pauses::REMOVE {
            let action = Action::Delete { message: message.to_owned() };
            let removed = self.ephemerals.show(turn, action, Class::Interim, None).await;
            if !is_worth_another(removed.as_ref())
                || !self.ephemerals.lifecycle.pause(*pause).await
                || self.is_over(turn).await
            {
                return;
            }
        }
    }
}

/// Whether a delivery edits or deletes a message, or has done so.
fn replaces(unfinished: &str, delivery: &DeliveryRecord) -> bool {
    let is_alive = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Sending | DeliveryState::Delivered);
    let (Action::Edit { message, .. } | Action::Delete { message }) = &delivery.action else { return false };
    is_alive && message == unfinished
}
