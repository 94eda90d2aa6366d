//! Tracks whether channels can send, and speeds up waiting deliveries when one can again.
//!
//! While a channel cannot send, one delivery every 10 to 15 s is a probe. After the first 15 s the others that were
//! tried wait for it, however many they are. Any answer to a message ends the outage, and all waiting deliveries are
//! sent. A delivery that may have arrived is sent again only on a channel that has answered a message since the last
//! failure. Otherwise one at a time may, as a probe ([`Health::may_resend`]), and only if the platform answers a typing
//! notice.

use std::{collections::HashSet, sync::Arc, time::Duration};

use dashmap::{DashMap, Entry};
use rejoinder_guard::Timestamp;
use tracing::debug;

use crate::{
    base::lifecycle::Lifecycle,
    handles::lanes::Lanes,
    model::{ChannelId, ConversationId, DeliveryError, DeliveryId, Receipt},
    ports::{OutboxStore, SharedClock, StoreError},
    shown::retry,
};

/// The least pause between two probes of a channel with deliveries that may have arrived.
const BETWEEN_PROBES: Duration = Duration::from_secs(10);

/// How long a channel pauses after its credentials were refused.
pub(crate) const UNAUTHORIZED_PAUSE: Duration = Duration::from_mins(1);

/// The number of failures in a row after which a successful send counts as a return. Fewer are no outage: a delivery
/// that failed once or twice is retried soon anyway.
const FAILURES: u32 = 3;

/// How long a channel must have failed before what waits is left to the probe: a short outage ends with the next retry.
const DOWN_AFTER: Duration = Duration::from_secs(15);

/// How often another delivery of a conversation is tried after the probe has failed: that one may be what fails.
const BETWEEN_OTHERS: Duration = Duration::from_secs(100);

/// The minimum time between two returns of a channel that speed up deliveries.
const BETWEEN_RETURNS: Duration = Duration::from_secs(15);

/// How many conversations are sped up at a time when a channel is back.
const HURRIED: u32 = 1024;

/// The pause between them.
const BETWEEN_HURRIED: Duration = Duration::from_secs(1);

/// A delivery is sped up only if its next attempt is due within this time: longer than any pause between attempts.
const HURRIED_WITHIN: Duration = Duration::from_mins(75);

/// The health of the channels, in memory only: a restart begins without it, as the operator may have fixed them.
pub(crate) struct Health {
    store: Arc<dyn OutboxStore>,
    lanes: Arc<Lanes>,
    clock: SharedClock,
    lifecycle: Lifecycle,
    /// Channels whose credentials were refused, with the end of their pause.
    unauthorized: DashMap<ChannelId, Timestamp>,
    /// Channels whose platform has answered since the start, with its latest return from an outage.
    back_at: DashMap<ChannelId, Option<Timestamp>>,
    /// Channels whose latest sends failed.
    failing: DashMap<ChannelId, Failing>,
    /// Channels that have answered a message since the start and since their last failure.
    answering: DashMap<ChannelId, ()>,
    /// When another delivery that may have arrived may be a probe, of channels on which one was.
    probe_from: DashMap<ChannelId, Timestamp>,
    /// When a channel was back last, or an operator wanted it tried.
    returned: DashMap<ChannelId, Timestamp>,
    /// When a channel's platform last acknowledged something.
    sent_at: DashMap<ChannelId, Timestamp>,
}

/// Whether a delivery that may have arrived may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayResend {
    /// Its channel answers messages.
    Now,
    /// To find out whether the channel answers, if it answers a typing notice.
    AsProbe,
    /// Another one was tried a moment ago.
    Later,
}

/// What a typing notice has shown of a channel that cannot send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    NotTried,
    /// The platform does not answer.
    Failed,
    /// It has answered since this number of failures.
    Answered(u32),
}

/// Sends that failed in a row.
struct Failing {
    failures: u32,
    /// Whether one was a message: the answer to an edit or a reaction does not show that messages are answered.
    has_message: bool,
    looked: Look,
    since: Timestamp,
    /// When another delivery was tried after the probe.
    other_at: Timestamp,
    error: String,
}

