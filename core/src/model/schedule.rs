//! Schedules: turns and messages that the gateway begins at given times.

use std::{sync::Arc, time::Duration};

use jiff::{Zoned, civil::DateTime, tz::TimeZone};
use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::AgentName,
    conversation::{ChannelId, ChatKind, ConversationRef},
    cron::CronClock,
    event::{Directed, InboundEvent, Sender},
    ids::{ScheduleId, TurnId},
    target::{NotReached, Target},
    words::Words,
};

const SYSTEM_ZONE: &str = "system";

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The longest text, in characters.
const MAX_TEXT: usize = 20_000;

/// The shortest and the longest pause between two times.
const SHORTEST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// How long after its time something still counts as on time.
pub(crate) const ON_TIME: Duration = Duration::from_mins(1);

/// How many times are looked at to find the shortest distance between two.
const LOOKED_AT: usize = 100;

/// How many times that were missed are made up for at most.
const MOST_MISSED: usize = 100;

/// When something is begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    At(Timestamp),
    /// Again and again, in the same distance, from the making of the schedule on.
    Every(Duration),
    /// At the times of a cron pattern of five fields, in the time zone of the schedule.
    Cron(String),
}

/// What is begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduledAction {
    Message(String),
    /// A turn: a prompt to an agent.
    Prompt {
        /// What the agent is told to do.
        text: String,
        /// The agent, if not that of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// Whether the agent owes no answer: it speaks only if it has something to say.
        #[serde(default)]
        quiet: bool,
        #[serde(default, skip_serializing_if = "Words::are_ordinary")]
        words: Words,
    },
    /// A message with the open turns and buttons. Owners are told of everything, others of their own turns.
    Digest,
}

impl ScheduledAction {
    /// The message, or the prompt; `None` if the gateway writes the text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Message(text) | Self::Prompt { text, .. } => Some(text),
            Self::Digest => None,
        }
    }
}

/// What happens to times that passed while the gateway was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One run makes up for all of them.
    #[default]
    Once,
    /// None is made up for.
    Skip,
    /// Each is made up for, but no more than the last hundred.
    All,
}

/// Who made a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleOrigin {
    Operator,
    /// The configuration: it goes when it is removed there.
    Configuration,
    Agent,
}

named! {
    /// Whether a schedule begins anything.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ScheduleState {
        /// It does, at its times.
        Active = "active",
        /// It does not until it is resumed.
        Paused = "paused",
        /// Its last time has passed.
        Done = "done",
    }
}

/// A new schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSchedule {
    /// Its name, by which it is known. Unique.
    pub name: String,
    /// When something is begun.
    pub when: When,
    /// The time zone of a cron pattern: its IANA name, or `system`.
    pub time_zone: Arc<str>,
    pub to: Target,
    pub action: ScheduledAction,
    /// What happens to times that passed while the gateway was down.
    pub missed: Missed,
}

/// What the configuration says of schedules.
#[derive(Clone, Debug, Default)]
pub struct ScheduleSettings {
    pub seeds: Vec<NewSchedule>,
    /// How many runs of a schedule may fail in a row before it is paused.
    pub max_failures: u32,
}

/// What an agent may schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleLimits {
    /// How many schedules of agents a conversation may have.
    pub most: u32,
    /// The shortest distance between two times of one.
    pub shortest: Duration,
}

/// What an agent wants of the schedules that agents have made in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleCall {
    Add {
        /// Its name; changed if there is one with it already.
        name: String,
        /// When something is begun.
        when: When,
        /// The time zone of a cron pattern.
        time_zone: Arc<str>,
        action: ScheduledAction,
    },
    List,
    Remove {
        name: String,
    },
}

/// The person who asked an agent to schedule something: it counts as their message, while they may talk to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// Their key within the channel: see [`InboundEvent::person`](crate::InboundEvent::person).
    pub person: String,
    /// As the platform knew them.
    pub sender: Sender,
    pub chat: ChatKind,
}

