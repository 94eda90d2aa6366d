//! How the channel is doing.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{ChannelHealth, Timestamp};

/// Over how many encrypted events the share of those that cannot be read is taken.
const LOOK_BACK: usize = 50;

/// From how many of them on it means something.
const LEAST: usize = 10;

/// How the channel is doing.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    inbound_at: Option<Timestamp>,
    /// What keeps events from coming in.
    inbound: Option<String>,
    /// What keeps everything from going out.
    outbound: Option<String>,
    /// Whether each of the last encrypted events could be read.
    was_read: VecDeque<bool>,
}

impl State {
    fn unreadable(&self) -> Option<String> {
        let (count, unread) = (self.was_read.len(), self.was_read.iter().filter(|was_read| !**was_read).count());
        (count >= LEAST && unread * 2 > count)
            .then(|| format!("{unread} of the last {count} encrypted events could not be read: their keys are missing"))
    }
}

impl Pulse {
    /// Events come in.
    pub(crate) fn beats(&self, now: Timestamp) {
        let mut state = self.lock();
        state.inbound_at = Some(now);
        state.inbound = None;
    }

    /// Whether events came in since the start.
    pub(crate) fn has_beaten(&self) -> bool {
        self.lock().inbound_at.is_some()
    }

    /// Events do not come in.
    pub(crate) fn fails(&self, problem: String) {
        self.lock().inbound = Some(problem);
    }

    /// Nothing goes out: the session is refused. `None`: it is taken.
    pub(crate) fn outbound(&self, problem: Option<&str>) {
        let mut state = self.lock();
        if state.outbound.as_deref() != problem {
            state.outbound = problem.map(str::to_owned);
        }
    }

    /// An encrypted event could be read, or its key is missing.
    pub(crate) fn encrypted(&self, was_read: bool) {
        let mut state = self.lock();
        if state.was_read.len() == LOOK_BACK {
            state.was_read.pop_front();
        }
        state.was_read.push_back(was_read);
    }

    /// The key of an event came after all.
    pub(crate) fn read_late(&self) {
        if let Some(was_read) = self.lock().was_read.iter_mut().find(|was_read| !**was_read) {
            *was_read = true;
        }
    }

    /// As the core wants it.
    pub(crate) fn health(&self, stale_after: Duration) -> ChannelHealth {
        let state = self.lock();
        let problem = state.inbound.as_ref().or(state.outbound.as_ref()).cloned().or_else(|| state.unreadable());
        ChannelHealth { inbound_at: state.inbound_at, stale_after: Some(stale_after), problem }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_can_read_little_says_so() {
        let pulse = Pulse::default();
        let problem = || pulse.health(Duration::ZERO).problem;

        for _ in 0..9 {
            pulse.encrypted(false);
        }
        assert_eq!(problem(), None, "too few to tell");
        pulse.encrypted(true);
        assert_eq!(
            problem().as_deref(),
            Some("9 of the last 10 encrypted events could not be read: their keys are missing")
        );
        for _ in 0..4 {
            pulse.read_late();
        }
        assert_eq!(problem(), None, "half of them");
    }
}
