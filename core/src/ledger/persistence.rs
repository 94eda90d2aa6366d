//! Storing something again until it is stored.

use tracing::{error, warn};

use crate::{
    lifecycle::Lifecycle,
    model::ids::TurnId,
    pauses::{self, Growing},
    ports::store::StoreError,
};

/// How often the store may refuse to take something although it can write.
const MAX_REJECTED: u32 = 10;

/// The tries to store one thing.
pub(crate) struct Persistence {
    what: &'static str,
    turn: TurnId,
    lifecycle: Lifecycle,
    pauses: Growing,
    rejected: u32,
    gives_up: bool,
}

impl Persistence {
    pub(super) const fn new(what: &'static str, turn: TurnId, lifecycle: Lifecycle) -> Self {
        Self { what, turn, lifecycle, pauses: Growing::along(pauses::STORE), rejected: 0, gives_up: true }
    }

    /// Tries for as long as the gateway runs, also when the store can write and does not take it.
    pub(crate) fn without_end(self) -> Self {
        Self { gives_up: false, ..self }
    }

    /// Waits before the next try; `false` when there is none: the gateway has ended, or the store can write and will not
    /// take it.
    pub(crate) async fn tries_again(&mut self, error: &StoreError) -> bool {
        let Self { what, turn, .. } = self;
        self.rejected += u32::from(!matches!(error, StoreError::Unavailable(_)));
        if self.gives_up && self.rejected > MAX_REJECTED {
            error!(%turn, what, %error, "cannot be stored");
            return false;
        }
        warn!(%turn, what, %error, "cannot be stored now, trying again");
        self.lifecycle.pause(self.pauses.next()).await
    }
}