impl Asker {
    pub(crate) fn of(event: &InboundEvent) -> Self {
        Self { person: event.person().to_owned(), sender: event.sender.clone(), chat: event.chat }
    }

    /// A message from this person to an agent in a conversation.
    pub(crate) fn asks_in(&self, address: &ConversationRef) -> InboundEvent {
        let at = Timestamp::from_millis(0);
        let event = InboundEvent::new(address.clone(), self.chat, String::new(), self.sender.clone(), at);
        InboundEvent { directed: Directed::Mention, ..event }
    }
}

/// A schedule, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: ScheduleId,
    pub new: NewSchedule,
    pub origin: ScheduleOrigin,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<Asker>,
    pub created_at: Timestamp,
    /// Whether it begins anything.
    pub state: ScheduleState,
    /// Why it is paused: what failed, or the operator's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its next time; `None` if there is none.
    pub next_at: Option<Timestamp>,
    /// How many of its latest runs failed, one after the other, as far as that was known at the last one.
    pub failures: u32,
    /// When it was last resumed: failures of earlier runs do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<Timestamp>,
}

/// What became of one time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRun {
    pub schedule: ScheduleId,
    pub due: Timestamp,
    pub at: Timestamp,
    pub turns: Vec<TurnId>,
    /// Why none was begun.
    pub problem: Option<String>,
    pub not_reached: Vec<NotReached>,
}

/// A change of what is stored of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Makes one, or changes the one with the same id.
    Set(Box<Schedule>),
    /// One of its times was acted on. Of each schedule the last hundred are kept.
    Ran(ScheduleRun),
    /// Removes one, with its runs.
    Removed(ScheduleId),
}

/// Why a schedule cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASchedule {
    /// The name is empty or long.
    #[error("`name` must have 1 to {MAX_NAME} printable characters")]
    Name,
    /// The gateway has the name itself.
    #[error("the gateway's own alerts have the name `{0}`: choose another one")]
    OwnName(String),
    /// The text is empty or long.
    #[error("the text must have 1 to {MAX_TEXT} characters")]
    Text,
    #[error("a digest is for a person or a role, not for a conversation: it shows a person's own turns")]
    Digest,
    #[error("`at` must be in the future")]
    Passed,
    /// It would act too often, or hardly ever.
    #[error("`every` must be from a minute to 366 days")]
    Distance,
    /// The pattern is none.
    #[error("`cron` must be a pattern of five fields such as \"0 8 * * MON-FRI\": {0}")]
    Cron(String),
    /// The pattern has no time to come.
    #[error("`cron` has no time that is still to come")]
    Never,
    #[error("there is no time zone `{0}`: use one such as Europe/Vienna, or system")]
    Zone(Arc<str>),
}

