//! Where a test may end the process.

/// Ends the process as `kill -9` does, if a test wants it here.
#[cfg(feature = "crash-points")]
pub(super) fn crash_point(name: &str) {
    if rejoinder_core::crash_point_is_reached(name) {
        std::process::abort();
    }
}

#[cfg(not(feature = "crash-points"))]
pub(super) const fn crash_point(_name: &str) {}
