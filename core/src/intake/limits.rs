//! Limits how many turns a person may open, so that one person cannot use up what all share.
//!
//! The turns of a minute are counted in memory; a restart forgets them. The turns that wait are rows.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock::Clock as _, middleware::NoOpMiddleware, nanos::Nanos,
    state::keyed::DefaultKeyedStateStore,
};

use crate::{
    model::{conversation::ChannelId, event::InboundEvent, settings::Settings},
    ports::{
        clock::SharedClock,
        store::{Store, StoreError},
    },
};

/// The number of turns after which the people who have not written for a while are forgotten.
const FORGET_EVERY: u32 = 4096;

const MINUTE_MS: i64 = 60_000;

/// The gateway's clock, as the rate limiter needs it.
#[derive(Clone, Debug)]
struct LimiterClock(SharedClock);

impl governor::clock::Clock for LimiterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        let millis = u64::try_from(self.0.now().as_millis()).unwrap_or(0);
        Duration::from_millis(millis).into()
    }
}

type Person = (ChannelId, Box<str>);

type Limiter = RateLimiter<Person, DefaultKeyedStateStore<Person>, LimiterClock, NoOpMiddleware<Nanos>>;

/// Counts the turns of people.
pub(crate) struct Limits {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    clock: SharedClock,
    /// `None`: without limit.
    minutes: Option<Limiter>,
    counted: AtomicU32,
}

/// A person is over a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverLimit {
    /// The number of the minute in which this was found, since the Unix epoch.
    pub(crate) minute: i64,
    /// When to try again.
    pub(crate) retry_after: Duration,
}

impl Limits {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Arc<Settings>, clock: SharedClock) -> Self {
        let most = settings.limits.turns_per_minute.and_then(NonZeroU32::new);
        let minutes = most.map(|most| {
            let clock = LimiterClock(Arc::clone(&clock));
            Limiter::new(Quota::per_minute(most), DefaultKeyedStateStore::default(), clock)
        });
        Self { store, settings, clock, minutes, counted: AtomicU32::new(0) }
    }

    /// Counts a turn that `event` opens. `Some` if that is one too many for now.
    pub(crate) fn count(&self, event: &InboundEvent) -> Option<OverLimit> {
        let minutes = self.minutes.as_ref()?;
        if self.counted.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            minutes.retain_recent();
        }
        let person = (event.conversation.channel.clone(), Box::from(event.person()));
        let not_yet = minutes.check_key(&person).err()?;
        metrics::counter!("rejoinder_limited_events_total", "limit" => "turns_per_minute").increment(1);
        let retry_after = not_yet.wait_time_from(LimiterClock(Arc::clone(&self.clock)).now());
        Some(OverLimit { minute: self.minute(), retry_after })
    }

    /// `Some` if so many turns of the event's person wait already that another one must not.
    pub(crate) async fn check_waiting(&self, event: &InboundEvent) -> Result<Option<OverLimit>, StoreError> {
        let Some(most) = self.settings.limits.waiting_turns else { return Ok(None) };
        if self.store.waiting_of(&event.conversation.channel, event.person(), most).await? < most {
            return Ok(None);
        }
        metrics::counter!("rejoinder_limited_events_total", "limit" => "waiting_turns").increment(1);
        Ok(Some(OverLimit { minute: self.minute(), retry_after: Duration::from_mins(1) }))
    }

    /// The number of the current minute since the Unix epoch.
    fn minute(&self) -> i64 {
        self.clock.now().as_millis().div_euclid(MINUTE_MS)
    }
}