impl NewSchedule {
    /// Checks it, and returns its first time after `now`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn check(&self, now: Timestamp) -> Result<Timestamp, NotASchedule> {
        let is_fit = |text: &str, most: usize| !text.trim().is_empty() && text.chars().count() <= most;
        if !is_fit(&self.name, MAX_NAME) || self.name.chars().any(char::is_control) {
            return Err(NotASchedule::Name);
        }
        if self.name == Sender::ALERTER {
            return Err(NotASchedule::OwnName(self.name.clone()));
        }
        if self.action.text().is_some_and(|text| !is_fit(text, MAX_TEXT)) {
            return Err(NotASchedule::Text);
        }
        if self.action == ScheduledAction::Digest && self.to.channel().is_some() {
            return Err(NotASchedule::Digest);
        }
        match self.when {
            When::At(at) if at <= now => return Err(NotASchedule::Passed),
            When::Every(every) if !(SHORTEST..=LONGEST).contains(&every) => return Err(NotASchedule::Distance),
            _ => {}
        }
        self.next_after(now, now)?.ok_or(NotASchedule::Never)
    }

    /// The shortest distance between its next times; `None` if it has only one.
    pub(crate) fn shortest_distance(&self, now: Timestamp) -> Option<Duration> {
        let mut times = Vec::new();
        while times.len() < LOOKED_AT
            && let Ok(Some(next)) = self.next_after(times.last().copied().unwrap_or(now), now)
        {
            times.push(next);
        }
        times.windows(2).map(|pair| pair[1].since(pair[0])).min()
    }

    /// Its first time after `at`, if it was made at `made_at`.
    fn next_after(&self, at: Timestamp, made_at: Timestamp) -> Result<Option<Timestamp>, NotASchedule> {
        match &self.when {
            When::At(once) => Ok(Some(*once).filter(|once| *once > at)),
            When::Every(every) => {
                let passed = at.since(made_at).as_millis() / every.as_millis().max(1);
                let rounds = u32::try_from(passed).unwrap_or(u32::MAX).saturating_add(1);
                Ok(Some(made_at + every.saturating_mul(rounds)))
            }
            When::Cron(pattern) => {
                // A pattern without a time within the years that are searched.
                Ok(self.cron(pattern)?.next(at))
            }
        }
    }

    fn cron(&self, pattern: &str) -> Result<CronClock, NotASchedule> {
        let zone = zone(&self.time_zone).ok_or_else(|| NotASchedule::Zone(Arc::clone(&self.time_zone)))?;
        CronClock::new(pattern, zone).map_err(NotASchedule::Cron)
    }
}

impl Schedule {
    pub(crate) fn new(
        new: NewSchedule,
        origin: ScheduleOrigin,
        by: String,
        next_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        Self {
            id: ScheduleId::new(now),
            new,
            origin,
            by,
            turn: None,
            asked_by: None,
            created_at: now,
            state: if next_at.is_some() { ScheduleState::Active } else { ScheduleState::Done },
            why: None,
            next_at,
            failures: 0,
            counted_from: None,
        }
    }

    /// Whether its only time has passed, and nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        let has_no_time = self.state != ScheduleState::Active && self.next_at.is_none();
        self.state == ScheduleState::Done || (has_no_time && matches!(self.new.when, When::At(_)))
    }

    pub(crate) fn was_over_before(&self, before: Timestamp) -> bool {
        self.is_over() && matches!(self.new.when, When::At(at) if at < before)
    }

    /// Whether it is paused because it failed, or because its next time cannot be computed, and not by an operator: who pauses it
    /// knows of its failures, and they are counted anew.
    pub fn has_paused_itself(&self) -> bool {
        self.state == ScheduleState::Paused && (self.failures > 0 || self.next_at.is_none())
    }

    /// Its first time after `at`.
    ///
    /// # Errors
    /// When that cannot be computed any more: its time zone is gone.
    pub(crate) fn next_after(&self, at: Timestamp) -> Result<Option<Timestamp>, NotASchedule> {
        self.new.next_after(at, self.created_at)
    }

    /// What records call it: an agent's by its id, because the name is somebody's words.
    pub(crate) fn recorded_name(&self) -> String {
        if self.origin == ScheduleOrigin::Agent { self.id.to_string() } else { self.new.name.clone() }
    }

    /// Whether a caller with these channels may see it. People may be reached on any.
    pub(crate) fn is_seen_by(&self, channels: Option<&[ChannelId]>) -> bool {
        channels.is_none_or(|channels| self.new.to.channel().is_some_and(|channel| channels.contains(channel)))
    }

    /// The schedule after the clock was ahead for a time: its next time is no later than it would be now.
    pub(crate) fn not_ahead_of(self, now: Timestamp) -> Self {
        let schedule = Self { created_at: self.created_at.min(now), ..self };
        let is_repeated = !matches!(schedule.new.when, When::At(_));
        match schedule.next_after(now) {
            Ok(Some(next)) if is_repeated => Self { next_at: schedule.next_at.map(|at| at.min(next)), ..schedule },
            _ => schedule,
        }
    }

    /// Its times up to `now` that are to be acted on, and how many are passed over.
    pub(crate) fn due(&self, now: Timestamp) -> (Vec<Timestamp>, usize) {
        let (mut due, mut passed) = self.passed(now);
        let is_on_time = |at: &Timestamp| now.since(*at) <= ON_TIME;
        // Two digests at once would tell the same.
        let is_digest = self.new.action == ScheduledAction::Digest;
        let kept = match self.new.missed {
            Missed::All if !is_digest => 0,
            Missed::Once | Missed::All => due.len().saturating_sub(1),
            Missed::Skip => due.iter().filter(|at| !is_on_time(at)).count(),
        };
        passed += kept;
        due.drain(..kept);
        (due, passed)
    }

    /// Its times from the next one to `now`, the last hundred of them, and how many come before these (of a cron pattern: whether
    /// any does).
    fn passed(&self, now: Timestamp) -> (Vec<Timestamp>, usize) {
        let Some(first) = self.next_at.filter(|first| *first <= now) else { return (Vec::new(), 0) };
        let mut due: Vec<Timestamp> = match &self.new.when {
            When::At(_) => vec![first],
            When::Every(every) => {
                let distance = every.as_millis().max(1);
                let count = usize::try_from(now.since(first).as_millis() / distance).unwrap_or(usize::MAX);
                let from = count.saturating_sub(MOST_MISSED - 1);
                let at = |round: usize| first + every.saturating_mul(u32::try_from(round).unwrap_or(u32::MAX));
                return ((from..=count).map(at).collect(), from);
            }
            When::Cron(pattern) => {
                let Ok(clock) = self.new.cron(pattern) else {
                    // It is acted on once, and then paused.
                    return (vec![first], 0);
                };
                let before = |at: &Timestamp| clock.last(Timestamp::from_millis(at.as_millis() - 1));
                let times = std::iter::successors(clock.last(now), before);
                times.take_while(|at| *at >= first).take(MOST_MISSED + 1).collect()
            }
        };
        due.reverse();
        let more = due.len().saturating_sub(MOST_MISSED);
        due.drain(..more);
        (due, more)
    }
}

