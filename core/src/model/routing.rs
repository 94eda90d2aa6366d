//! The rules of routing, as the operator configured them.

use std::{fmt, sync::Arc, time::Duration};

use jiff::{
    Zoned,
    civil::{Date, Time, Weekday},
    tz::TimeZone,
};
use rejoinder_guard::{Cause, Policy, Rung, Timestamp};

use crate::model::{
    agent::AgentName,
    conversation::{ChannelId, ChatKind, ConversationRef},
    event::{EventKind, InboundEvent},
    language::Language,
    people::{KnownPeople, PersonRole},
    queue::QueueMode,
};

/// One rule: what it sets for the events that meet all its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, which is stored with the turns that it holds for. Unique.
    pub name: Arc<str>,
    /// All of them must hold. Empty: it holds for every event.
    pub conditions: Vec<Condition>,
    /// The agent, if not that of the channel.
    pub agent: Option<AgentName>,
    /// The language of people who have not chosen one.
    pub language: Option<Language>,
    /// What happens to messages that come while a turn runs, if nobody has chosen it for the conversation.
    pub queue: Option<QueueMode>,
    /// What it changes in the policy of the channel.
    pub policy: PolicyChange,
}

/// What differs from the policy of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// The soft deadline; `Some(None)`: the gateway sends no deferrals on its own.
    pub soft_deadline: Option<Option<Duration>>,
    pub hard_deadline: Option<Duration>,
    pub ladder: Vec<(Cause, Vec<Rung>)>,
}

impl PolicyChange {
    pub(crate) fn apply(&self, policy: &Policy) -> Policy {
        let ladder =
            self.ladder.iter().fold(policy.ladder.clone(), |ladder, (cause, rungs)| ladder.with(*cause, rungs.clone()));
        Policy {
            soft_deadline: self.soft_deadline.unwrap_or(policy.soft_deadline),
            hard_deadline: self.hard_deadline.unwrap_or(policy.hard_deadline),
            ladder,
            ..policy.clone()
        }
    }
}

/// A condition of a rule. It holds if one of its values is that of the event.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Channels (`telegram.main`) and platforms (`telegram`).
    Channel(Vec<String>),
    /// Conversations; one without a thread stands for all its threads.
    Conversation(Vec<ConversationRef>),
    /// The names of people who are known, and identities (`telegram.main/42`).
    Person(Vec<String>),
    /// The roles of people who are known.
    Role(Vec<PersonRole>),
    Chat(Vec<ChatKind>),
    /// The words with which a message begins, in capital or small letters.
    Command(Vec<String>),
    /// Times of day, when the event was received.
    Between(Vec<Hours>, TimeZone),
    /// Days of the week, when the event was received.
    Days(Vec<Weekday>, TimeZone),
}

/// From one time of day until another, perhaps of the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    pub from: Time,
    pub until: Time,
}

impl Hours {
    /// Whether a time of day is within them.
    pub fn contains(&self, time: Time) -> bool {
        let Self { from, until } = *self;
        if from <= until { from <= time && time < until } else { from <= time || time < until }
    }

    pub(crate) fn end(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let now = zoned(at, zone);
        if !self.contains(now.time()) {
            return None;
        }
        let on = |date: Date| {
            // A time that the clock repeats comes twice.
            let times = zone.to_ambiguous_zoned(date.to_datetime(self.until));
            [times.clone().compatible(), times.later()].into_iter().filter_map(|time| Some(time.ok()?.timestamp()))
        };
        let days = [now.date(), now.date().tomorrow().ok()?];
        let end = days.into_iter().flat_map(on).find(|end| *end > now.timestamp())?;
        Some(Timestamp::from_millis(end.as_millisecond()))
    }
}

/// Writes `22:00-07:00`.
impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", time_of_day(self.from), time_of_day(self.until))
    }
}

/// A time of day as `22:00`.
fn time_of_day(time: Time) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

/// The name of a day of the week in the configuration: `mon`.
pub const fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "mon",
        Weekday::Tuesday => "tue",
        Weekday::Wednesday => "wed",
        Weekday::Thursday => "thu",
        Weekday::Friday => "fri",
        Weekday::Saturday => "sat",
        Weekday::Sunday => "sun",
    }
}

impl Rule {
    /// The first condition that does not hold for an event; `None`: the rule holds.
    pub(crate) fn unmet(&self, event: &InboundEvent, known: &KnownPeople) -> Option<&Condition> {
        self.conditions.iter().find(|condition| !condition.holds(event, known))
    }
}

impl Rule {
    /// Whether a condition names the first word of a text.
    pub(crate) fn names_command(&self, text: &str) -> bool {
        text.split_whitespace().next().is_some_and(|first| {
            self.conditions.iter().any(|it| matches!(it, Condition::Command(words) if has_word(words, first)))
        })
    }

    pub(crate) fn people(&self) -> impl Iterator<Item = &str> {
        let people = self.conditions.iter().filter_map(|condition| match condition {
            Condition::Person(people) => Some(people),
            _ => None,
        });
        people.flatten().map(AsRef::as_ref)
    }
}

