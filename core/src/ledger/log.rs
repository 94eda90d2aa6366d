//! The entries of the log that a decision makes.

use rejoinder_guard::{Expectation, Obligation, ObligationState, Settlement, Signal, SignalKind, Timestamp, Via};

use super::trigger::AttemptEnded;
use crate::{
    base::words::rfc3339,
    events::subjects::{subject_of, subject_of_delivery},
    model::{DeliveryState, FallbackView, LogEvent, NewLogEntry, TurnRecord},
    ports::{AttemptEnd, DeliveryChange},
};

pub(super) fn claimed(signal: &Signal) -> LogEvent {
    LogEvent::TurnClaimed { claim: signal.claim, signal: signal.kind(), fallback: FallbackView::of(&signal.via) }
}

pub(super) fn turn_changed(before: &TurnRecord, after: &TurnRecord, now: Timestamp) -> Vec<NewLogEntry> {
    let (was, is) = (&before.obligation, &after.obligation);
    let waited_ms = u64::try_from(now.since(after.event.received_at).as_millis()).unwrap_or(u64::MAX);
    let hold = match (was.is_held(), is.is_held()) {
        (false, true) => Some(LogEvent::TurnHeld),
        (true, false) if !is.state().is_final() => Some(LogEvent::TurnResumed),
        _ => None,
    };
    let deferred = was.shown_deferrals() > 0;
    // The answer may have waited for the deferral, and be claimed at once.
    let deferral = (is.shown_deferrals() > was.shown_deferrals()).then(|| {
        let due = promised_for(was, is).map(rfc3339).unwrap_or_default();
        LogEvent::TurnDeferred { due, waited_ms, deferred }
    });
    let end = (was.state() != is.state()).then(|| match is.state() {
        ObligationState::Settled(settlement) => {
            let (signal, via) = settled_by(settlement);
            let waited_ms = (is.expectation() != Expectation::Nothing).then_some(waited_ms);
            Some(LogEvent::TurnSettled { signal, fallback: via.and_then(FallbackView::of), waited_ms, deferred })
        }
        ObligationState::Undeliverable { .. } => {
            Some(LogEvent::TurnUndeliverable { cause: is.fallback().map(|(cause, _)| cause) })
        }
        ObligationState::Merged { into } => Some(LogEvent::TurnMerged { into: into.clone() }),
        _ => None,
    });
    let entry = |event| NewLogEntry { at: now, subject: subject_of(after), event };
    hold.into_iter().chain(deferral).chain(end.flatten()).map(entry).collect()
}

/// The time that a deferral names which the person sees now. The debt of one that comes late is due with the run that pays it.
fn promised_for(before: &Obligation, after: &Obligation) -> Option<Timestamp> {
    let is_agents = matches!(
        before.state(),
        ObligationState::Claimed(claim) if claim.signal == SignalKind::Deferral && claim.via == Via::Answer
    );
    after.named_time().filter(|_| is_agents).or_else(|| after.due())
}

/// The name of what settled a turn, and what produced it, if a signal did.
pub(super) const fn settled_by(settlement: &Settlement) -> (&'static str, Option<&Via>) {
    match settlement {
        Settlement::Signal { via: via @ Via::GivenUp { .. }, .. } => ("cancelled", Some(via)),
        Settlement::Signal { signal, via, .. } => (signal.as_str(), Some(via)),
        Settlement::Silence { .. } => ("silence", None),
        Settlement::Cancelled { .. } => ("cancelled", None),
        Settlement::Merged { .. } => ("merged", None),
    }
}

pub(super) fn attempt_ended(ended: &AttemptEnded, change: &DeliveryChange, now: Timestamp) -> Vec<NewLogEntry> {
    let (delivery_id, AttemptEnd { number: attempt, result, detail: error, .. }) = (change.id, &ended.end);
    let (attempt, failed) = (*attempt, || LogEvent::DeliveryFailed {
        delivery_id,
        attempt: *attempt,
        result: result.clone(),
        error: error.clone(),
    });
    let events = match change.state {
        DeliveryState::Delivered => {
            vec![LogEvent::DeliveryDelivered { delivery_id, attempt, message_ids: change.message_ids.clone() }]
        }
        DeliveryState::Dead => vec![failed(), LogEvent::DeliveryDead { delivery_id }],
        _ if ended.is_newly_parked => vec![failed(), LogEvent::DeliveryParked { delivery_id }],
        _ => vec![failed()],
    };
    let entry = |event| NewLogEntry { at: now, subject: subject_of_delivery(&ended.delivery), event };
    events.into_iter().map(entry).collect()
}