/// Whether a channel can send, as its latest sends tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outbound {
    /// When the platform last acknowledged something, since the start of the gateway.
    pub sent_at: Option<Timestamp>,
    /// Since when sends have failed, if several in a row did.
    pub failing_since: Option<Timestamp>,
    /// The latest error of these.
    pub error: Option<String>,
}

impl Health {
    pub(crate) fn new(
        store: Arc<dyn OutboxStore>,
        lanes: Arc<Lanes>,
        clock: SharedClock,
        lifecycle: Lifecycle,
    ) -> Self {
        let (unauthorized, back_at) = (DashMap::new(), DashMap::new());
        let (failing, sent_at) = (DashMap::new(), DashMap::new());
        let (answering, probe_from, returned) = (DashMap::new(), DashMap::new(), DashMap::new());
        Self {
            store,
            lanes,
            clock,
            lifecycle,
            unauthorized,
            back_at,
            failing,
            answering,
            probe_from,
            returned,
            sent_at,
        }
    }

    pub(crate) fn refuse_credentials(&self, channel: &ChannelId) {
        self.unauthorized.insert(channel.clone(), self.clock.now() + UNAUTHORIZED_PAUSE);
    }

    /// Whether a channel can send, as its latest sends tell. Refused credentials count at once.
    pub(crate) fn outbound(&self, channel: &ChannelId) -> Outbound {
        let sent_at = self.sent_at.get(channel).map(|at| *at);
        let is_refused = self.unauthorized.contains_key(channel);
        let failing = self.failing.get(channel);
        let failing = failing.filter(|failing| failing.failures >= FAILURES || is_refused);
        Outbound {
            sent_at,
            failing_since: failing.as_ref().map(|failing| failing.since),
            error: failing.as_ref().map(|failing| failing.error.clone()),
        }
    }

    /// A channel to which nothing is to be sent any more does not fail to send, even if its latest sends failed.
    pub(crate) async fn forget_failures(&self) -> Result<(), StoreError> {
        let failing: Vec<ChannelId> = self.failing.iter().map(|failing| failing.key().clone()).collect();
        for channel in failing {
            if !self.unauthorized.contains_key(&channel) && !self.store.has_unsent(&channel).await? {
                self.failing.remove(&channel);
            }
        }
        Ok(())
    }

    /// When a channel's pause after refused credentials ends, if it pauses.
    pub(crate) fn unauthorized_until(&self, channel: &ChannelId) -> Option<Timestamp> {
        self.unauthorized.get(channel).map(|until| *until).filter(|until| *until > self.clock.now())
    }

    pub(crate) fn is_down(&self, channel: &ChannelId) -> bool {
        let lasts = |failing: &Failing| self.clock.now().since(failing.since) >= DOWN_AFTER;
        self.failing.get(channel).is_some_and(|failing| failing.failures >= FAILURES && lasts(&failing))
    }

    /// Whether another delivery may be tried on a channel that is down, after one has failed.
    pub(crate) fn may_try_another(&self, channel: &ChannelId) -> bool {
        let now = self.clock.now();
        let Some(mut failing) = self.failing.get_mut(channel) else { return true };
        let may = now.since(failing.other_at) >= BETWEEN_OTHERS;
        if may {
            failing.other_at = now;
        }
        may
    }

    /// Whether a delivery that may have arrived may be sent again now.
    pub(crate) fn may_resend(&self, channel: &ChannelId) -> MayResend {
        if self.answering.contains_key(channel) {
            return MayResend::Now;
        }
        let now = self.clock.now();
        let mut from = self.probe_from.entry(channel.clone()).or_insert(now);
        if *from > now {
            return MayResend::Later;
        }
        *from = now + BETWEEN_PROBES;
        MayResend::AsProbe
    }

