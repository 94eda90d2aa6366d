//! Marks: the reaction on a message that waits for its run, which says that the message has been seen.
//!
//! A mark is never a signal, and is not stored. Every message that an earlier process accepted may have one: it is taken
//! away when the message waits no more.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Expectation;
use tokio_util::sync::CancellationToken;

use super::show::Ephemerals;
use crate::{
    base::pauses,
    handles::marks::Marks,
    model::{Action, Class, DeliveryError, EventKind, LiveSettings, Receipt, Receipts, Support, TurnRecord},
};

/// How long a message waits before it is marked: what begins sooner needs no mark.
pub(crate) const MARK_AFTER: Duration = Duration::from_secs(2);

/// After how long a mark is taken away once more whose call nobody has waited for: the platform may have performed it after the removal.
const TAKEN_AWAY_AGAIN: Duration = Duration::from_secs(5);

/// How often the removal of a mark may be held up by the platform's rate before that counts as a try: for five minutes. In a group the
/// rate allows one call every few seconds, and several marks are removed at once.
const MOST_HELD_UP: u32 = 100;

/// Whether a message that waits no more has a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    No,
    Yes,
    /// The call that shows it has no result: it may come late.
    Perhaps,
}

pub(crate) struct Marker {
    pub(crate) ephemerals: Arc<Ephemerals>,
    pub(crate) marks: Arc<Marks>,
    pub(crate) settings: LiveSettings,
}

impl Marker {
    /// Marks the message of a turn if it still waits after a moment, until it waits no more.
    pub(crate) fn wait(self: &Arc<Self>, turn: &TurnRecord) {
        if self.action(turn, true).is_none() {
            return;
        }
        let Some(ended) = self.marks.begin(turn) else { return };
        let (marker, turn) = (Arc::clone(self), turn.clone());
        let lifecycle = &self.ephemerals.lifecycle;
        let stopping = lifecycle.stopping.clone();
        lifecycle.loops.spawn(async move {
            let shown = tokio::select! {
                shown = marker.show_while_waiting(&turn, &ended) => shown,
                // It waits for the next start, which takes the mark away.
                () = stopping.cancelled() => Shown::No,
            };
            marker.marks.remove(&turn);
            if shown == Shown::No {
                return;
            }
            let lifecycle = &marker.ephemerals.lifecycle;
            let _work = lifecycle.work.token();
            marker.take_away(&turn).await;
            if shown == Shown::Perhaps {
                lifecycle.pause_unless_stopping(TAKEN_AWAY_AGAIN).await;
                marker.take_away(&turn).await;
            }
        });
    }

    /// Returns when the message waits no more: whether its mark is shown.
    async fn show_while_waiting(&self, turn: &TurnRecord, ended: &CancellationToken) -> Shown {
        tokio::select! {
            () = self.ephemerals.clock.sleep(MARK_AFTER) => {}
            () = ended.cancelled() => return Shown::No,
        }
        // It may have ended before it was noted that it waits.
        let now = self.ephemerals.store.turn(turn.id).await;
        let is_waiting = matches!(now, Ok(Some(now)) if now.obligation.is_waiting());
        let shown = if is_waiting { self.show(turn, ended).await } else { Shown::No };
        if shown != Shown::No {
            ended.cancelled().await;
        }
        shown
    }

    /// Shows the mark of a message. Whether the platform shows it now.
    async fn show(&self, turn: &TurnRecord, ended: &CancellationToken) -> Shown {
        for pause in pauses::REMOVE {
            let Some(action) = self.action(turn, true) else { return Shown::No };
            let shown = self.ephemerals.show(turn, action, Class::Typing, Some(ended)).await;
            match &shown {
                Some(Ok(_)) => return Shown::Yes,
                Some(Err(DeliveryError::Unknown(_))) => return Shown::Perhaps,
                _ if !is_worth_another(shown.as_ref()) => return Shown::No,
                _ => {}
            }
            tokio::select! {
                () = self.ephemerals.clock.sleep(*pause) => {}
                () = ended.cancelled() => return Shown::No,
            }
        }
        Shown::No
    }

    /// Takes the mark of a message away, unless a reaction was chosen as its answer: some platforms show only one, and it
    /// replaces the mark there.
    pub(super) async fn take_away(&self, turn: &TurnRecord) {
        let (mut pauses, mut held_up) = (pauses::REMOVE.iter(), 0);
        loop {
            let Some(action) = self.action(turn, false) else { return };
            let mut is_held_up = false;
            // What cannot be read now can be later.
            if let Ok(deliveries) = self.ephemerals.store.deliveries(turn.id).await {
                if deliveries.iter().any(|delivery| matches!(delivery.action, Action::React { .. })) {
                    return;
                }
                let removed = self.ephemerals.show(turn, action, Class::Typing, None).await;
                if !is_worth_another(removed.as_ref()) {
                    return;
                }
                is_held_up = removed.is_none() && self.has_channel(turn);
            }
            let pause = if is_held_up && held_up < MOST_HELD_UP {
                held_up += 1;
                pauses::HELD_UP
            } else {
                let Some(pause) = pauses.next() else { return };
                *pause
            };
            if !self.ephemerals.lifecycle.pause(pause).await {
                return;
            }
        }
    }

    /// Whether this node runs the channel of a turn. If it does, a call that was not made waits for the platform's rate.
    fn has_channel(&self, turn: &TurnRecord) -> bool {
        self.ephemerals.caller.leases.holds(&turn.event.conversation.channel).is_some()
    }

    /// Shows the mark of a turn's message, or takes it away. `None` if it has none: it owes no answer, or the platform
    /// cannot show it.
    fn action(&self, turn: &TurnRecord, on: bool) -> Option<Action> {
        let emoji = self.settings.get().queues.seen.clone()?;
        let event = &turn.event;
        let message = event.message_id.clone()?;
        let channel = self.ephemerals.channels.get(&event.conversation.channel)?;
        let capabilities = channel.capabilities(&event.conversation);
        let is_owed = event.kind == EventKind::Message && turn.obligation.expectation() == Expectation::Answer;
        let is_allowed = capabilities.allowed_reactions.is_none_or(|allowed| allowed.contains(&emoji));
        let is_shown = capabilities.receipts == Receipts::Platform && capabilities.reactions == Support::Full;
        (is_owed && is_allowed && is_shown).then_some(Action::Mark { message, emoji, on })
    }
}

/// Whether an ephemeral that was not shown for sure is worth another try.
pub(super) fn is_worth_another(result: Option<&Result<Receipt, DeliveryError>>) -> bool {
    matches!(
        result,
        None | Some(Err(DeliveryError::Limited { .. } | DeliveryError::NotSent { .. } | DeliveryError::Unknown(_)))
    )
}
