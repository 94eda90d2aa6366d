//! Crash points: named steps of a turn at which a test can end the process.

/// Whether this crash point is passed for the n-th time and `REJOINDER_CRASH_AT` is `name:n`. Exists only with the
/// feature `crash-points`.
#[cfg(feature = "crash-points")]
pub fn crash_point_is_reached(name: &str) -> bool {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };

    static PLAN: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let plan = PLAN.get_or_init(|| {
        let plan = std::env::var("REJOINDER_CRASH_AT").ok()?;
        let (name, count) = plan.rsplit_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    plan.as_ref()
        .is_some_and(|(planned, count)| planned == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *count)
}

/// Aborts the process, like `kill -9`, when this crash point [is reached](crash_point_is_reached).
#[cfg(feature = "crash-points")]
pub(crate) fn pass(name: &str) {
    if crash_point_is_reached(name) {
        std::process::abort();
    }
}

/// Marks a crash point; see [`pass`].
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::base::crash::pass($name);
    };
    ($name:literal if $holds:expr) => {
        #[cfg(feature = "crash-points")]
        if $holds {
            $crate::base::crash::pass($name);
        }
    };
}

pub(crate) use crash_point;
