//! Interrupts two agents that answer each other.
//!
//! Only other agents whom the operator lets in are counted. The counts are in memory; a restart forgets them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::warn;

use crate::{
    base::words::rfc3339,
    model::{ConversationRef, InboundEvent, LogEvent, NewLogEntry, SenderKind, Subject},
    ports::{SharedClock, StoreError, Transition, Transitions},
};

/// How many messages of another agent are answered within which time: 20 messages of both in a minute, and 100 in an hour, so
/// that slow agents end as well.
const PACES: [(usize, Duration); 2] = [(10, Duration::from_mins(1)), (50, Duration::from_hours(1))];

/// How long an agent that was faster is not heard in the conversation. If it only answers us, it has nothing more to say.
const PAUSE: Duration = Duration::from_mins(10);

/// The number of pairs after which those are forgotten that have not written for an hour.
const REMEMBERED: usize = 256;

/// Counts the messages of other agents, by conversation.
pub(crate) struct Pairs {
    store: Arc<dyn Transitions>,
    clock: SharedClock,
    by_key: Arc<Mutex<PairsByKey>>,
}

type PairsByKey = HashMap<Key, Pair>;

/// Where somebody writes, and who it is.
type Key = (ConversationRef, Box<str>);

#[derive(Default)]
struct Pair {
    /// When its latest messages came, oldest first.
    heard: VecDeque<Timestamp>,
    paused_until: Option<Timestamp>,
}

/// What becomes of a message of another agent.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    IsHeard,
    IsPaused,
    /// It is one too many: it should be paused until then.
    Pauses(Timestamp),
}

/// Whether a message may open a turn.
pub(super) enum Passage {
    Open(Option<Heard>),
    Closed,
}

/// A message of another agent that was counted. Dropped before its turn is opened, it no longer counts.
pub(super) struct Heard {
    by_key: Arc<Mutex<PairsByKey>>,
    /// Whose it is, and when it came; `None` once its turn was opened.
    counted: Option<(Key, Timestamp)>,
}

impl Heard {
    /// The turn was opened.
    pub(super) fn keep(mut self) {
        self.counted = None;
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if let Some((key, at)) = self.counted.take()
            && let Some(pair) = lock(&self.by_key).get_mut(&key)
            && let Some(index) = pair.heard.iter().rposition(|heard| *heard == at)
        {
            pair.heard.remove(index);
        }
    }
}

impl Pairs {
    pub(crate) fn new(store: Arc<dyn Transitions>, clock: SharedClock) -> Self {
        Self { store, clock, by_key: Arc::default() }
    }

    /// Whether an event may open a turn. If it is one too many of an agent, this is stored in the log.
    pub(super) async fn passage(&self, event: &InboundEvent) -> Result<Passage, StoreError> {
        if event.sender.kind != SenderKind::OtherAgent {
            return Ok(Passage::Open(None));
        }
        let now = self.clock.now();
        let key = (event.conversation.clone(), event.person().into());
        let until = match self.count(&key, now) {
            Verdict::IsHeard => {
                let counted = Some((key, now));
                return Ok(Passage::Open(Some(Heard { by_key: Arc::clone(&self.by_key), counted })));
            }
            Verdict::IsPaused => return Ok(Passage::Closed),
            Verdict::Pauses(until) => until,
        };
        let (identity, conversation) = (event.identity().to_string(), event.conversation.to_string());
        warn!(%identity, "another agent and this one answer each other: it is not heard for a while");
        let paused = LogEvent::AgentsInterrupted { identity, conversation, until: rfc3339(until) };
        let log = vec![NewLogEntry { at: now, subject: Subject::channel(&event.conversation.channel), event: paused }];
        self.store.commit(Transition { log, ..Transition::default() }).await?;
        lock(&self.by_key).entry(key).or_default().pause(until);
        Ok(Passage::Closed)
    }

    fn count(&self, key: &Key, now: Timestamp) -> Verdict {
        let mut by_key = lock(&self.by_key);
        if by_key.len() >= REMEMBERED {
            by_key.retain(|_, pair| pair.is_of_use(now));
        }
        by_key.entry(key.clone()).or_default().count(now)
    }
}

fn lock(by_key: &Mutex<PairsByKey>) -> MutexGuard<'_, PairsByKey> {
    by_key.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pair {
    fn count(&mut self, now: Timestamp) -> Verdict {
        if self.paused_until.is_some_and(|until| now < until) {
            return Verdict::IsPaused;
        }
        let is_too_fast = |(most, time): &(usize, Duration)| {
            self.heard.iter().rev().nth(most - 1).is_some_and(|earlier| now < *earlier + *time)
        };
        if PACES.iter().any(is_too_fast) {
            return Verdict::Pauses(now + PAUSE);
        }
        let (most, _) = PACES[PACES.len() - 1];
        if self.heard.len() == most {
            self.heard.pop_front();
        }
        self.heard.push_back(now);
        Verdict::IsHeard
    }

    fn pause(&mut self, until: Timestamp) {
        *self = Self { heard: VecDeque::new(), paused_until: Some(until) };
    }

    fn is_of_use(&self, now: Timestamp) -> bool {
        let (_, longest) = PACES[PACES.len() - 1];
        self.heard.back().is_some_and(|last| now < *last + longest)
            || self.paused_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// O1.
    #[test]
    fn an_agent_that_writes_too_fast_is_paused_and_heard_again_later() {
        let mut pair = Pair::default();

        assert!((0..10).all(|second| pair.count(at(second)) == Verdict::IsHeard));
        assert_eq!(pair.count(at(10)), Verdict::Pauses(at(610)));
        pair.pause(at(610));
        assert_eq!(pair.count(at(609)), Verdict::IsPaused);
        assert_eq!(pair.count(at(610)), Verdict::IsHeard);
    }

    /// O1.
    #[test]
    fn a_slow_agent_that_never_ends_is_paused_as_well() {
        let mut pair = Pair::default();

        let heard = (0..1000).take_while(|minute| pair.count(at(minute * 60)) == Verdict::IsHeard).count();

        assert_eq!(heard, 50);
    }

    #[test]
    fn an_agent_that_writes_now_and_then_is_always_heard() {
        let mut pair = Pair::default();

        assert!((0..1000).all(|number| pair.count(at(number * 73)) == Verdict::IsHeard));
        assert_eq!(pair.heard.len(), 50);
        assert!(pair.is_of_use(at(1000 * 73)) && !pair.is_of_use(at(1100 * 73)));
    }
}
