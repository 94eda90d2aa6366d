//! Limits how many turns a person may open, so that one person cannot use up what all share.
//!
//! The turns of a minute are counted in memory: the start reads those of the last one. The turns that wait are rows, and what is
//! used of a day is one: it is read once a day, and then counted in memory as well.
//!
//! While other nodes live, what is used of a day is read each time, and the turns of those who may write at several nodes are counted in
//! the store as well. A channel that one node receives on counts there: when another node takes it over, a minute begins anew.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_guard::Timestamp;
use tracing::debug;

use crate::{
    base::{channels::Channels, lifecycle::Lifecycle},
    model::{
        Budget, ChatKind, ConversationId, Day, Identity, InboundEvent, KnownPeople, LiveSettings, Overflow, PersonId,
        Queues, SenderKind,
    },
    nodes::neighbours::Neighbours,
    ports::{
        AgreementStore, DayUse, OperatorStore, PeopleStore, QueueStore, SharedClock, StoreError, TurnFilter,
        TurnSummary,
    },
};

/// How many turns of the last minute the start reads, and how many at once.
const READ: usize = 5000;
const AT_ONCE: u32 = 500;

/// The number of events after which the people who have not written for a minute are forgotten.
const FORGET_EVERY: u32 = 4096;

const MINUTE_MS: i64 = 60_000;
const MINUTE_US: i64 = MINUTE_MS * 1000;

/// Counts the turns of people.
pub(crate) struct Limits {
    store: Arc<dyn QueueStore>,
    people: Arc<dyn PeopleStore>,
    settings: LiveSettings,
    clock: SharedClock,
    everywhere: Arc<SharedMinutes>,
    counts: Arc<Mutex<Counts>>,
}

/// The turns of a minute of people who may write at several nodes.
pub(crate) struct SharedMinutes {
    pub(crate) store: Arc<dyn AgreementStore>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) neighbours: Arc<Neighbours>,
    pub(crate) lifecycle: Lifecycle,
}

impl SharedMinutes {
    /// Whether other nodes may count turns of somebody who has sent an event here.
    fn are_of(&self, person: &Person, event: &InboundEvent, known: &KnownPeople) -> bool {
        let is_at_each_node = || {
            let channel = self.channels.get(&event.conversation.channel);
            channel.is_some_and(|channel| channel.runs_at_each_node())
        };
        self.neighbours.any() && (is_at_each_node() || person.identities(known).len() > 1)
    }

    /// A turn that was counted was not opened.
    fn uncount(&self, person: &Person, share: i64) -> impl Future<Output = ()> + Send + use<> {
        let (store, who) = (Arc::clone(&self.store), person.to_string());
        async move {
            if let Err(error) = store.uncount_minute(&who, micros(share)).await {
                debug!(%error, "a turn that was not opened counts for a minute");
            }
        }
    }
}

/// A person is over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverLimit {
    /// The number of the minute in which this was found, since the Unix epoch.
    pub(crate) minute: i64,
    /// When to try again.
    pub(crate) retry_after: Duration,
    /// The day whose limit it is; `None`: it is not that of a day.
    pub(crate) day: Option<i64>,
}

/// Whose turns are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Person {
    /// Somebody who is known, on all channels.
    Known(PersonId),
    /// Somebody else, on one channel.
    Unknown(Identity),
}

/// As the store knows them among those of a minute.
impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(person) => write!(f, "{person}"),
            Self::Unknown(identity) => write!(f, "{identity}"),
        }
    }
}

impl Person {
    fn of(event: &InboundEvent, known: &KnownPeople) -> Self {
        let person = known.person(&event.conversation.channel, event.person());
        person.map_or_else(|| Self::Unknown(event.identity()), Self::Known)
    }

    /// Everything by which channels know them.
    fn identities<'a>(&'a self, known: &'a KnownPeople) -> &'a [Identity] {
        match self {
            Self::Known(person) => known.identities(*person),
            Self::Unknown(identity) => std::slice::from_ref(identity),
        }
    }
}

#[derive(Default)]
struct Counts {
    people: HashMap<Person, Count>,
    /// How many were counted; wraps.
    events: u32,
}

/// What is remembered of a person. Times are in microseconds since the Unix epoch.
#[derive(Default)]
struct Count {
    seen_at: i64,
    /// Each turn moves this time ahead by its share of a minute. One that moves it more than a minute ahead is over the
    /// limit.
    used_until: i64,
    /// The latest album, and whether it was refused: its parts are let in together, or none of them.
    album: Option<(String, Option<OverLimit>)>,
    /// The number of the latest day, and the turns on it, if these are limited.
    day: Option<(i64, u32)>,
}

