//! The actions that follow a stored decision.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Expectation, Obligation, ObligationState, Settlement, SignalKind};
use tracing::{debug, error, info};

use crate::{
    base::{lifecycle::Lifecycle, timer::Timer, undeliverable::Undeliverable},
    handles::{drafts::Drafts, lanes::Lanes, leftovers::Leftovers, marks::Marks, slots::Slots},
    model::{
        AgentName, ChannelId, ConversationId, DeliveryRecord, DeliveryState, FallbackView, LogEvent, Shown, TurnRecord,
        TurnStatus, TurnView,
    },
    nodes::hints::Hints,
    ports::{Hint, Hub, ViewStore},
};

/// What must be done after a decision on one turn is stored.
#[derive(Default)]
pub(super) struct Consequences {
    pub(super) shown: Option<Shown>,
    pub(super) lane: Option<(ChannelId, ConversationId)>,
    /// The turn waits for another run, of this agent.
    pub(super) runs_again: Option<AgentName>,
    /// The number of the run that goes on past its deadline.
    pub(super) run_goes_on: Option<u32>,
    /// The number of the run that waits for an approval, or that goes on with it.
    pub(super) run_suspends: Option<u32>,
    pub(super) run_continues: Option<u32>,
    pub(super) stop_run: Option<u32>,
    /// With the decision, the turn's slot in the store is free.
    pub(super) frees_slot: bool,
    pub(super) dead_letter: Option<String>,
    pub(super) happened: Vec<LogEvent>,
}

impl Consequences {
    /// Notes that a delivery is stored, which may be sent.
    pub(super) fn sends(&mut self, delivery: &DeliveryRecord) {
        if delivery.state == DeliveryState::Pending {
            self.lane = Some((delivery.conversation.channel.clone(), delivery.conversation_id));
        }
    }
}

pub(crate) struct ConsequenceExecutor {
    pub(crate) store: Arc<dyn ViewStore>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) leftovers: Leftovers,
    pub(crate) marks: Arc<Marks>,
    pub(crate) undeliverable: Undeliverable,
    pub(crate) hub: Arc<Hub>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) lifecycle: Lifecycle,
}

impl ConsequenceExecutor {
    /// Acts on a stored decision that changed a turn from `before` to `after`.
    pub(super) fn execute(&self, before: &TurnRecord, after: &TurnRecord, consequences: Consequences) {
        if self.hints.any() {
            self.tell(before, after, &consequences);
        }
        let Consequences {
            shown,
            lane,
            runs_again,
            run_goes_on,
            run_suspends,
            run_continues,
            stop_run,
            frees_slot,
            dead_letter,
            happened,
        } = consequences;
        if frees_slot {
            self.slots.note_freed(after.conversation, after.id);
        }
        if let Some(wake_at) = after.obligation.wake_at() {
            self.timer.wake_at(wake_at);
        }
        if let Some(run) = run_goes_on {
            self.slots.let_go_on(after.conversation, after.id, run);
        }
        if let Some(run) = run_suspends {
            self.slots.suspend_run(after.conversation, after.id, run);
        }
        if let Some(run) = run_continues {
            self.slots.continue_run(after.conversation, after.id, run);
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
            // The alert about dead letters tells it.
            let alert = "undeliverable";
            if after.obligation.expectation() == Expectation::Answer {
                error!(turn = %after.id, %channel, reason, alert, "a turn could not be answered");
            } else {
                error!(turn = %after.id, %channel, reason, alert, "a message that nobody asked for could not be delivered");
            }
            metrics::counter!("rejoinder_dead_letters_total", "channel" => channel.to_string()).increment(1);
            if after.obligation.may_go_elsewhere() {
                self.undeliverable.send_elsewhere(after.id);
            }
        }
        self.drafts.notify(after.id, after.obligation.may_draft());
        if self.ends_mark(&before.obligation, &after.obligation) {
            self.end_mark(after);
        }
        if leaves_messages(&before.obligation, &after.obligation) {
            self.leftovers.remove(after.clone());
        }
        for event in happened {
            observe(after, &event);
        }
        let is_new = before.obligation.state() != after.obligation.state();
        if (shown.is_some() || is_new) && self.hub.has_listeners(after.id, &after.event.conversation.channel) {
            self.publish(after, shown);
        }
    }

