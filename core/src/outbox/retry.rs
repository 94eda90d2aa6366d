//! When a delivery is tried again, and when it is given up.

use std::time::Duration;

use rand::Rng;

use crate::{Settings, Timestamp, store::DeliveryRecord};

/// The pauses before the second attempt, the third, and so on; the last one repeats.
const PAUSES: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(1),
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
];

/// How long to wait after `attempts` attempts have failed: the table's pause, 20 % more or less.
pub(crate) fn pause(attempts: u32) -> Duration {
    let index = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX).min(PAUSES.len() - 1);
    PAUSES[index].mul_f64(rand::rng().random_range(0.8..=1.2))
}

/// How long to wait before what may have arrived is sent again after `attempts` attempts. Where it could show twice
/// the pause is never zero: a platform that has just lost a response gets time to be itself again.
pub(crate) fn resend_pause(attempts: u32, idempotent: bool) -> Duration {
    pause(if idempotent { attempts } else { attempts.saturating_add(1) })
}

/// Whether a delivery is out of attempts *and* age: an outage shorter than its life never uses it up.
pub(crate) fn is_spent(delivery: &DeliveryRecord, settings: &Settings, now: Timestamp) -> bool {
    delivery.attempts >= settings.min_attempts && now.since(delivery.created_at) >= settings.delivery_lifetime
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
}
