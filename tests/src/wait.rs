//! Waits for a condition without sleeping for a fixed time.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

/// How long a test waits for what must happen: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Polls `what` until it returns `Some`. `about` is what the test waits for, as shown when it waited in vain.
///
/// # Panics
/// If it does not within [`PATIENCE`].
pub async fn eventually<T>(about: impl Display, mut what: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = what().await {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {about}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
