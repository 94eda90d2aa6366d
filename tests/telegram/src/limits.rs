//! Rate limits (<https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this>).

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::error::ApiError;

/// A number of messages per time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub count: usize,
    /// The window in seconds.
    pub seconds: f64,
}

/// The rate limits; an edit counts as a message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Per chat.
    pub chat: Option<Rate>,
    /// Additionally per group.
    pub group: Option<Rate>,
    /// For the whole bot.
    pub bot: Option<Rate>,
}

impl Default for Limits {
    /// No limits.
    fn default() -> Self {
        Self { chat: None, group: None, bot: None }
    }
}

impl Limits {
    /// The documented limits: one per second to a chat, twenty per minute to a group, thirty per second in total.
    #[must_use]
    pub fn documented() -> Self {
        let rate = |count, seconds| Some(Rate { count, seconds });
        Self { chat: rate(1, 1.0), group: rate(20, 60.0), bot: rate(30, 1.0) }
    }

    pub(crate) fn none(&self) -> bool {
        self.chat.is_none() && self.group.is_none() && self.bot.is_none()
    }
}

/// The recent messages, and an explicit limit.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    sent: VecDeque<Instant>,
    closed_until: Option<Instant>,
}

/// How many messages are remembered.
const KEPT: usize = 1000;

impl Spent {
    /// Allows no messages for this long.
    pub(crate) fn close(&mut self, time: Duration, now: Instant) {
        self.closed_until = Some(now + time);
    }

    /// How long until another message is allowed, or `None` if it is allowed now.
    pub(crate) fn wait(&self, rates: &[Option<Rate>], now: Instant) -> Option<Duration> {
        let closed = self.closed_until.map(|until| until.saturating_duration_since(now));
        let by_rate = rates.iter().flatten().filter_map(|rate| {
            let window = Duration::from_secs_f64(rate.seconds);
            // The message that must leave the window first.
            let hinders = self.sent.len().checked_sub(rate.count).and_then(|at| self.sent.get(at))?;
            Some((*hinders + window).saturating_duration_since(now))
        });
        closed.into_iter().chain(by_rate).max().filter(|wait| !wait.is_zero())
    }

    pub(crate) fn spend(&mut self, now: Instant) {
        if self.sent.len() == KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }
}

/// The error for a wait, in whole seconds and at least one.
pub(crate) fn refusal(wait: Duration) -> ApiError {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    ApiError::too_many(seconds.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_in_a_second_waits_for_the_rest_of_it() {
        let now = Instant::now();
        let mut spent = Spent::default();
        let rates = [Some(Rate { count: 1, seconds: 1.0 }), Some(Rate { count: 2, seconds: 60.0 })];
        assert_eq!(spent.wait(&rates, now), None);
        spent.spend(now);
        assert_eq!(spent.wait(&rates, now + Duration::from_millis(400)), Some(Duration::from_millis(600)));
        spent.spend(now + Duration::from_secs(1));
        assert_eq!(spent.wait(&rates, now + Duration::from_secs(2)), Some(Duration::from_secs(58)));
    }
}
