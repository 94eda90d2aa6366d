//! When a delivery is retried, and when it is given up.

use std::{ops::RangeInclusive, time::Duration};

use rand::Rng;
use rejoinder_guard::Timestamp;

use crate::{
    base::pauses,
    model::{DeliveryRecord, DeliveryState, Settings},
    ports::DeliveryChange,
};

/// How long what may have arrived waits at least before it is sent again, after the first such attempt, the second, and so on:
/// each may add a copy.
const RESEND: &[Duration] = &[
    Duration::from_secs(5),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_hours(1),
];

/// How long a delivery waits at least, on a channel that does not answer, before it looks again. When the channel answers, it is
/// told.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// The pause between two looks whether a channel that cannot send can again, in milliseconds.
const PROBE: RangeInclusive<u64> = 10_000..=15_000;

/// The number of failed attempts after which a delivery gets nowhere.
const NOWHERE_ATTEMPTS: u32 = 3;

/// The time of failed attempts after which a delivery gets nowhere.
const NOWHERE_AFTER: Duration = Duration::from_mins(2);

/// The pause after `attempts` failed attempts: from the table, with 20 % jitter.
pub(crate) fn pause(attempts: u32) -> Duration {
    with_jitter(pauses::nth(pauses::DELIVER, attempts as usize))
}

fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.8..=1.2))
}

/// How long a delivery waits at least that `copies` attempts may each have shown.
pub(crate) fn resend_pause(copies: u32) -> Duration {
    pauses::nth(RESEND, copies as usize)
}

/// The pause after such an attempt.
pub(crate) fn with_more(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(1.0..=1.2))
}

/// When the last attempt ended of a delivery that may have been shown and is sent again from `resend_from` on.
pub(crate) fn last_attempt(delivery: &DeliveryRecord, resend_from: Timestamp) -> Timestamp {
    let pause = i64::try_from(resend_pause(delivery.copies).as_millis()).unwrap_or_default();
    Timestamp::from_millis(resend_from.as_millis() - pause)
}

/// Once its channel is back, a delivery that may have been shown is sent again as if that was its first attempt.
pub(crate) fn release(delivery: &mut DeliveryRecord, last_attempt: Timestamp) {
    let from = last_attempt + resend_pause(1);
    delivery.resend_from = Some(from);
    delivery.next_attempt_at = delivery.next_attempt_at.min(from);
}

/// How long a delivery waits for a channel that does not answer.
pub(crate) fn look_again(delivery: &DeliveryRecord) -> Duration {
    let pause = if delivery.resend_from.is_some() { Duration::ZERO } else { pause(delivery.attempts) };
    pause.max(with_jitter(LOOK_AGAIN))
}

/// The pause before the next look whether a channel can send again.
pub(crate) fn probe_pause() -> Duration {
    Duration::from_millis(rand::rng().random_range(PROBE))
}

/// The change of a delivery that the operator has sent again: now, and as often as a new one.
pub(crate) fn from_the_start(delivery: &DeliveryRecord, now: Timestamp) -> DeliveryChange {
    DeliveryChange {
        state: DeliveryState::Pending,
        attempts: 0,
        next_attempt_at: now,
        parked: false,
        retried_at: Some(now),
        resend_from: None,
        ..DeliveryChange::of(delivery)
    }
}

/// Whether a delivery gets nowhere at `now`: it has failed often, or for long, in any way that says nothing about its
/// content. `since` is when the first failed attempt began.
pub(crate) fn gets_nowhere(delivery: &DeliveryRecord, since: Timestamp, now: Timestamp) -> bool {
    let is_old = now.since(since) >= NOWHERE_AFTER;
    // A draft is given up then: it is worth a wait, because the answer that waits for it edits it.
    if delivery.is_draft() { is_old } else { is_old || delivery.attempts >= NOWHERE_ATTEMPTS }
}

/// Whether a delivery is past its lifetime.
pub(crate) fn is_old(delivery: &DeliveryRecord, settings: &Settings, now: Timestamp) -> bool {
    let since = delivery.retried_at.unwrap_or(delivery.created_at);
    now.since(since) >= settings.delivery_lifetime
}

/// Whether a delivery is out of attempts *and* age: an outage shorter than its lifetime never makes it a dead letter.
pub(crate) fn is_spent(delivery: &DeliveryRecord, attempts: u32, settings: &Settings, now: Timestamp) -> bool {
    attempts >= settings.min_attempts && is_old(delivery, settings, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_along_the_table_and_then_stay() {
        let within = |attempts: u32, seconds: f64| {
            let pause = pause(attempts).as_secs_f64();
            (seconds * 0.8..=seconds * 1.2).contains(&pause)
        };

        assert!(within(1, 0.0));
        assert!(within(2, 1.0));
        assert!(within(6, 30.0));
        assert!(within(10, 600.0));
        assert!(within(5000, 600.0));
    }

    #[test]
    fn what_could_show_twice_is_sent_again_seldom() {
        let within = |copies: u32, seconds: f64| {
            let pause = with_more(resend_pause(copies)).as_secs_f64();
            (seconds..=seconds * 1.2).contains(&pause)
        };

        assert!(within(1, 5.0) && within(2, 60.0) && within(3, 300.0));
        assert!(within(4, 900.0) && within(5, 3600.0) && within(50, 3600.0));
    }
}