    /// Tells other nodes what may concern them. Which of them runs the turn, is not known here.
    fn tell(&self, before: &TurnRecord, after: &TurnRecord, consequences: &Consequences) {
        let (hints, id, channel) = (&self.hints, after.id, &after.event.conversation.channel);
        let (was, is) = (&before.obligation, &after.obligation);
        if let Some((channel, conversation)) = &consequences.lane {
            hints.opens(channel, *conversation);
        }
        if let Some(agent) = &consequences.runs_again {
            hints.tell(|| Hint::Waiting(agent.clone(), after.conversation));
        }
        if (was.is_running() || is.is_running()) && self.slots.ran(after.conversation, id).is_none() {
            hints.tell(|| Hint::Run(id));
        }
        if consequences.dead_letter.is_some() && is.may_go_elsewhere() {
            hints.tell(|| Hint::DeadLetter(id));
        }
        if self.ends_mark(was, is) || leaves_messages(was, is) {
            hints.tell_holder(channel, || Hint::Leftovers(channel.clone(), id));
        }
        if consequences.shown.is_some() || was.state() != is.state() {
            hints.shows(channel, id);
        }
    }

    /// Removes what a turn has left in its chat that another node has decided on: the mark of one that waits no more, and what an ended
    /// one may have left.
    pub(crate) fn remove_left_elsewhere(&self, turn: TurnRecord) {
        if !turn.obligation.is_waiting() {
            self.end_mark(&turn);
        }
        self.remove_leftovers(turn);
    }

    /// Whether the message of a turn waits no more. Where there can be other nodes, the end of a turn counts as well: one of them may have
    /// begun it while none had its channel, and then nobody was there to take the mark away.
    fn ends_mark(&self, before: &Obligation, after: &Obligation) -> bool {
        let is_over = || !before.state().is_final() && after.state().is_final();
        (before.is_waiting() && !after.is_waiting()) || (self.hints.may_be_any() && is_over())
    }

    fn end_mark(&self, turn: &TurnRecord) {
        let since = self.hints.leases.at_work_since(&turn.event.conversation.channel);
        self.marks.end(turn, since, &self.leftovers);
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
        let merged_into = TurnView::merged_into(&turn.obligation);
        if merged_into.is_none() && (shown.is_some() || turn.obligation.claims() == 0) {
            let event = &turn.event;
            let (text, attachments) = TurnView::said(event.sender.kind, event.text.clone(), event.attachments.clone());
            let view = TurnView {
                turn_id: id,
                seq: turn.seq,
                conversation: turn.event.conversation.clone(),
                at: turn.event.received_at,
                text,
                attachments,
                status: TurnStatus::of(&turn.obligation),
                shown,
                picked: None,
                merged_into,
                instead_of: event.instead_of,
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
    let is_new = !before.state().is_final() || !before.unfinished_messages().eq(after.unfinished_messages());
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

/// Counts a signal that the person sees, and logs a settled turn.
fn observe(turn: &TurnRecord, event: &LogEvent) {
    let channel = &turn.event.conversation.channel;
    let label = || channel.to_string();
    match event {
        LogEvent::TurnDeferred { waited_ms, deferred, .. } => {
            metrics::counter!("rejoinder_deferrals_total", "channel" => label()).increment(1);
            if !deferred {
                metrics::histogram!("rejoinder_first_signal_seconds", "channel" => label()).record(seconds(*waited_ms));
            }
        }
        LogEvent::TurnSettled { signal, fallback, waited_ms, deferred } => {
            let agent = turn.handler.agent().map(ToString::to_string).unwrap_or_default();
            metrics::counter!(
                "rejoinder_settled_turns_total", "channel" => label(), "agent" => agent, "signal" => *signal
            )
            .increment(1);
            let is_shown = [SignalKind::Reply, SignalKind::Reaction].iter().any(|kind| kind.as_str() == *signal);
            if let Some(waited) = waited_ms.filter(|_| is_shown).map(seconds) {
                metrics::histogram!("rejoinder_settlement_seconds", "channel" => label()).record(waited);
                if !deferred {
                    metrics::histogram!("rejoinder_first_signal_seconds", "channel" => label()).record(waited);
                }
            }
            let Some(FallbackView { cause, rung }) = fallback else {
                return debug!(turn = %turn.id, %channel, signal, "a turn is settled");
            };
            metrics::counter!(
                "rejoinder_fallbacks_total", "channel" => label(), "cause" => cause.as_str(), "rung" => rung.clone()
            )
            .increment(1);
            info!(turn = %turn.id, %channel, signal, %cause, rung, "a turn is settled by the ladder");
        }
        _ => {}
    }
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}
