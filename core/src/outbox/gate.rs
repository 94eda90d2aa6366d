//! The rate gate: decides what may be sent to a platform now.
//!
//! There is one budget for an account and one for each of its chats, shared by everything
//! that is sent there. Half of each is reserved for final signals. Scopes that a platform has blocked are
//! checked before any budget, and are stored, so that a restart does not forget them.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use governor::{Quota, RateLimiter, middleware::NoOpMiddleware, nanos::Nanos, state::keyed::DefaultKeyedStateStore};
use rejoinder_guard::Timestamp;

use crate::{
    model::{
        capabilities::{Capabilities, Rate},
        conversation::{ChannelId, ConversationRef},
        delivery::Class,
    },
    ports::{clock::SharedClock, store::record::BlockedScope},
};

/// The number of calls after which the budgets of idle chats are removed.
const FORGET_EVERY: u32 = 4096;

/// The gateway's clock, as the rate limiter needs it.
#[derive(Clone, Debug)]
struct GateClock(SharedClock);

impl governor::clock::Clock for GateClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        let millis = u64::try_from(self.0.now().as_millis()).unwrap_or(0);
        Duration::from_millis(millis).into()
    }
}

type Limiter = RateLimiter<String, DefaultKeyedStateStore<String>, GateClock, NoOpMiddleware<Nanos>>;

/// The budgets of one rate by chat; the empty chat stands for the account.
struct Budget {
    everything: Limiter,
    /// The half that everything except final signals must also fit into.
    interim: Limiter,
    calls: AtomicU32,
}

impl Budget {
    fn new(rate: Rate, clock: &SharedClock) -> Option<Self> {
        let everything = Quota::with_period(rate.per)?.allow_burst(NonZeroU32::new(rate.burst)?);
        let half = NonZeroU32::new(rate.burst / 2).unwrap_or(NonZeroU32::MIN);
        let interim = Quota::with_period(rate.per * 2)?.allow_burst(half);
        let clock = GateClock(Arc::clone(clock));
        Some(Self {
            everything: Limiter::new(everything, DefaultKeyedStateStore::default(), clock.clone()),
            interim: Limiter::new(interim, DefaultKeyedStateStore::default(), clock),
            calls: AtomicU32::new(0),
        })
    }

    fn take(&self, chat: &String, class: Class, now: Nanos) -> Result<(), Duration> {
        if self.calls.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            self.everything.retain_recent();
            self.interim.retain_recent();
        }
        if class != Class::Final {
            self.interim.check_key(chat).map_err(|not_yet| not_yet.wait_time_from(now))?;
        }
        self.everything.check_key(chat).map_err(|not_yet| not_yet.wait_time_from(now))
    }
}

/// Every channel's budgets and blocks.
pub(crate) struct RateGate {
    clock: SharedClock,
    budgets: DashMap<(ChannelId, Rate, bool), Option<Arc<Budget>>>,
    blocked: DashMap<(ChannelId, Option<String>), Timestamp>,
}

impl RateGate {
    pub(crate) fn new(clock: SharedClock, blocked: Vec<BlockedScope>) -> Self {
        let gate = Self { clock, budgets: DashMap::new(), blocked: DashMap::new() };
        for scope in blocked {
            gate.block(&scope);
        }
        gate
    }

    /// Blocks a scope; of two blocks, the one that ends later counts.
    pub(crate) fn block(&self, scope: &BlockedScope) {
        self.blocked
            .entry((scope.channel.clone(), scope.chat.clone()))
            .and_modify(|until| *until = (*until).max(scope.until))
            .or_insert(scope.until);
    }

    /// When the platform's block of a conversation ends, if it is blocked.
    pub(crate) fn blocked_until(&self, conversation: &ConversationRef) -> Option<Timestamp> {
        let now = self.clock.now();
        [None, Some(conversation.chat.to_string())]
            .into_iter()
            .filter_map(|chat| {
                let key = (conversation.channel.clone(), chat);
                self.blocked.remove_if(&key, |_, until| *until <= now);
                self.blocked.get(&key).map(|until| *until)
            })
            .max()
    }

    /// Takes one send of `class` from the budgets of `conversation`.
    ///
    /// # Errors
    /// The time to wait before the next call.
    pub(crate) fn take(
        &self,
        conversation: &ConversationRef,
        capabilities: &Capabilities,
        class: Class,
    ) -> Result<(), Duration> {
        let now = governor::clock::Clock::now(&GateClock(Arc::clone(&self.clock)));
        if let Some(budget) = self.budget(&conversation.channel, capabilities.conversation_rate, false) {
            budget.take(&conversation.chat.to_string(), class, now)?;
        }
        if let Some(budget) = self.budget(&conversation.channel, capabilities.account_rate, true) {
            budget.take(&String::new(), class, now)?;
        }
        Ok(())
    }

    fn budget(&self, channel: &ChannelId, rate: Option<Rate>, account: bool) -> Option<Arc<Budget>> {
        let rate = rate?;
        self.budgets
            .entry((channel.clone(), rate, account))
            .or_insert_with(|| Budget::new(rate, &self.clock).map(Arc::new))
            .clone()
    }
}
