//! `[alerts]`: who is told when something is wrong, and when.

use std::{fmt, path::PathBuf, time::Duration};

use jiff::{civil::Time, tz::TimeZone};
use rejoinder_core::{ConversationRef, Hours};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use url::Url;

use crate::{
    Secret,
    check::{Checks, Section},
    duration::{self, HOUR},
    redacted, text,
};

/// Who is told, and when.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alerts {
    /// All of these are told.
    pub to: Vec<AlertTarget>,
    /// These are told if none of the others can be reached.
    pub otherwise: Vec<AlertTarget>,
    /// Signs requests to URLs, as Standard Webhooks.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// What is told at once. The rest is in the digest.
    pub at_once: Vec<AlertKind>,
    /// What is told even in quiet hours.
    pub always: Vec<AlertKind>,
    /// How long something must last before it is told, and be over before the all-clear.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 1, { HOUR }>")]
    pub after: Duration,
    /// How often one thing is told at most.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 1, { 24 * HOUR }>")]
    pub window: Duration,
    /// When only `always` is told.
    pub quiet_hours: OrOff<Hours>,
    /// When the digest is sent, each day.
    pub digest: OrOff<TimeOfDay>,
    pub time_zone: Zone,
}

impl Section for Alerts {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, targets) in [("to", &self.to), ("otherwise", &self.otherwise)] {
            for target in targets {
                if let AlertTarget::Conversation(conversation) = target {
                    checks.refers_to_channel(&checks.key(&[name]), [&conversation.channel]);
                }
            }
        }
        if self.to.is_empty() && !self.otherwise.is_empty() {
            checks.wrong(checks.key(&["otherwise"]), "is for when those in `to` cannot be reached, and there are none");
        }
        let is_key =
            |secret: &Secret| (24..=64).contains(&secret.expose().len()) || secret.expose().starts_with("whsec_");
        if !self.secret.as_ref().is_none_or(is_key) {
            let what = "must be a key of Standard Webhooks: whsec_ and the key in base64, or 24 to 64 characters";
            checks.wrong(checks.key(&["secret"]), what);
        }
    }
}

/// Somebody to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertTarget {
    /// A conversation: `telegram.main/42`.
    Conversation(ConversationRef),
    /// A URL, which gets a POST.
    Url(Url),
    /// A program, which gets the alert on its standard input.
    Program(PathBuf),
}

impl AlertTarget {
    fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return Some(Self::Program(text.into()));
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            let url = Url::parse(text).ok()?;
            return (url.username().is_empty() && url.password().is_none()).then_some(Self::Url(url));
        }
        ConversationRef::parse(text).map(Self::Conversation)
    }
}

impl fmt::Display for AlertTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(conversation) => conversation.fmt(f),
            // What follows the host may be secret.
            Self::Url(url) => write!(f, "{}", url.origin().ascii_serialization()),
            Self::Program(path) => path.display().fmt(f),
        }
    }
}

impl Serialize for AlertTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Url(url) => serializer.serialize_str(&redacted::written(&self.to_string(), url.as_str())),
            Self::Conversation(_) | Self::Program(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for AlertTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a conversation (\"telegram.main/42\"), a URL, or the absolute path of a program";
        text::parsed(deserializer, expected, Self::parse)
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertKind {
    /// The store cannot write.
    Store,
    /// The disk of the store is nearly full.
    Disk,
    /// A channel does not receive or send.
    Channel,
    /// An agent fails.
    Agent,
    /// Turns are late.
    Overdue,
    /// Messages that nobody asked for, or answers that are not late yet, get nowhere.
    Parked,
    /// Turns could not be answered, or messages not be delivered.
    Undeliverable,
    /// Callbacks of hooks were given up.
    Callbacks,
    /// A schedule has paused itself.
    Schedule,
    /// An error of a new kind, or a panic.
    Error,
}

/// A value, or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrOff<T>(pub Option<T>);

/// A value that is written as text.
pub(crate) trait Written: Sized + fmt::Display {
    const EXPECTED: &'static str;
    fn parse(text: &str) -> Option<Self>;
}

impl<T: fmt::Display> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_str("off"),
        }
    }
}

impl<'de, T: Written> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| if text == "off" { Some(Self(None)) } else { T::parse(text).map(|it| Self(Some(it))) };
        text::parsed(deserializer, T::EXPECTED, parse)
    }
}

/// A time of day, such as `08:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay(pub Time);

impl Written for TimeOfDay {
    const EXPECTED: &'static str = "a time of day such as \"08:00\", or \"off\"";

    fn parse(text: &str) -> Option<Self> {
        Time::strptime("%H:%M", text).ok().map(Self)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

impl Written for Hours {
    const EXPECTED: &'static str = "two times of day such as \"22:00-07:00\", or \"off\"";

    fn parse(text: &str) -> Option<Self> {
        parse_hours(text)
    }
}

/// Reads `22:00-07:00`.
pub(crate) fn parse_hours(text: &str) -> Option<Hours> {
    let (from, until) = text.split_once('-')?;
    Some(Hours { from: TimeOfDay::parse(from.trim())?.0, until: TimeOfDay::parse(until.trim())?.0 })
}

/// A time zone by its name, or `system`.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    pub zone: TimeZone,
}

impl Zone {
    /// The machine's own.
    pub(crate) fn system() -> Self {
        Self { name: "system".to_owned(), zone: TimeZone::system() }
    }

    /// The name, as it is written.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = text::filled(deserializer)?;
        let zone = match name.as_str() {
            "system" => TimeZone::system(),
            name => TimeZone::get(name).map_err(|_| {
                D::Error::custom(format_args!("names the time zone `{name}`, which does not exist: use one such as \"Europe/Vienna\", or \"system\""))
            })?,
        };
        Ok(Self { name, zone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_two_times_of_day() {
        assert_eq!(parse_hours("22:00-07:00").map(|hours| hours.to_string()).as_deref(), Some("22:00-07:00"));
        for wrong in ["", "22:00", "22-7", "22:00-25:00", "off"] {
            assert_eq!(parse_hours(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_target_is_a_conversation_a_url_or_a_program() {
        let kind = |text| AlertTarget::parse(text).map(|target| target.to_string());

        assert_eq!(kind("telegram.main/42").as_deref(), Some("telegram.main/42"));
        assert_eq!(kind("https://hooks.example.org/very/secret?x=1").as_deref(), Some("https://hooks.example.org"));
        assert_eq!(kind("/usr/local/bin/page").as_deref(), Some("/usr/local/bin/page"));
        for wrong in ["", "telegram", "telegram.main", "telegram.main/", "page", "https://user@example.org/"] {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
    }
}
