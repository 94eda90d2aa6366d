//! `[guard.ladder.<where>.<direct|group>]`: what is tried when the agent is silent or fails.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{check_scope, templates::scopes};
use crate::check::Checks;

/// Where the ladder stands that holds for every channel.
const EVERYWHERE: &str = "default";

/// The ladders, by where they hold: a channel (`webhook.siri`), a platform (`webhook`) or `default`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Ladders(BTreeMap<String, Chats>);

/// The ladders of one platform or channel.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chats {
    /// In a chat with one person.
    #[serde(skip_serializing_if = "Rungs::are_all_elsewhere")]
    pub direct: Rungs,
    /// In a chat with several.
    #[serde(skip_serializing_if = "Rungs::are_all_elsewhere")]
    pub group: Rungs,
}

/// The rungs for each cause, tried in order. `None`: as the next wider ladder has it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rungs {
    /// The agent ended without a signal, or chose silence.
    pub silent: Option<Vec<Rung>>,
    /// The agent failed.
    pub error: Option<Vec<Rung>>,
    /// The hard deadline passed.
    pub timeout: Option<Vec<Rung>>,
    /// The platform refused the agent's answer.
    pub refused: Option<Vec<Rung>>,
    /// The turn could not be read.
    pub unreadable: Option<Vec<Rung>>,
}

/// One thing to try.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rung {
    /// Another agent is run on the same turn.
    Handoff(String),
    /// A question of `[guard.clarify]` is asked.
    Clarify(String),
    /// A template of `[guard.templates]` is said.
    Say(String),
    /// An emoji is put on the person's message.
    React(String),
}

/// The kind of chat that a ladder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chat {
    /// With one person.
    Direct,
    /// With several.
    Group,
}

impl Chat {
    const ALL: [Self; 2] = [Self::Direct, Self::Group];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
        }
    }
}

/// Why a turn needs a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The agent ended without a signal, or chose silence.
    Silent,
    /// The agent failed.
    Error,
    /// The hard deadline passed.
    Timeout,
    /// The platform refused the agent's answer.
    Refused,
    /// The turn could not be read.
    Unreadable,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] = [Self::Silent, Self::Error, Self::Timeout, Self::Refused, Self::Unreadable];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
        }
    }
}

impl Chats {
    const fn rungs(&self, chat: Chat) -> &Rungs {
        match chat {
            Chat::Direct => &self.direct,
            Chat::Group => &self.group,
        }
    }
}

impl Rungs {
    fn are_all_elsewhere(&self) -> bool {
        Cause::ALL.into_iter().all(|cause| self.get(cause).is_none())
    }

    fn get(&self, cause: Cause) -> Option<&[Rung]> {
        let rungs = match cause {
            Cause::Silent => &self.silent,
            Cause::Error => &self.error,
            Cause::Timeout => &self.timeout,
            Cause::Refused => &self.refused,
            Cause::Unreadable => &self.unreadable,
        };
        rungs.as_deref()
    }
}

impl Ladders {
    /// What is tried on `channel` (`webhook.siri`) in such a chat for such a cause: as the channel's own
    /// ladder has it, or else its platform's, or else the default one.
    #[must_use]
    pub fn rungs(&self, channel: &str, chat: Chat, cause: Cause) -> &[Rung] {
        scopes(channel)
            .chain([EVERYWHERE])
            .find_map(|scope| self.0.get(scope)?.rungs(chat).get(cause))
            .unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = (&str, Chat, Cause, &[Rung])> {
        self.0.iter().flat_map(|(scope, chats)| {
            Chat::ALL.into_iter().flat_map(move |chat| {
                Cause::ALL
                    .into_iter()
                    .filter_map(move |cause| Some((scope.as_str(), chat, cause, chats.rungs(chat).get(cause)?)))
            })
        })
    }

    /// The templates that some rung says.
    pub(super) fn templates(&self) -> BTreeSet<&str> {
        let rungs = self.all().flat_map(|(.., rungs)| rungs);
        rungs.filter_map(|rung| if let Rung::Say(name) = rung { Some(name.as_str()) } else { None }).collect()
    }

    pub(super) fn check(&self, questions: &BTreeSet<String>, templates: &BTreeSet<String>, checks: &mut Checks<'_>) {
        for scope in self.0.keys().filter(|scope| *scope != EVERYWHERE) {
            check_scope("ladder", scope, checks);
        }
        for (scope, chat, cause, rungs) in self.all() {
            let list = checks.key(&["ladder", scope, chat.as_str(), cause.as_str()]);
            if rungs.is_empty() {
                let what = "is empty: name at least one rung, or a turn that is owed an answer would get none";
                checks.wrong(list.clone(), what);
            }
            for (index, rung) in rungs.iter().enumerate() {
                let rung_key = list.index(index);
                match rung {
                    Rung::Handoff(agent) => {
                        checks.refers(rung_key.name("handoff"), "agent", agent, &checks.names.agents);
                    }
                    Rung::Clarify(name) => checks.refers(rung_key.name("clarify"), "question", name, questions),
                    Rung::Say(name) => checks.refers(rung_key.name("say"), "template", name, templates),
                    Rung::React(emoji) => {
                        if emoji.is_empty() || emoji.chars().count() > 16 || emoji.chars().any(char::is_alphanumeric) {
                            checks.wrong(rung_key.name("react"), "must be one emoji");
                        }
                    }
                }
            }
        }
    }
}
