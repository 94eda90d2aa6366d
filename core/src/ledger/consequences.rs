//! The actions that follow a stored decision.

use std::sync::Arc;

use rejoinder_guard::{Obligation, ObligationState, Settlement};
use tracing::{debug, error, info};

use crate::{
    hub::Hub,
    lifecycle::Lifecycle,
    model::{
        agent::AgentName,
        conversation::ChannelId,
        ids::ConversationId,
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::TurnRecord,
        view::{Shown, TurnStatus, TurnView},
    },
    outbox::{
        ephemerals::{leftovers::Leftovers, text::Drafts},
        lanes::Lanes,
    },
    ports::store::Store,
    scheduler::slots::Slots,
    timer::Timer,
};

/// What must be done after a decision on one turn is stored.
#[derive(Default)]
pub(super) struct Consequences {
    /// The signal to show to clients.
    pub(super) shown: Option<Shown>,
    /// Where there are deliveries to send.
    pub(super) lane: Option<(ChannelId, ConversationId)>,
    /// The turn waits for another run, of this agent.
    pub(super) runs_again: Option<AgentName>,
    /// The number of the run that goes on past its deadline.
    pub(super) run_goes_on: Option<u32>,
    /// The number of the run to stop.
    pub(super) stop_run: Option<u32>,
    /// The turn became a dead letter, for this reason.
    pub(super) dead_letter: Option<String>,
}

impl Consequences {
    /// Notes that a delivery is stored, which may be sent.
    pub(super) fn sends(&mut self, delivery: &DeliveryRecord) {
        if delivery.state == DeliveryState::Pending {
            self.lane = Some((delivery.conversation.channel.clone(), delivery.conversation_id));
        }
    }
}

/// The handles of the owners that act on decisions.
pub(crate) struct ConsequenceExecutor {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) leftovers: Leftovers,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lifecycle: Lifecycle,
}

impl ConsequenceExecutor {
    /// Acts on a stored decision that changed a turn from `before` to `after`.
    pub(super) fn execute(&self, before: &TurnRecord, after: &TurnRecord, consequences: Consequences) {
        let Consequences { shown, lane, runs_again, run_goes_on, stop_run, dead_letter } = consequences;
        if let Some(wake_at) = after.obligation.wake_at() {
            self.timer.wake_at(wake_at);
        }
        if let Some(run) = run_goes_on {
            self.slots.let_go_on(after.conversation, after.id, run);
        }
        // Before the lane opens: no draft of the run may follow the signal.
        if let Some(run) = stop_run {
            self.slots.stop_run(after.conversation, after.id, run);
        }
        if let Some(agent) = runs_again {
            self.slots.enqueue(after.conversation, &agent);
        }
        if let Some((channel, conversation)) = lane {
            self.lanes.open(&channel, conversation);
        }
        if let Some(reason) = dead_letter {
            let channel = &after.event.conversation.channel;
            error!(turn = %after.id, %channel, reason, "a turn is undeliverable");
            metrics::counter!("rejoinder_dead_letters_total", "channel" => channel.to_string()).increment(1);
        }
        self.drafts.notify(after.id);
        if leaves_messages(&before.obligation, &after.obligation) {
            self.leftovers.remove(after.clone());
        }
        let is_new = before.obligation.state() != after.obligation.state();
        if is_new {
            observe(after);
        }
        if (shown.is_some() || is_new) && self.hub.has_listeners(after.id, &after.event.conversation.channel) {
            self.publish(after, shown);
        }
    }

    /// Removes what a turn that has ended may have left in the chat.
    pub(crate) fn remove_leftovers(&self, turn: TurnRecord) {
        if has_leftovers(&turn.obligation) {
            self.leftovers.remove(turn);
        }
    }

    /// Publishes a turn's view to the clients that wait for it.
    fn publish(&self, turn: &TurnRecord, shown: Option<Shown>) {
        let (id, version) = (turn.id, turn.version);
        if shown.is_some() || turn.obligation.claims() == 0 {
            let view = TurnView {
                turn_id: id,
                seq: turn.seq,
                conversation: turn.event.conversation.clone(),
                at: turn.event.received_at,
                text: turn.event.text.clone(),
                attachments: turn.event.attachments.clone(),
                status: TurnStatus::of(&turn.obligation),
                shown,
                picked: None,
            };
            self.hub.publish(version, Arc::new(view));
            return;
        }
        // The signal shown before is in the store.
        let (store, hub) = (Arc::clone(&self.store), Arc::clone(&self.hub));
        self.lifecycle.loops.spawn(async move {
            match store.view(id).await {
                Ok(Some(view)) => hub.publish(version, Arc::new(view)),
                Ok(None) => {}
                Err(error) => debug!(turn = %id, %error, "cannot read a turn to publish its change"),
            }
        });
    }
}

/// Whether a turn that has ended leaves a draft or a deferral in the chat that no signal replaced.
fn leaves_messages(before: &Obligation, after: &Obligation) -> bool {
    let is_new = !before.state().is_final() || before.draft_message() != after.draft_message();
    is_new && has_leftovers(after)
}

/// Whether a turn has ended and may have left unfinished messages in the chat.
fn has_leftovers(obligation: &Obligation) -> bool {
    let is_left = match obligation.state() {
        ObligationState::Settled(Settlement::Signal { messages, .. }) => {
            obligation.unfinished_messages().any(|one| !messages.iter().any(|message| message == one))
        }
        _ => obligation.unfinished_messages().next().is_some(),
    };
    obligation.state().is_final() && is_left
}

/// Logs and counts a settled turn.
fn observe(turn: &TurnRecord) {
    let ObligationState::Settled(settlement) = turn.obligation.state() else { return };
    let channel = &turn.event.conversation.channel;
    let (kind, _) = super::log::settled_by(settlement);
    let cause = turn.obligation.fallback().map_or("none", |(cause, _)| cause.as_str());
    metrics::counter!(
        "rejoinder_settled_turns_total",
        "channel" => channel.to_string(), "signal" => kind, "fallback" => cause
    )
    .increment(1);
    if cause == "none" {
        debug!(turn = %turn.id, %channel, signal = kind, "a turn is settled");
    } else {
        info!(turn = %turn.id, %channel, signal = kind, cause, "a turn is settled by the ladder");
    }
}
