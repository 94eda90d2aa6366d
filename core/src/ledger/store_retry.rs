//! Retries of what the store does not do now.

use tracing::{error, warn};

use crate::{
    base::{
        lifecycle::Lifecycle,
        pauses::{self, GrowingPause},
    },
    model::TurnId,
    ports::StoreError,
};

/// How often the store may reject something, other than because it is away, before it is given up.
const MAX_REJECTED: u32 = 10;

pub(crate) struct StoreRetry<'a> {
    what: &'static str,
    turn: TurnId,
    lifecycle: &'a Lifecycle,
    pauses: GrowingPause,
    rejected: u32,
    is_limited: bool,
}

impl<'a> StoreRetry<'a> {
    /// Of something of `turn`; `what` names it in log lines.
    pub(crate) const fn new(what: &'static str, turn: TurnId, lifecycle: &'a Lifecycle) -> Self {
        Self { what, turn, lifecycle, pauses: GrowingPause::new(pauses::STORE), rejected: 0, is_limited: true }
    }

    /// Retries as long as the gateway runs, even if the store rejects it again and again.
    pub(crate) fn unlimited(self) -> Self {
        Self { is_limited: false, ..self }
    }

    /// Waits before the next try. `false` if there is none: the gateway has ended, or the store rejected it too often.
    pub(crate) async fn wait(&mut self, error: &StoreError) -> bool {
        let Self { what, turn, .. } = self;
        self.rejected += u32::from(!error.is_outage());
        if self.is_limited && self.rejected > MAX_REJECTED {
            error!(%turn, what, %error, "the store failed, giving up");
            return false;
        }
        warn!(%turn, what, %error, "the store failed, retrying");
        self.lifecycle.pause(self.pauses.next()).await
    }
}