    /// Whether a channel is back since `at`, and a delivery that may have arrived may be sent now.
    pub(crate) fn is_back_since(&self, channel: &ChannelId, at: Timestamp) -> bool {
        let is_back = self.returned.get(channel).is_some_and(|returned| *returned > at);
        let may_probe = || self.probe_from.get(channel).is_none_or(|from| *from <= self.clock.now());
        is_back && (self.answering.contains_key(channel) || may_probe())
    }

    /// Whether a channel has worked again since an attempt that began at `at`: its failure tells nothing of what is so now.
    pub(crate) fn has_returned_since(&self, channel: &ChannelId, at: Timestamp) -> bool {
        let is_later = |map: Option<Timestamp>| map.is_some_and(|returned| returned > at);
        is_later(self.returned.get(channel).map(|at| *at)) || is_later(self.back_at.get(channel).and_then(|at| *at))
    }

    /// Whether a channel has failed again since its platform answered a typing notice: it is not the platform that is down.
    pub(crate) fn fails_although_it_answers(&self, channel: &ChannelId) -> bool {
        self.failing.get(channel).is_some_and(|failing| match failing.looked {
            Look::Answered(failures) => failing.failures > failures,
            Look::NotTried | Look::Failed => false,
        })
    }

    /// Records whether the platform of a channel that cannot send answered a typing notice. If it did not before, it is back: one
    /// delivery that may have arrived is sent.
    pub(crate) fn note_look(self: &Arc<Self>, channel: &ChannelId, is_answer: bool) {
        let before = self.failing.get_mut(channel).map(|mut failing| {
            let looked = match failing.looked {
                _ if !is_answer => Look::Failed,
                Look::Answered(failures) => Look::Answered(failures),
                Look::NotTried | Look::Failed => Look::Answered(failing.failures),
            };
            std::mem::replace(&mut failing.looked, looked)
        });
        if is_answer && before == Some(Look::Failed) {
            self.try_now(channel);
        }
    }

    /// Records the result of a send; `is_message`: of a new message. Any answer of the platform, also a refusal, ends an outage:
    /// deliveries that wait for a retry are sent at once.
    pub(crate) fn note(
        self: &Arc<Self>,
        channel: &ChannelId,
        is_message: bool,
        result: &Result<Receipt, DeliveryError>,
    ) {
        match result {
            Ok(_) => {
                self.sent_at.insert(channel.clone(), self.clock.now());
                self.note_answer(channel, is_message);
            }
            // No call was made.
            Err(DeliveryError::Unsupported(_)) => {}
            Err(error) if error.is_answer() => self.note_answer(channel, is_message),
            Err(error) => self.note_failure(channel, is_message, error),
        }
    }

    fn note_failure(self: &Arc<Self>, channel: &ChannelId, is_message: bool, error: &DeliveryError) {
        let since = self.clock.now();
        let first = || Failing {
            failures: 0,
            has_message: false,
            looked: Look::NotTried,
            since,
            other_at: since,
            error: String::new(),
        };
        let mut failing = self.failing.entry(channel.clone()).or_insert_with(first);
        failing.failures = failing.failures.saturating_add(1);
        failing.has_message |= is_message;
        failing.error = error.to_string();
        let (failures, since) = (failing.failures, failing.since);
        drop(failing);
        if is_message {
            self.answering.remove(channel);
        }
        if failures == 1 {
            let (health, channel) = (Arc::clone(self), channel.clone());
            self.lifecycle.loops.spawn(async move { health.probe(&channel, since).await });
        }
    }

    fn note_answer(self: &Arc<Self>, channel: &ChannelId, is_message: bool) {
        self.unauthorized.remove(channel);
        if !is_message && self.failing.get(channel).is_some_and(|failing| failing.has_message) {
            return;
        }
        if is_message {
            self.answering.insert(channel.clone(), ());
        }
        let was_down = self.failing.remove(channel).is_some_and(|(_, failing)| failing.failures >= FAILURES);
        let was_probe = is_message && self.probe_from.remove(channel).is_some();
        if was_down || was_probe {
            self.returned.insert(channel.clone(), self.clock.now());
            self.hurry_soon(channel);
        }
    }

