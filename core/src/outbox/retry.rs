//! When a delivery is retried, and when it is given up.

use std::time::Duration;

use rand::Rng;
use rejoinder_guard::Timestamp;

use crate::{
    model::{
        settings::Settings,
        stored_delivery::{DeliveryRecord, DeliveryState},
    },
    pauses,
    ports::store::transition::DeliveryChange,
};

/// The number of attempts after which a delivery that could show twice is resent only every [`SELDOM`].
const MANY: u32 = 10;

/// The pause between late resends.
const SELDOM: Duration = Duration::from_hours(1);

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

/// The pause before a delivery that may have arrived is resent after `attempts` attempts. If it could show twice, the
/// pause is never zero, so that a platform that just lost a response can recover, and after many attempts it is an
/// hour, because each attempt may have been another copy.
pub(crate) fn resend_pause(attempts: u32, idempotent: bool) -> Duration {
    match attempts {
        _ if idempotent => pause(attempts),
        MANY.. => with_jitter(SELDOM),
        _ => pause(attempts.saturating_add(1)),
    }
}

/// The change of a delivery that the operator has sent again: now, and as often as a new one.
pub(crate) fn from_the_start(delivery: &DeliveryRecord, now: Timestamp) -> DeliveryChange {
    DeliveryChange {
        state: DeliveryState::Pending,
        attempts: 0,
        next_attempt_at: now,
        parked: false,
        retried_at: Some(now),
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

/// Whether a delivery is out of attempts *and* age: an outage shorter than its lifetime never makes it a dead letter.
pub(crate) fn is_spent(delivery: &DeliveryRecord, attempts: u32, settings: &Settings, now: Timestamp) -> bool {
    let since = delivery.retried_at.unwrap_or(delivery.created_at);
    attempts >= settings.min_attempts && now.since(since) >= settings.delivery_lifetime
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
    fn what_could_show_twice_is_sent_again_seldom_in_the_end() {
        let within = |attempts: u32, idempotent: bool, seconds: f64| {
            let pause = resend_pause(attempts, idempotent).as_secs_f64();
            (seconds * 0.8..=seconds * 1.2).contains(&pause)
        };

        assert!(within(1, true, 0.0) && within(1, false, 1.0));
        assert!(within(9, false, 600.0) && within(10, false, 3600.0) && within(10, true, 600.0));
    }
}
