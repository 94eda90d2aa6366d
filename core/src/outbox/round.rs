//! Which of a conversation's deliveries is attempted next.
//!
//! A conversation sends its deliveries in order. One that gets nowhere is parked: those after it need not wait for it.
//! When the conversation may be sendable again, everything is tried at once, in order, so that an outage of the
//! platform changes no order.

use rejoinder_guard::Timestamp;

use crate::model::{DeliveryId, DeliveryRecord, Label};

/// The number of failures in a row after which what waits for a channel that is down is hurried no longer.
const IN_VAIN: u32 = 3;

/// What a lane remembers from one delivery to the next.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Deliveries that wait for a retry are tried at once.
    is_hurried: bool,
    /// The delivery that is tried next, whatever it waits for.
    probed: Option<DeliveryId>,
    /// The delivery that an operator wants tried.
    asked: Option<DeliveryId>,
    /// The delivery that failed last: the round goes on with the one after it.
    failed: Option<DeliveryId>,
    failures: u32,
    /// Another delivery than the one that failed last is tried next.
    tries_another: bool,
}

impl Round {
    /// Begins a round in which deliveries that wait for a retry are tried at once.
    pub(crate) fn hurry(&mut self) {
        *self = Self { is_hurried: true, ..Self::default() };
    }

    /// Has one delivery tried at once.
    pub(crate) const fn probe(&mut self, delivery: DeliveryId) {
        self.probed = Some(delivery);
    }

    /// As [`probe`](Self::probe), for an operator.
    pub(crate) const fn ask(&mut self, delivery: DeliveryId) {
        (self.probed, self.asked) = (Some(delivery), Some(delivery));
    }

    /// Whether an operator wants a delivery tried, although it may have arrived.
    pub(crate) fn is_asked(&self, delivery: DeliveryId) -> bool {
        self.asked == Some(delivery)
    }

    /// Whether a delivery is tried although its channel is down.
    pub(crate) const fn is_urgent(&self) -> bool {
        self.is_hurried || self.probed.is_some()
    }

    /// Records that an attempt failed; `is_down`: on a channel that is known to be down.
    pub(crate) const fn note_failure(&mut self, delivery: DeliveryId, is_down: bool) {
        self.pass_over(delivery);
        self.failures = self.failures.saturating_add(1);
        self.is_hurried &= !is_down || self.failures < IN_VAIN;
    }

    /// Has another delivery than the one that failed tried, whatever it waits for.
    pub(crate) const fn try_another(&mut self) {
        self.tries_another = true;
    }

    /// Records that an attempt cannot be made now.
    pub(crate) const fn pass_over(&mut self, delivery: DeliveryId) {
        (self.probed, self.asked, self.failed) = (None, None, Some(delivery));
    }

    /// Records that an attempt succeeded. If earlier ones of the delivery had failed, the conversation can be sent to
    /// again.
    pub(crate) const fn note_success(&mut self, delivery: &DeliveryRecord) {
        self.is_hurried |= delivery.attempts > 1;
        self.probed = None;
        self.failures = 0;
    }

    /// The delivery to attempt at `now`. `candidates` are those of [`OutboxStore::next_deliveries`], in order. `None`, and
    /// the end of the round, if all must wait; `is_down`: their channel is known to be down.
    ///
    /// [`OutboxStore::next_deliveries`]: crate::ports::store::outbox::OutboxStore::next_deliveries
    pub(crate) fn next<'a>(
        &mut self,
        candidates: &'a [DeliveryRecord],
        now: Timestamp,
        is_down: bool,
    ) -> Option<&'a DeliveryRecord> {
        if std::mem::take(&mut self.tries_another) {
            let failed = self.failed;
            let waits = |one: &&DeliveryRecord| one.attempts > 0 && one.resend_from.is_none() && Some(one.id) != failed;
            if let Some(other) = candidates.iter().filter(waits).min_by_key(|one| one.next_attempt_at) {
                self.ask(other.id);
            }
        }
        let is_fit = |one: &&DeliveryRecord| one.resend_from.is_none() && !one.is_quiet();
        if let Some(probed) = self.probed
            // Behind a long line it is no candidate.
            && let Some(delivery) = candidates
                .iter()
                .find(|one| one.id == probed && !one.is_quiet())
                .or_else(|| candidates.iter().find(is_fit))
        {
            // What was claimed before it is sent before it, if neither can show twice.
            let is_asked = self.asked.is_some() || delivery.resend_from.is_some();
            return candidates.iter().find(|one| !is_asked && is_fit(one)).or(Some(delivery));
        }
        let is_due = |one: &DeliveryRecord| one.next_attempt_at <= now;
        // If none is fresh, the trouble may be the same for all.
        let is_retry = !is_down
            && candidates.iter().all(|one| one.attempts > 0 || one.is_quiet())
            && candidates.iter().any(is_due);
        let failed = candidates.iter().position(|one| Some(one.id) == self.failed);
        let next = candidates[failed.map_or(0, |index| index + 1)..]
            .iter()
            // Each attempt of one that may have been shown may add a copy.
            .find(|one| {
                let may_hurry = match one.resend_from {
                    Some(from) => self.is_hurried && from <= now,
                    None => self.is_hurried || (is_retry && one.label != Some(Label::Resent)),
                };
                is_due(one) || (may_hurry && !one.is_quiet())
            });
        if next.is_some() {
            return next;
        }
        *self = Self::default();
        candidates.iter().find(|one| is_due(one))
    }
}
