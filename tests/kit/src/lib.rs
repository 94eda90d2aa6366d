//! Helpers for tests of channels and agents: a [`Gateway`] around one adapter (with a real core and a real database), an agent that
//! obeys the [first word](obedient) of a turn, and a [`LeadingClock`].
//!
//! A test gives the gateway its adapter and a [`Setup`] with the platform's particulars, lets people of the platform's
//! double write, and asserts what they see. [`Gateway::stop`] checks that nothing is owed.
//!
//! Servers with scripted responses have [`scripted_http`].
//!
//! The scripted agent and the clock that tests set are in `rejoinder_core::conformance`, because the core's tests use them
//! too.
//!
//! To add an action of the agent, add a word to [`obedient`].

mod agent;
mod clock;
mod gateway;
pub mod scripted_http;
mod settings;

use std::time::Duration;

pub use agent::obedient;
pub use clock::LeadingClock;
pub use gateway::{Gateway, Setup};
pub use settings::{CANNOT_READ, FAILED, HELP, LABEL, REPLACES, SILENT, settings};

/// How long a test waits for an event. Far longer than it should take.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until `holds` returns true. `about` describes the condition.
///
/// # Panics
/// When that takes longer than [`PATIENCE`].
pub async fn until(about: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain for: {about}"));
}
