//! The check that a shutdown does not wait for a platform that never responds.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    accept_switch::{gateway_without_channels, until},
    double::PlatformDouble,
};
use crate::conformance::layered::NullStore;

/// How long a run may take to end: less than any adapter waits for a response.
const PROMPTLY: Duration = Duration::from_secs(5);

/// A run with a call that hangs ends at shutdown, and calls that no error.
///
/// # Panics
/// When the check fails.
pub async fn a_shutdown_does_not_wait_for_a_silent_platform(double: &dyn PlatformDouble) {
    let (adapter, shutdown) = (double.adapter(), CancellationToken::new());
    let engine = gateway_without_channels(Arc::new(NullStore)).await;
    double.fall_silent().await;
    let mut run = adapter.run(engine.intake(adapter.channel()), shutdown.clone());

    tokio::select! {
        ended = &mut run => panic!("the run ended before the shutdown: {ended:?}"),
        () = until("a call hangs", async || double.has_hanging_call().await) => shutdown.cancel(),
    }
    let ended = tokio::time::timeout(PROMPTLY, run).await;

    assert!(matches!(ended, Ok(Ok(()))), "the run ends at once: {ended:?}");
    engine.stop(Duration::ZERO).await;
}