/// The time zone with a name.
pub fn zone(name: &str) -> Option<TimeZone> {
    match name {
        SYSTEM_ZONE => Some(TimeZone::system()),
        name => TimeZone::get(name).ok(),
    }
}

/// A point in time (`2030-01-31T09:00:00Z`, or with the name of a zone, `2030-01-31T09:00[Europe/Vienna]`), or a time of day on a
/// date in `time_zone` (`2030-01-31T09:00`).
pub fn read_time(text: &str, time_zone: &str) -> Option<Timestamp> {
    let text = text.trim();
    let point = || text.parse::<jiff::Timestamp>().ok();
    let named = || text.parse::<Zoned>().ok().map(|at| at.timestamp());
    let local = || {
        // A date is no time of day; neither is a zone that was not read to be passed over.
        let is_time = text.contains(['T', 't', ' ']) && !text.contains('[');
        let time: DateTime = text.parse().ok().filter(|_| is_time)?;
        Some(time.to_zoned(zone(time_zone)?).ok()?.timestamp())
    };
    let at = point().or_else(named).or_else(local)?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn schedule(when: When, missed: Missed) -> Schedule {
        let new = NewSchedule {
            name: "a test".to_owned(),
            when,
            time_zone: "Europe/Vienna".into(),
            to: "telegram.main/42".parse().unwrap(),
            action: ScheduledAction::Message("hello".to_owned()),
            missed,
        };
        let next_at = new.next_after(START, START).ok().flatten();
        Schedule {
            id: ScheduleId::new(START),
            new,
            origin: ScheduleOrigin::Operator,
            by: "grace".to_owned(),
            turn: None,
            asked_by: None,
            created_at: START,
            state: ScheduleState::Active,
            why: None,
            next_at,
            failures: 0,
            counted_from: None,
        }
    }

    #[test]
    fn who_has_paused_it_is_known_of_a_schedule() {
        let hourly = || schedule(When::Every(Duration::from_hours(1)), Missed::Once);
        let paused = |failures, next_at| Schedule { state: ScheduleState::Paused, failures, next_at, ..hourly() };

        assert!(paused(5, hourly().next_at).has_paused_itself());
        assert!(paused(0, None).has_paused_itself(), "its time zone is gone");
        assert!(!paused(0, hourly().next_at).has_paused_itself());
        assert!(!Schedule { failures: 3, ..hourly() }.has_paused_itself());
        assert!(!Schedule { state: ScheduleState::Done, next_at: None, ..hourly() }.has_paused_itself());
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn times(when: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = schedule(When::Cron(when.to_owned()), Missed::Once);
        let next = |before: &Timestamp| schedule.next_after(*before).unwrap();
        std::iter::successors(Some(at(from)), next)
            .skip(1)
            .take(count)
            .map(|at| jiff::Timestamp::from_millisecond(at.as_millis()).unwrap().to_string())
            .collect()
    }

    /// In Vienna clocks went forward on 2026-03-29 from 2:00 to 3:00.
    #[test]
    fn a_time_that_the_clock_skips_comes_once() {
        assert_eq!(
            times("0 8 * * *", "2026-03-28T00:00:00Z", 3),
            ["2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z", "2026-03-30T06:00:00Z"]
        );
        let skipped = times("30 2 * * *", "2026-03-28T00:00:00Z", 3);
        assert_eq!(skipped.len(), 3);
        assert_eq!(skipped[0], "2026-03-28T01:30:00Z");
        assert!(skipped[1].starts_with("2026-03-29T01:"), "{skipped:?}");
        assert_eq!(skipped[2], "2026-03-30T00:30:00Z");
    }

    /// They go back on 2026-10-25 from 3:00 to 2:00.
    #[test]
    fn a_time_that_the_clock_repeats_comes_once() {
        assert_eq!(times("30 2 * * *", "2026-10-24T12:00:00Z", 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        assert_eq!(
            times("0 8 * * *", "2026-10-24T00:00:00Z", 3),
            ["2026-10-24T06:00:00Z", "2026-10-25T07:00:00Z", "2026-10-26T07:00:00Z"]
        );
    }

    /// As a pattern of one time a day does, one of several does.
    #[test]
    fn each_of_several_times_comes_once_whatever_the_clocks_do() {
        let twice_a_day = |from| times("0 2,14 * * *", from, 4);
        assert_eq!(
            twice_a_day("2026-03-28T12:00:00Z"),
            ["2026-03-28T13:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T12:00:00Z", "2026-03-30T00:00:00Z"]
        );
        assert_eq!(
            twice_a_day("2026-10-24T11:00:00Z"),
            ["2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z", "2026-10-25T13:00:00Z", "2026-10-26T01:00:00Z"]
        );
        assert_eq!(
            times("*/20 2 * * *", "2026-03-29T00:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
            "all of them are in the gap"
        );
        assert_eq!(
            times("*/20 2 * * *", "2026-10-25T00:00:00Z", 3),
            ["2026-10-25T00:20:00Z", "2026-10-25T00:40:00Z", "2026-10-26T01:00:00Z"]
        );
    }

    #[test]
    fn every_hour_that_passes_counts() {
        let hours = |from| times("30 * * * *", from, 3);
        assert_eq!(
            hours("2026-03-29T00:00:00Z"),
            ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"]
        );
        assert_eq!(
            hours("2026-10-25T00:00:00Z"),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"]
        );
    }

    /// Looking back finds what looking ahead found.
    #[test]
    fn missed_times_are_those_that_would_have_come() {
        for pattern in ["0 2,14 * * *", "*/20 2 * * *", "30 2 * * *", "15,45 * * * *", "0 * * * *", "0 0-4 * * SUN"] {
            for from in ["2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z"] {
                let made_at = at(from);
                let new = NewSchedule {
                    when: When::Cron(pattern.to_owned()),
                    missed: Missed::All,
                    ..schedule(When::At(START), Missed::All).new
                };
                let next_at = new.next_after(made_at, made_at).unwrap();
                let schedule = Schedule {
                    created_at: made_at,
                    ..Schedule::new(new, ScheduleOrigin::Operator, "grace".to_owned(), next_at, made_at)
                };
                for hours in 1..49 {
                    for millis in [0, 1, 500] {
                        let now = made_at + Duration::from_hours(hours) + Duration::from_millis(millis);
                        let ahead = std::iter::successors(next_at, |at| schedule.next_after(*at).unwrap());
                        let ahead: Vec<_> = ahead.take_while(|at| *at <= now).collect();
                        assert_eq!(schedule.due(now).0, ahead, "{pattern} from {from}, {hours} hours, {millis} ms");
                    }
                }
            }
        }
    }

    #[test]
    fn a_time_is_read_in_its_zone() {
        let read = |text| read_time(text, "Europe/Vienna").map(|time| time.since(at("2026-01-01T00:00:00Z")).as_secs());
        assert_eq!(read("2026-01-01T09:00:00Z"), Some(9 * 3600));
        assert_eq!(read(" 2026-01-01T09:00:00+05:00 "), Some(4 * 3600));
        assert_eq!(read("2026-01-01T09:00"), Some(8 * 3600));
        assert_eq!(read("2026-01-01 09:00:00"), Some(8 * 3600));
        assert_eq!(read("2026-01-01T09:00[America/New_York]"), Some(14 * 3600));
        for text in ["2026-01-01", "2026-01-01T09:00[Mars/Olympus]", "tomorrow", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_missed_is_made_up_for_as_the_schedule_says() {
        let hour = Duration::from_hours(1);
        let now = START + hour * 4 + Duration::from_secs(30);
        let due = |missed| {
            let (due, passed) = schedule(When::Every(hour), missed).due(now);
            (due.into_iter().map(|at| at.since(START).as_secs() / 3600).collect::<Vec<_>>(), passed)
        };
        assert_eq!(due(Missed::Once), (vec![4], 3));
        assert_eq!(due(Missed::Skip), (vec![4], 3), "the last one is on time");
        assert_eq!(due(Missed::All), (vec![1, 2, 3, 4], 0));

        let later = |missed| schedule(When::Every(hour), missed).due(now + Duration::from_mins(5)).0.len();
        assert_eq!((later(Missed::Once), later(Missed::Skip)), (1, 0));
        let (due, passed) = schedule(When::Every(Duration::from_mins(1)), Missed::All).due(now);
        assert_eq!((due.len(), passed), (100, 140));
    }

    #[test]
    fn what_is_no_schedule_says_why() {
        let wrong = |when| schedule(when, Missed::Once).new.check(START).unwrap_err().to_string();
        assert!(wrong(When::At(START)).contains("future"));
        assert!(wrong(When::Every(Duration::from_secs(5))).contains("minute"));
        assert!(wrong(When::Every(Duration::from_hours(1_000_000))).contains("366 days"));
        assert!(wrong(When::Cron("0 0 8 * * *".to_owned())).contains("five fields"));
        assert!(wrong(When::Cron("61 * * * *".to_owned())).contains("five fields"));
        let nowhere = NewSchedule {
            time_zone: "Mars/Olympus".into(),
            ..schedule(When::Cron("0 8 * * *".to_owned()), Missed::Once).new
        };
        assert!(nowhere.check(START).unwrap_err().to_string().contains("Mars/Olympus"));
        let at = When::At(START + Duration::from_hours(1));
        let own = NewSchedule { name: "alerts".to_owned(), ..schedule(at, Missed::Once).new };
        assert!(own.check(START).unwrap_err().to_string().contains("choose another one"));
        assert_eq!(
            schedule(When::At(START + Duration::from_hours(1)), Missed::Once).new.check(START),
            Ok(START + Duration::from_hours(1))
        );
    }
}
