//! What a run reads of the store before its agent is called.

use rejoinder_guard::Timestamp;
use tokio_util::sync::CancellationToken;

use super::result::RunResult;
use crate::{
    base::lifecycle::Lifecycle,
    ledger::store_retry::StoreRetry,
    model::TurnId,
    ports::{SharedClock, StoreError},
};

/// Reads what a run needs, also if the store is away for a while.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) lifecycle: &'a Lifecycle,
    pub(super) clock: &'a SharedClock,
    pub(super) turn: TurnId,
    /// Cancelled when the run is to stop.
    pub(super) stop: &'a CancellationToken,
    pub(super) deadline: Option<Timestamp>,
}

impl Reads<'_> {
    /// What `read` returns. It is tried again while the store is away, until the run is stopped or its time is over.
    pub(super) async fn get<T, R>(&self, what: &'static str, read: impl Fn() -> R) -> Result<T, RunResult>
    where
        R: Future<Output = Result<T, StoreError>>,
    {
        let mut retry = StoreRetry::new(what, self.turn, self.lifecycle);
        let unread = |error: StoreError| RunResult::Unread(format!("{what} cannot be read: {error}"));
        loop {
            let error = match read().await {
                Err(error) if error.is_outage() => error,
                read => return read.map_err(unread),
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(RunResult::Stopped),
                () = self.clock.sleep_until_next(self.deadline) => return Err(unread(error)),
                goes_on = retry.wait(&error) => if !goes_on {
                    return Err(RunResult::GatewayStopped);
                },
            }
        }
    }
}
