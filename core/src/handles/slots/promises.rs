//! Permits that are promised: going by how long an agent's runs take, one will be free soon. A turn with a promise is stored as
//! running at once, and waits for its permit in memory.

use std::{collections::VecDeque, time::Duration};

use super::permit::Permit;
use crate::model::ConversationId;

/// How soon a permit must be free to be promised.
const SOON: Duration = Duration::from_secs(1);

/// How long a turn waits for a permit that was promised: longer than it should. After that it waits as a row.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How long an agent's run is taken to hold a permit, as long as none has ended. An agent that is slow is promised nothing.
const UNKNOWN: Duration = Duration::from_mins(1);

/// One of how many runs the latest one counts as.
const WEIGHT: u32 = 8;

/// The promises of permits of one agent.
pub(super) struct Promises {
    /// Who was promised a permit, and has none yet, in order.
    line: VecDeque<Promise>,
    /// How long a run holds a permit: the mean, in which the latest runs count most.
    mean: Duration,
}

pub(super) struct Promise {
    /// The order in which promises are made, over all agents.
    pub(super) number: u64,
    pub(super) conversation: ConversationId,
    pub(super) permit: Permit,
}

impl Default for Promises {
    fn default() -> Self {
        Self { line: VecDeque::new(), mean: UNKNOWN }
    }
}

impl Promises {
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// A run has held a permit for this long.
    pub(super) fn observe(&mut self, held: Duration) {
        self.mean = (self.mean * (WEIGHT - 1) + held.min(UNKNOWN)) / WEIGHT;
    }

    /// Whether one of `permits` will be free soon for the turn that is `place`th in line.
    pub(super) fn is_soon(&self, place: usize, permits: usize) -> bool {
        let (place, permits) = (u32::try_from(place), u32::try_from(permits.max(1)));
        place.is_ok_and(|place| self.mean.saturating_mul(place) / permits.unwrap_or(u32::MAX) <= SOON)
    }

    pub(super) fn add(&mut self, promise: Promise) {
        self.line.push_back(promise);
    }

    /// The number of the first promise.
    pub(super) fn first(&self) -> Option<u64> {
        self.line.front().map(|promise| promise.number)
    }

    pub(super) fn take_first(&mut self) -> Option<Promise> {
        self.line.pop_front()
    }

    /// Returns whether the conversation was in the line.
    pub(super) fn forget(&mut self, conversation: ConversationId) -> bool {
        let before = self.line.len();
        self.line.retain(|promise| promise.conversation != conversation);
        self.line.len() < before
    }

    /// A promise was not kept in time. As long as no more runs have ended, nothing is promised.
    pub(super) fn break_one(&mut self, conversation: ConversationId) {
        if self.forget(conversation) {
            self.mean = UNKNOWN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_must_have_been_fast_before_a_permit_is_promised() {
        let mut promises = Promises::default();
        assert!(!promises.is_soon(1, 32), "nothing is known of it");

        (0..100).for_each(|_| promises.observe(Duration::from_millis(10)));

        assert!(promises.is_soon(1, 1));
        assert!(promises.is_soon(1000, 32));
        assert!(!promises.is_soon(1000, 1), "the line is too long for one permit");
    }

    #[test]
    fn an_agent_that_becomes_slow_is_promised_nothing_soon_after() {
        let mut promises = Promises::default();
        (0..100).for_each(|_| promises.observe(Duration::from_millis(10)));

        (0..4).for_each(|_| promises.observe(Duration::from_secs(20)));

        assert!(!promises.is_soon(1, 4));
    }
}
