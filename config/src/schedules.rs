//! `[schedules.<name>]`: turns and messages that the gateway begins at given times.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::{
    AgentName, Missed, NewSchedule, NotASchedule, PromptSession, ScheduledAction, Target, Timestamp, When, Words,
    WordsTo,
};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    alerts::Zone,
    check::{Checks, Section},
    duration::{self, DAY, MINUTE},
    text,
};

/// Schedules, by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Schedules(BTreeMap<String, Schedule>);

#[skip_serializing_none]
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Schedule {
    at: Option<Time>,
    every: Option<Every>,
    cron: Option<String>,
    time_zone: Option<Zone>,
    to: Written<Target>,
    message: Option<String>,
    prompt: Option<String>,
    #[serde(default, deserialize_with = "text::filled_option")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    quiet: bool,
    words_to: Option<WordsTo>,
    session: Option<PromptSession>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    digest: bool,
    #[serde(default)]
    missed: Missed,
}

/// Somebody or somewhere, as the operator writes it.
#[derive(Clone, Debug)]
struct Written<T>(T);

text::as_text!(
    Written<Target>,
    "a conversation such as \"telegram.main/42\", the name of a person, or \"role:owner\"",
    |text: &str| text.parse().ok()
);

/// A point in time, in RFC 3339.
#[derive(Clone, Copy, Debug)]
struct Time(jiff::Timestamp);

text::as_text!(Time, "a time such as \"2030-01-31T09:00:00+01:00\"", |text: &str| text.parse().ok());

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
struct Every(
    #[serde(
        serialize_with = "duration::write_days",
        deserialize_with = "duration::between_with_days::<_, MINUTE, { 366 * DAY }>"
    )]
    Duration,
);

impl Schedules {
    /// The schedules in the form that the core uses. `zone` is that of those that name none.
    pub fn seeds<'a>(&'a self, zone: &'a Zone) -> impl Iterator<Item = NewSchedule> + 'a {
        self.0.iter().filter_map(|(name, schedule)| schedule.seed(name, zone))
    }
}

impl Schedule {
    /// `None` if it has no time or nothing to begin, or several.
    fn seed(&self, name: &str, zone: &Zone) -> Option<NewSchedule> {
        let when = match (&self.at, &self.every, &self.cron) {
            (Some(Time(at)), None, None) => When::At(Timestamp::from_millis(at.as_millisecond())),
            (None, Some(Every(every)), None) => When::Every(*every),
            (None, None, Some(cron)) => When::Cron(cron.clone()),
            _ => return None,
        };
        let agent = self.agent.as_deref().map(AgentName::from);
        let action = match (&self.message, &self.prompt, self.digest) {
            (Some(message), None, false) => ScheduledAction::Message(message.clone()),
            (None, Some(prompt), false) => {
                let to = self.words_to.clone().unwrap_or_default();
                let words = Words { to, session: self.session.unwrap_or_default() };
                ScheduledAction::Prompt { text: prompt.clone(), agent, quiet: self.quiet, words }
            }
            (None, None, true) => ScheduledAction::Digest,
            _ => return None,
        };
        let time_zone = self.time_zone.as_ref().unwrap_or(zone).name().into();
        Some(NewSchedule { name: name.to_owned(), when, time_zone, to: self.to.0.clone(), action, missed: self.missed })
    }
}

impl Section for Schedules {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, schedule) in &self.0 {
            let key = checks.key(&[name]);
            checks.has_name(key.clone(), name);
            checks.refers_to_channel(&key.name("to"), schedule.to.0.channel());
            checks.refers_to_agent(&key.name("agent"), &schedule.agent);
            checks.refers_to_channel(&key.name("words_to"), schedule.words_to.as_ref().and_then(WordsTo::channel));
            let is_for_prompts = schedule.words_to.is_some() || schedule.session.is_some();
            if schedule.prompt.is_none() && (schedule.agent.is_some() || schedule.quiet || is_for_prompts) {
                checks.wrong(key.clone(), "has no `prompt`, and only that is put before an agent");
            }
            let Some(new) = schedule.seed(name, &Zone::system()) else {
                let what =
                    "must have one of `at`, `every` and `cron`, and one of `message`, `prompt` and `digest = true`";
                checks.wrong(key, what);
                continue;
            };
            // Whether its only time has passed is not for the configuration to say: then it is done.
            match new.check(Timestamp::from_millis(0)) {
                Ok(_) => {}
                Err(wrong @ (NotASchedule::Cron(_) | NotASchedule::Never)) => {
                    checks.wrong(key.name("cron"), said(&wrong));
                }
                Err(wrong) => checks.wrong(key, said(&wrong)),
            }
        }
    }
}

/// What is wrong, without the name of the key, which stands before it.
fn said(wrong: &NotASchedule) -> String {
    let text = wrong.to_string();
    text.strip_prefix("`cron` ").unwrap_or(&text).to_owned()
}
