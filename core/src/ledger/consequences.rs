//! What follows once a decision is stored.

use std::sync::Arc;

use rejoinder_guard::{Obligation, Settlement, State};
use tracing::{debug, error, info};

use crate::{
    hub::Hub,
    lifecycle::Lifecycle,
    model::{
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

/// What a decision on one turn leads to.
#[derive(Default)]
pub(super) struct Consequences {
    /// What people see from now on.
    pub(super) shown: Option<Shown>,
    /// There is something to send.
    pub(super) has_deliveries: bool,
    /// The turn waits for another run.
    pub(super) runs_again: bool,
    /// This run is to end.
    pub(super) stop_run: Option<u32>,
    /// The turn is a dead letter, and why.
    pub(super) dead_letter: Option<String>,
}

/// Those who act on decisions.
pub(crate) struct Followers {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) leftovers: Leftovers,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lifecycle: Lifecycle,
}

impl Followers {
    /// Does what follows from a decision that took a turn from `before` to `after`.
    pub(super) fn follow(&self, before: &TurnRecord, after: &TurnRecord, consequences: Consequences) {
        let Consequences { shown, has_deliveries, runs_again, stop_run, dead_letter } = consequences;
        if let Some(wake_at) = after.obligation.wake_at() {
            self.timer.wake_at(wake_at);
        }
        // Before anything is sent: no draft of the run may come after it.
        if let Some(run) = stop_run {
            self.slots.stop_run(after.conversation, after.id, run);
        }
        if runs_again {
            self.slots.enqueue(after.conversation);
        }
        if has_deliveries {
            self.lanes.open(after.conversation);
        }
        if let Some(reason) = dead_letter {
            let channel = &after.event.conversation.channel;
            error!(turn = %after.id, %channel, reason, "a turn is undeliverable");
            metrics::counter!("rejoinder_dead_letters_total", "channel" => channel.to_string()).increment(1);
        }
        self.drafts.tell(after.id);
        if leaves_messages(&before.obligation, &after.obligation) {
            self.leftovers.remove(after.clone());
        }
        let is_news = before.obligation.state() != after.obligation.state();
        if is_news {
            observe(after);
        }
        if (shown.is_some() || is_news) && self.hub.is_heard(after.id, &after.event.conversation.channel) {
            self.publish(after, shown);
        }
    }

    /// Tells those who wait for a turn what people see of it.
    fn publish(&self, turn: &TurnRecord, shown: Option<Shown>) {
        let (id, version) = (turn.id, turn.version);
        if shown.is_some() || turn.obligation.claims() == 0 {
            let view = TurnView {
                turn_id: id,
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
        // What was shown before is in the store.
        let (store, hub) = (Arc::clone(&self.store), Arc::clone(&self.hub));
        self.lifecycle.loops.spawn(async move {
            match store.view(id).await {
                Ok(Some(view)) => hub.publish(version, Arc::new(view)),
                Ok(None) => {}
                Err(error) => debug!(turn = %id, %error, "cannot read a turn to show its change"),
            }
        });
    }
}

/// Whether a turn that has come to its end leaves messages in the chat that nothing took the place of.
fn leaves_messages(before: &Obligation, after: &Obligation) -> bool {
    let is_news = !before.state().is_final() || before.draft_message() != after.draft_message();
    let is_left = match after.state() {
        State::Settled(Settlement::Signal { messages, .. }) => {
            after.draft_message().is_some_and(|draft| !messages.iter().any(|message| message == draft))
        }
        _ => after.unfinished_messages().next().is_some(),
    };
    after.state().is_final() && is_news && is_left
}

/// Says in logs and metrics that a turn came to rest.
fn observe(turn: &TurnRecord) {
    let State::Settled(settlement) = turn.obligation.state() else { return };
    let channel = &turn.event.conversation.channel;
    let kind = match settlement {
        Settlement::Signal { signal, .. } => signal.as_str(),
        Settlement::Silence { .. } => "silence",
        Settlement::Cancelled { .. } => "cancelled",
        Settlement::Merged { .. } => "merged",
    };
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
