//! How the channel is doing.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{ChannelHealth, Timestamp};

/// How the channel is doing.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    inbound_at: Option<Timestamp>,
    /// What keeps updates from coming in.
    inbound: Option<String>,
    /// What keeps everything from going out.
    outbound: Option<String>,
}

impl Pulse {
    /// Updates come in.
    pub(crate) fn beats(&self, now: Timestamp) {
        let mut state = self.lock();
        state.inbound_at = Some(now);
        state.inbound = None;
    }

    /// Updates do not come in.
    pub(crate) fn fails(&self, problem: String) {
        self.lock().inbound = Some(problem);
    }

    /// Nothing goes out: the token is refused. `None`: it is taken.
    pub(crate) fn outbound(&self, problem: Option<&str>) {
        let mut state = self.lock();
        if state.outbound.as_deref() != problem {
            state.outbound = problem.map(str::to_owned);
        }
    }

    /// As the core wants it.
    pub(crate) fn health(&self, stale_after: Option<Duration>) -> ChannelHealth {
        let state = self.lock();
        let problem = state.inbound.as_ref().or(state.outbound.as_ref()).cloned();
        ChannelHealth { inbound_at: state.inbound_at, stale_after, problem }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