impl Count {
    /// Counts a turn. If it is one too many, it is not counted, and the result is for how long it would be.
    fn add(&mut self, now: i64, share: i64, is_let_in: bool) -> Option<Duration> {
        // No further ahead than turns move it: the clock may have been set back.
        let used_until = self.used_until.clamp(now, now + MINUTE_US) + share;
        let wait = used_until - now - MINUTE_US;
        if wait > 0 && !is_let_in {
            return Some(Duration::from_micros(wait.unsigned_abs()));
        }
        self.used_until = used_until;
        None
    }
}

/// A turn that was counted. Dropped before it is opened, it no longer counts.
pub(super) struct Counted {
    counts: Arc<Mutex<Counts>>,
    person: Person,
    /// What it counts, in microseconds.
    share: i64,
    /// Where it is counted for all nodes, too.
    everywhere: Option<Arc<SharedMinutes>>,
    /// The day on which it counts, if what its person uses of a day is limited.
    day: Option<i64>,
    /// Whether most of what agents may use for its person on that day is used.
    is_limited_soon: bool,
    /// Whether it is the later part of an album that was let in.
    is_later_part: bool,
    is_kept: bool,
}

impl Counted {
    /// The turn was opened.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }

    /// The turn is tried again, and counted anew: after this.
    pub(super) async fn give_back(mut self) {
        if let Some(everywhere) = self.everywhere.take() {
            everywhere.uncount(&self.person, self.share).await;
        }
    }

    /// The day on which it counts, if what its person uses of a day is limited.
    pub(super) const fn day(&self) -> Option<i64> {
        self.day
    }

    /// The day on which it counts, if most of what agents may use for its person is used.
    pub(super) fn limited_soon(&self) -> Option<i64> {
        self.day.filter(|_| self.is_limited_soon)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Some(everywhere) = &self.everywhere {
            everywhere.lifecycle.work.spawn(everywhere.uncount(&self.person, self.share));
        }
        if let Some(count) = lock(&self.counts).people.get_mut(&self.person) {
            count.used_until -= self.share;
            if let (Some((day, turns)), Some(of)) = (&mut count.day, self.day)
                && *day == of
            {
                *turns = turns.saturating_sub(1);
            }
        }
    }
}

/// The share of a minute that a turn takes, in microseconds.
fn share(turns_per_minute: u32) -> i64 {
    MINUTE_US / i64::from(turns_per_minute.max(1))
}

