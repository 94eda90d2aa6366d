//! What tests of channels are written with: a [`Gateway`] around one adapter (a real core and a real database), an agent
//! that does what the [first word](obedient) says, and a [`LeadingClock`].
//!
//! An adapter's test gives the gateway its adapter and what is special about its platform ([`Setup`]), lets people of the
//! platform's double speak, and asserts what they see. [`Gateway::stop`] checks that nothing is owed.
//!
//! The agent itself, its scripts and the clock that stands still are in `rejoinder_core::conformance`, since the core's own
//! tests use them too.
//!
//! To add something that the agent does: a word in [`obedient`].

mod agent;
mod clock;
mod gateway;
mod settings;

use std::time::Duration;

pub use agent::obedient;
pub use clock::LeadingClock;
pub use gateway::{Gateway, Setup};
pub use settings::{CANNOT_READ, FAILED, HELP, LABEL, SILENT, settings};

/// How long a test waits for what must happen: far above what it takes.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for what must come to hold and nobody signals.
///
/// # Panics
/// When it does not within [`PATIENCE`].
pub async fn until(about: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain: {about}"));
}