    /// Tries one delivery every 10 to 15 s, until the outage that began at `since` is over.
    async fn probe(&self, channel: &ChannelId, since: Timestamp) {
        while self.lifecycle.pause_unless_stopping(retry::probe_pause()).await {
            if self.failing.get(channel).is_none_or(|failing| failing.since != since) {
                return;
            }
            let now = self.clock.now();
            // Everything was tried.
            if self.back_at.get(channel).is_some_and(|at| at.is_some_and(|at| now.since(at) < BETWEEN_RETURNS)) {
                continue;
            }
            match self.next_probe(channel, now).await {
                Ok(Some((conversation, delivery))) => self.lanes.probe(channel, conversation, delivery),
                Ok(None) => {}
                Err(error) => debug!(%channel, %error, "cannot read a delivery to try on a channel that cannot send"),
            }
        }
    }

    /// What is tried to find out whether a channel can send again: a delivery, or only its conversation if all may have arrived and
    /// wait for their time.
    async fn next_probe(
        &self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<(ConversationId, Option<DeliveryId>)>, StoreError> {
        if let Some((conversation, delivery)) = self.store.next_probe(channel, now).await? {
            return Ok(Some((conversation, Some(delivery))));
        }
        let waiting = self.store.upcoming(channel, 1).await?.into_iter().next();
        Ok(waiting.map(|(conversation, _)| (conversation, None)))
    }

    /// A platform answers again, or for the first time: deliveries that wait for a retry are sent at once. Ignored for a
    /// connection that comes and goes while sending fails: the retry pauses apply then.
    pub(crate) fn report_recovered(self: &Arc<Self>, channel: &ChannelId) {
        let now = self.clock.now();
        let was_away = self.failing.contains_key(channel) || self.unauthorized.contains_key(channel);
        match self.back_at.entry(channel.clone()) {
            Entry::Vacant(first) => drop(first.insert(None)),
            Entry::Occupied(mut last)
                if was_away && last.get().is_none_or(|last| now.since(last) >= BETWEEN_RETURNS) =>
            {
                last.insert(Some(now));
            }
            Entry::Occupied(_) => return,
        }
        // That it receives does not show that messages are answered: what may have arrived is sent once a probe is.
        self.allow(channel);
        self.hurry_soon(channel);
    }

    /// Has what waits for a channel sent at once, for an operator. Of what may have arrived one is sent, and all if that is answered.
    pub(crate) fn try_now(self: &Arc<Self>, channel: &ChannelId) {
        self.returned.insert(channel.clone(), self.clock.now());
        self.allow(channel);
        self.hurry_soon(channel);
    }

    /// Ends the pauses of a channel.
    pub(crate) fn allow(&self, channel: &ChannelId) {
        self.unauthorized.remove(channel);
        self.probe_from.remove(channel);
    }

    /// Sends what waits for a channel, which works again.
    pub(crate) fn hurry_soon(self: &Arc<Self>, channel: &ChannelId) {
        let (health, channel) = (Arc::clone(self), channel.clone());
        self.lifecycle.work.spawn(async move { health.hurry(&channel).await });
    }

    async fn hurry(&self, channel: &ChannelId) {
        let mut hurried = HashSet::new();
        loop {
            let soon = self.clock.now() + HURRIED_WITHIN;
            let upcoming = match self.store.upcoming(channel, HURRIED).await {
                Ok(upcoming) => upcoming,
                Err(error) => {
                    return debug!(%channel, %error, "cannot read the deliveries that wait for a channel that is back");
                }
            };
            let waiting: Vec<_> = upcoming.into_iter().take_while(|(_, at)| *at <= soon).collect();
            let (is_last, before) = (waiting.len() < HURRIED as usize, hurried.len());
            for (conversation, _) in waiting {
                if hurried.insert(conversation) {
                    self.lanes.hurry(channel, conversation);
                }
            }
            // The others are read when these are sent.
            let is_stuck = hurried.len() == before && self.failing.contains_key(channel);
            if is_last || is_stuck || !self.lifecycle.pause_unless_stopping(BETWEEN_HURRIED).await {
                return;
            }
        }
    }
}
