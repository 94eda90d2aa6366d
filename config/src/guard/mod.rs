//! `[guard]`: deadlines, the fallback ladder and the texts that people see.

mod clarify;
mod deadlines;
mod ladder;
mod scope;
mod templates;

use std::{collections::BTreeSet, time::Duration};

use rejoinder_core::{ChatKind, Language, LateAnswer, OnUnknown, Policy};
use serde::{Deserialize, Serialize};

pub(crate) use self::deadlines::reversed;
use self::ladder::Texts;
pub use self::{
    clarify::Questions,
    deadlines::{Deadlines, HardDeadline, ScopedDeadlines, SoftDeadline},
    ladder::{Chats, Ladders, Rungs},
    templates::{TEMPLATES, Template, Templates},
};
use crate::{
    check::{Checks, Section},
    duration::{self, HOUR},
    number, text,
};

/// Deadlines, limits, ladders and templates.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// How long a person waits before a deferral. `None`: the gateway sends no deferrals on its own.
    #[serde(
        serialize_with = "duration::write_or_off",
        deserialize_with = "duration::between_or_off::<_, 10, { 24 * HOUR }>"
    )]
    pub soft_deadline: Option<Duration>,
    /// How long one run of an agent may take before the ladder answers for it.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub hard_deadline: Duration,
    /// How many times one turn is given to the same agent.
    #[serde(deserialize_with = "number::between::<_, 1, 100>")]
    pub max_runs: u32,
    #[serde(deserialize_with = "number::between::<_, 0, 100>")]
    pub max_deferrals: u32,
    /// The longest time for which an agent may defer an answer.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 720 * HOUR }>")]
    pub max_defer: Duration,
    /// What happens to an answer that comes after a fallback was sent.
    pub late_answer: LateAnswer,
    /// How long a run goes on after `hard_deadline`. `None`: it is stopped then.
    #[serde(
        serialize_with = "duration::write_or_off",
        deserialize_with = "duration::between_or_off::<_, 10, { 24 * HOUR }>"
    )]
    pub late_window: Option<Duration>,
    /// What happens to a message that the platform may have accepted.
    pub on_unknown: OnUnknown,
    /// Deadlines of platforms and channels.
    pub deadlines: ScopedDeadlines,
    /// Whether people get answers that could not be delivered on another channel where they are known.
    pub elsewhere: bool,
    /// What is tried when an agent is silent or fails.
    pub ladder: Ladders,
    /// The language of people whose own is not known, or has no texts.
    #[serde(deserialize_with = "text::language")]
    pub language: Language,
    pub clarify: Questions,
    pub templates: Templates,
    /// The languages that have texts.
    #[serde(skip)]
    pub languages: BTreeSet<Language>,
}

impl Guard {
    /// The policy for `channel` (`webhook.siri`). `on_unknown` is the channel's own setting, if it has one.
    pub fn policy(&self, channel: &str, chat: ChatKind, on_unknown: Option<OnUnknown>) -> Policy {
        let Deadlines { soft_deadline, hard_deadline } = self.deadlines(channel, chat);
        Policy {
            soft_deadline: soft_deadline.map_or(self.soft_deadline, |SoftDeadline(soft)| soft),
            hard_deadline: hard_deadline.map_or(self.hard_deadline, |HardDeadline(hard)| hard),
            max_runs: self.max_runs,
            max_deferrals: self.max_deferrals,
            max_defer: self.max_defer,
            late_answer: self.late_answer,
            late_window: self.late_window.unwrap_or_default(),
            on_unknown: on_unknown.unwrap_or(self.on_unknown),
            ladder: self.ladder.ladder(channel, chat),
            ..Policy::default()
        }
    }
}

impl Guard {
    /// The deadlines that hold for `channel` (`webhook.siri`); both are set.
    pub(crate) fn deadlines(&self, channel: &str, chat: ChatKind) -> Deadlines {
        self.deadlines.of(channel, chat).or(self.general_deadlines())
    }

    const fn general_deadlines(&self) -> Deadlines {
        let (soft, hard) = (SoftDeadline(self.soft_deadline), HardDeadline(self.hard_deadline));
        Deadlines { soft_deadline: Some(soft), hard_deadline: Some(hard) }
    }

    /// What the rungs of a ladder name.
    pub(crate) const fn texts(&self) -> Texts<'_> {
        Texts { questions: &self.clarify, templates: &self.templates }
    }

    /// Takes over which languages there are, and which texts are built in.
    pub(crate) fn know(&mut self, languages: &BTreeSet<Language>, built_in: &Self) {
        self.languages.clone_from(languages);
        self.templates.know_built_in(&built_in.templates);
        self.clarify.know_built_in(&built_in.clarify);
    }
}

impl Section for Guard {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.soft_deadline.is_some_and(|soft| soft >= self.hard_deadline) {
            let (soft, hard) = (checks.key(&["soft_deadline"]), checks.key(&["hard_deadline"]));
            if checks.is_default(&soft) {
                checks.wrong(hard, "must be longer than guard.soft_deadline: also set that to less, or to \"off\"");
            } else {
                checks.wrong(soft, "must be shorter than guard.hard_deadline, or \"off\"");
            }
        }
        checks.knows_language(checks.key(&["language"]), self.language.as_str());
        self.deadlines.check(self.general_deadlines(), checks);
        self.ladder.check(self.texts(), checks);
        self.clarify.check(checks);
        self.templates.check(&self.ladder.templates(), checks);
    }
}