const fn micros(share: i64) -> Duration {
    Duration::from_micros(share.unsigned_abs())
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key that the parts of an album share, if `event` is one.
const fn album(event: &InboundEvent) -> Option<&String> {
    event.part_of.as_ref()
}

/// Whether limits hold for an event: not for what the gateway begins on its own, unless somebody else has it do so.
pub(super) fn is_limited(event: &InboundEvent) -> bool {
    event.sender.kind != SenderKind::Operator || event.is_news() || event.is_asked_for()
}

/// What happens to a message for which there is no room in the line of its conversation.
pub(super) enum Full {
    /// It is not taken.
    Refuses(OverLimit),
    /// The oldest ones are dropped, in this minute.
    Drops { minute: i64 },
}

impl Limits {
    pub(crate) fn new(
        store: Arc<dyn QueueStore>,
        people: Arc<dyn PeopleStore>,
        settings: LiveSettings,
        clock: SharedClock,
        everywhere: SharedMinutes,
    ) -> Self {
        Self { store, people, settings, clock, everywhere: Arc::new(everywhere), counts: Arc::default() }
    }

    /// Counts the turns of the last minute, which an earlier process opened. Those that somebody had the gateway begin are left out.
    pub(crate) async fn recall(&self, store: &dyn OperatorStore, known: &KnownPeople) -> Result<(), StoreError> {
        let settings = self.settings.get();
        if !settings.limits_minutes() {
            return Ok(());
        }
        let now = self.clock.now();
        let since = Timestamp::from_millis(now.as_millis() - MINUTE_MS);
        let mut filter = TurnFilter { since: Some(since), limit: AT_ONCE, ..TurnFilter::default() };
        let mut turns = Vec::new();
        while turns.len() < READ {
            let page = store.list_turns(&filter).await?;
            let Some(last) = page.last() else { break };
            filter.before = Some(last.turn_id);
            turns.extend(page);
        }
        let mut counts = lock(&self.counts);
        // After the clock was set back, there are some of later times.
        let counted = |turn: &TurnSummary| !turn.handler.is_gateway() && turn.accepted_at <= now;
        for turn in turns.into_iter().rev().filter(counted) {
            let Some(sender) = turn.sender.filter(|sender| sender.kind != SenderKind::Operator) else { continue };
            let event = InboundEvent::new(turn.conversation, ChatKind::Direct, String::new(), sender, turn.accepted_at);
            let Some(most) = settings.limits(&event, known).turns_per_minute else { continue };
            let count = counts.people.entry(Person::of(&event, known)).or_default();
            count.seen_at = turn.accepted_at.as_millis() * 1000;
            count.add(count.seen_at, share(most), true);
        }
        Ok(())
    }

    /// Counts the turn that `event` may open; an error if that is one too many for now. `None` without limits.
    pub(super) fn count(&self, event: &InboundEvent, known: &KnownPeople) -> Result<Option<Counted>, OverLimit> {
        let limits = self.settings.read().limits(event, known);
        let turns_per_minute = limits.turns_per_minute;
        if turns_per_minute.is_none() && limits.waiting_turns.is_none() && !limits.has_daily() {
            return Ok(None);
        }
        let share = turns_per_minute.map_or(0, share);
        let now = self.clock.now().as_millis() * 1000;
        let person = Person::of(event, known);
        let mut counts = lock(&self.counts);
        counts.events = counts.events.wrapping_add(1);
        if counts.events.is_multiple_of(FORGET_EVERY) {
            counts.people.retain(|_, count| now - count.seen_at < MINUTE_US);
        }
        let count = counts.people.entry(person.clone()).or_default();
        count.seen_at = now;
        let album = album(event);
        let same = count.album.as_ref().filter(|(known, _)| Some(known) == album);
        let is_later_part = same.is_some();
        if let Some(over) = same.and_then(|(_, over)| *over) {
            return Err(over);
        }
        let wait = count.add(now, share, is_later_part);
        let over = wait.map(|wait| self.over("turns_per_minute", wait));
        if let Some(album) = album {
            count.album = Some((album.clone(), over));
        }
        if let Some(over) = over {
            return Err(over);
        }
        let counts = Arc::clone(&self.counts);
        let (everywhere, day, is_limited_soon, is_kept) = (None, None, false, false);
        Ok(Some(Counted { counts, person, share, everywhere, day, is_limited_soon, is_later_part, is_kept }))
    }

    /// `Some` if the turns of a person at all nodes are too many for the one of `event`, which was counted here.
    pub(super) async fn check_minute(
        &self,
        event: &InboundEvent,
        counted: &mut Counted,
        known: &KnownPeople,
    ) -> Result<Option<OverLimit>, StoreError> {
        let Counted { person, share, is_later_part, .. } = &*counted;
        if *share == 0 || !self.everywhere.are_of(person, event, known) {
            return Ok(None);
        }
        let (who, share) = (person.to_string(), micros(*share));
        let Some(wait) = self.everywhere.store.count_minute(&who, share, *is_later_part).await? else {
            counted.everywhere = Some(Arc::clone(&self.everywhere));
            return Ok(None);
        };
        let over = self.over("turns_per_minute", wait);
        self.refuse_album(event, counted, over);
        Ok(Some(over))
    }

    /// The further parts of an album are refused with this one.
    fn refuse_album(&self, event: &InboundEvent, counted: &Counted, over: OverLimit) {
        if let Some(album) = album(event)
            && let Some(count) = lock(&self.counts).people.get_mut(&counted.person)
        {
            count.album = Some((album.clone(), Some(over)));
        }
    }

    /// `Some` if a person has used so much of the day that the turn of `event`, which was counted, must not be opened.
    pub(super) async fn check_day(
        &self,
        event: &InboundEvent,
        counted: &mut Counted,
        known: &KnownPeople,
    ) -> Result<Option<OverLimit>, StoreError> {
        let settings = self.settings.get();
        let limits = settings.limits(event, known);
        if !limits.has_daily() {
            return Ok(None);
        }
        let now = self.clock.now();
        let today = Day::of(now, &settings.time_zone);
        let is_of_today = |(day, _): &(i64, u32)| *day == today.number;
        let is_read = !self.everywhere.neighbours.any()
            && lock(&self.counts)
                .people
                .get(&counted.person)
                .and_then(|count| count.day)
                .is_some_and(|it| is_of_today(&it));
        let mut stored = DayUse::default();
        if !is_read || limits.has_use() {
            for identity in counted.person.identities(known) {
                stored = stored.and(self.people.day_use(identity, today.number).await?);
            }
        }
        let mut counts = lock(&self.counts);
        let count = counts.people.entry(counted.person.clone()).or_default();
        // Those that are being stored here are counted in memory alone, and those of other nodes in the store alone.
        let stored_turns = u32::try_from(stored.turns).unwrap_or(u32::MAX);
        let turns = count.day.filter(is_of_today).map_or(stored_turns, |(_, turns)| turns.max(stored_turns));
        let limit = if counted.is_later_part {
            None
        } else if limits.turns_per_day.is_some_and(|most| turns >= most) {
            Some("turns_per_day")
        } else if limits.tokens_per_day.is_some_and(|most| stored.tokens >= u64::from(most)) {
            Some("tokens_per_day")
        } else if limits.cost_per_day.is_some_and(|most| stored.micros >= most) {
            Some("cost_per_day")
        } else {
            None
        };
        if let Some(limit) = limit {
            count.day = Some((today.number, turns));
            let over = OverLimit { day: Some(today.number), ..self.over(limit, today.ends_at.since(now)) };
            if let Some(album) = album(event) {
                count.album = Some((album.clone(), Some(over)));
            }
            return Ok(Some(over));
        }
        count.day = Some((today.number, turns.saturating_add(1)));
        counted.day = Some(today.number);
        let budget = Budget { tokens: limits.tokens_per_day.map(u64::from), micros: limits.cost_per_day };
        counted.is_limited_soon = budget.percent(stored.tokens, stored.micros) >= Budget::MOST;
        Ok(None)
    }

    /// `Some` if so many turns of a person wait already that the one of `event`, which was counted, must not.
    pub(super) async fn check_waiting(
        &self,
        event: &InboundEvent,
        counted: &Counted,
        known: &KnownPeople,
    ) -> Result<Option<OverLimit>, StoreError> {
        let limits = self.settings.get().limits(event, known);
        let Some(most) = limits.waiting_turns.filter(|_| !counted.is_later_part) else {
            return Ok(None);
        };
        let mut waiting = 0;
        for Identity { channel, id } in counted.person.identities(known) {
            waiting += self.store.waiting_of(channel, id, most).await?;
        }
        if waiting < most {
            return Ok(None);
        }
        let over = self.over("waiting_turns", Duration::from_mins(1));
        self.refuse_album(event, counted, over);
        Ok(Some(over))
    }

    /// Whether a turn of a conversation waits.
    pub(super) async fn waits_in(&self, conversation: ConversationId) -> Result<bool, StoreError> {
        Ok(self.store.waiting_in(conversation, 1).await? > 0)
    }

    /// `Some` if so many turns of a conversation wait already that there is no room for `event`. Those that are postponed count
    /// for one that would be, too.
    pub(super) async fn check_line(
        &self,
        event: &InboundEvent,
        conversation: ConversationId,
        is_postponed: bool,
    ) -> Result<Option<Full>, StoreError> {
        let Queues { cap, overflow, .. } = self.settings.get().queues;
        // The parts of an album are let in together.
        if overflow == Overflow::Summarize || event.part_of.is_some() {
            return Ok(None);
        }
        // The oldest are dropped once a minute; meanwhile the line grows to twice its length at most.
        let drops = overflow == Overflow::Oldest;
        let most = if drops { cap.saturating_mul(2) } else { cap };
        let mut waiting = self.store.waiting_in(conversation, most).await?;
        if is_postponed {
            waiting += self.store.postponed_in(conversation, most.saturating_sub(waiting)).await?;
        }
        if waiting < cap {
            return Ok(None);
        }
        let over = self.over("waiting_in_conversation", Duration::from_mins(1));
        let is_dropped = drops && waiting < most;
        Ok(Some(if is_dropped { Full::Drops { minute: over.minute } } else { Full::Refuses(over) }))
    }

    fn over(&self, limit: &'static str, retry_after: Duration) -> OverLimit {
        metrics::counter!("rejoinder_limited_events_total", "limit" => limit).increment(1);
        OverLimit { minute: self.clock.now().as_millis().div_euclid(MINUTE_MS), retry_after, day: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: i64 = 60 * MINUTE_US;

    #[test]
    fn a_burst_is_followed_by_an_even_rate() {
        let mut count = Count::default();
        let mut at = |seconds: i64| count.add(HOUR_US + seconds * 1_000_000, MINUTE_US / 3, false);

        assert_eq!([at(0), at(0), at(0)], [None; 3]);
        assert_eq!(at(5), Some(Duration::from_secs(15)));
        assert_eq!([at(20), at(40)], [None; 2]);
        assert_eq!(at(59), Some(Duration::from_secs(1)));
        assert_eq!([at(120), at(120), at(120)], [None; 3], "no more than three are saved up");
        assert_eq!(at(120), Some(Duration::from_secs(20)));
    }

    #[test]
    fn a_clock_that_is_set_back_limits_nobody_for_longer() {
        let mut count = Count::default();
        assert_eq!(count.add(2 * HOUR_US, MINUTE_US, false), None);

        assert_eq!(count.add(HOUR_US, MINUTE_US, false), Some(Duration::from_mins(1)));
    }
}
