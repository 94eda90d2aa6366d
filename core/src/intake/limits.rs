//! Limits how many turns a person may open, so that one person cannot use up what all share.
//!
//! The turns of the current minute are counted in memory, for the people who wrote last; a restart forgets them. The
//! turns that wait are rows.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use quick_cache::sync::Cache;
use rejoinder_guard::Timestamp;

use crate::{
    model::{conversation::ChannelId, event::InboundEvent, settings::Settings},
    ports::{
        clock::SharedClock,
        store::{Store, StoreError},
    },
};

/// The number of people whose turns are counted. More than that within a minute are counted from anew.
const PEOPLE: usize = 8192;

const MINUTE_MS: i64 = 60_000;

/// Counts the turns of people.
pub(crate) struct Limits {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    clock: SharedClock,
    minutes: Cache<(ChannelId, Box<str>), Arc<Mutex<Minute>>>,
}

/// What a person did in one minute.
#[derive(Default)]
struct Minute {
    /// The minute's number since the Unix epoch.
    number: i64,
    turns: u32,
}

/// A person is over a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverLimit {
    /// The number of the minute in which this was found.
    pub(crate) minute: i64,
    /// When the minute is over.
    pub(crate) retry_after: Duration,
}

impl Limits {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Arc<Settings>, clock: SharedClock) -> Self {
        Self { store, settings, clock, minutes: Cache::new(PEOPLE) }
    }

    /// Counts a turn that `event` opens. `Some` if that is one too many for this minute.
    pub(crate) fn count(&self, event: &InboundEvent) -> Option<OverLimit> {
        let most = self.settings.limits.turns_per_minute?;
        self.with_minute(event, |minute, now| {
            if minute.turns < most {
                minute.turns += 1;
                return None;
            }
            metrics::counter!("rejoinder_limited_events_total", "limit" => "turns_per_minute").increment(1);
            Some(minute.over(now))
        })
    }

    /// `Some` if so many turns of the event's person wait already that another one must not.
    pub(crate) async fn check_waiting(&self, event: &InboundEvent) -> Result<Option<OverLimit>, StoreError> {
        let Some(most) = self.settings.limits.waiting_turns else { return Ok(None) };
        if self.store.waiting_of(&event.conversation.channel, event.person(), most).await? < most {
            return Ok(None);
        }
        metrics::counter!("rejoinder_limited_events_total", "limit" => "waiting_turns").increment(1);
        Ok(Some(self.with_minute(event, Minute::over)))
    }

    fn with_minute<T>(&self, event: &InboundEvent, act: impl FnOnce(&mut Minute, Timestamp) -> T) -> T {
        let person = (event.conversation.channel.clone(), Box::from(event.person()));
        let Ok(minute) = self.minutes.get_or_insert_with(&person, || Ok::<_, std::convert::Infallible>(Arc::default()));
        let mut minute = minute.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let number = now.as_millis().div_euclid(MINUTE_MS);
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        act(&mut minute, now)
    }
}

impl Minute {
    fn over(&mut self, now: Timestamp) -> OverLimit {
        let end = Timestamp::from_millis((self.number + 1) * MINUTE_MS);
        OverLimit { minute: self.number, retry_after: end.since(now) }
    }
}