impl Condition {
    pub(crate) fn holds(&self, event: &InboundEvent, known: &KnownPeople) -> bool {
        let address = &event.conversation;
        match self {
            Self::Channel(names) => names.iter().any(|name| is_of(&address.channel, name)),
            Self::Conversation(addresses) => addresses.iter().any(|other| {
                other.channel == address.channel
                    && other.chat == address.chat
                    && (other.thread.is_none() || other.thread == address.thread)
            }),
            Self::Person(people) => {
                let identity = event.identity().to_string();
                let name = event.known_as(known).map(|(_, name)| name);
                people.iter().any(|person| *person == identity || Some(person.as_str()) == name)
            }
            Self::Role(roles) => event.known_as(known).is_some_and(|(role, _)| roles.contains(&role)),
            Self::Chat(kinds) => kinds.contains(&event.chat),
            Self::Command(words) => first_word(event).is_some_and(|first| has_word(words, first)),
            Self::Between(hours, zone) => {
                let time = zoned(event.received_at, zone).time();
                hours.iter().any(|hours| hours.contains(time))
            }
            Self::Days(days, zone) => days.contains(&zoned(event.received_at, zone).weekday()),
        }
    }

    /// What is so for an event, for which the condition does not hold: the rest of a sentence that begins with "it".
    pub(crate) fn found(&self, event: &InboundEvent, known: &KnownPeople) -> String {
        let of_person = || event.known_as(known);
        match self {
            Self::Channel(_) => format!("is on {}", event.conversation.channel),
            Self::Conversation(_) => format!("is in {}", event.conversation),
            Self::Person(_) => match of_person() {
                Some((_, name)) => format!("is from {name} ({})", event.identity()),
                None => format!("is from {}, who is not known", event.identity()),
            },
            Self::Role(_) => match of_person() {
                Some((role, _)) => format!("is from a person with the role {}", role.as_str()),
                None => "is from somebody who is not known, and has no role".to_owned(),
            },
            Self::Chat(_) => format!("is in a {} chat", event.chat.as_str()),
            Self::Command(_) => match first_word(event) {
                Some(word) => format!("begins with {word:?}"),
                None => "has no words of the sender's".to_owned(),
            },
            Self::Between(_, zone) => format!("came at {}", time_of_day(zoned(event.received_at, zone).time())),
            Self::Days(_, zone) => format!("came on a {}", day_name(zoned(event.received_at, zone).weekday())),
        }
    }
}

/// Whether a channel has this name, or is on the platform with this name.
fn is_of(channel: &ChannelId, name: &str) -> bool {
    channel.as_str() == name || channel.platform() == name
}

/// The first word that the sender wrote. A forwarded text is no command.
fn first_word(event: &InboundEvent) -> Option<&str> {
    let is_theirs = event.kind == EventKind::Message && event.forwarded.is_none();
    event.text.split_whitespace().next().filter(|_| is_theirs)
}

/// Whether a word is among these. Keyboards write a capital letter.
fn has_word(words: &[String], word: &str) -> bool {
    words.iter().any(|known| known.to_lowercase() == word.to_lowercase())
}

/// A time in a time zone. One that jiff cannot express is taken as the epoch: no clock shows it.
fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned(zone.clone())
}

/// Writes it as the configuration does: `chat = "direct"`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: Vec<String>| match &*values {
            [one] => format!("{one:?}"),
            several => format!("{several:?}"),
        };
        let (key, values) = match self {
            Self::Channel(names) => ("channel", names.clone()),
            Self::Conversation(addresses) => ("conversation", addresses.iter().map(ToString::to_string).collect()),
            Self::Person(people) => ("person", people.clone()),
            Self::Role(roles) => ("role", roles.iter().map(|role| role.as_str().to_owned()).collect()),
            Self::Chat(kinds) => ("chat", kinds.iter().map(|kind| kind.as_str().to_owned()).collect()),
            Self::Command(words) => ("command", words.clone()),
            Self::Between(hours, _) => ("between", hours.iter().map(ToString::to_string).collect()),
            Self::Days(days, _) => ("days", days.iter().map(|day| day_name(*day).to_owned()).collect()),
        };
        write!(f, "{key} = {}", list(values))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::time;

    use super::*;

    #[test]
    fn hours_may_pass_midnight() {
        let at = |hour, minute| time(hour, minute, 0, 0);
        let night = Hours { from: at(22, 0), until: at(7, 0) };
        let noon = Hours { from: at(12, 0), until: at(13, 30) };

        let in_night = [at(21, 59), at(22, 0), at(3, 0), at(7, 0)].map(|time| night.contains(time));
        assert_eq!(in_night, [false, true, true, false]);
        assert_eq!([at(11, 59), at(12, 0), at(13, 30)].map(|time| noon.contains(time)), [false, true, false]);
        assert_eq!(night.to_string(), "22:00-07:00");
    }

    #[test]
    fn a_condition_is_written_as_in_the_configuration() {
        let [one, two] = ["telegram.main", "discord"].map(str::to_owned);

        assert_eq!(Condition::Channel(vec![one.clone()]).to_string(), "channel = \"telegram.main\"");
        assert_eq!(Condition::Channel(vec![one, two]).to_string(), "channel = [\"telegram.main\", \"discord\"]");
    }
}
