//! `[guard.ladder.<where>.<direct|group>]`: the rungs that are tried when the agent is silent or fails.

use std::collections::{BTreeMap, BTreeSet};

use rejoinder_core::{Cause, ChatKind, Ladder, Rung};
use serde::{Deserialize, Serialize};

use super::{
    clarify::Questions,
    scope::{check_scope, scopes},
    templates::Templates,
};
use crate::{check::Checks, key::Key};

/// The key of the ladders for every channel.
const EVERYWHERE: &str = "default";

/// The ladders, by scope: a channel (`webhook.siri`), a platform (`webhook`) or `default`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Ladders(BTreeMap<String, Chats>);

/// The ladders of one scope.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chats {
    #[serde(skip_serializing_if = "Rungs::is_empty")]
    pub direct: Rungs,
    #[serde(skip_serializing_if = "Rungs::is_empty")]
    pub group: Rungs,
}

/// The rungs for each cause, tried in order. `None`: the next wider scope decides.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rungs {
    /// The agent ended without a signal, or chose silence.
    pub silent: Option<Vec<Rung>>,
    pub error: Option<Vec<Rung>>,
    /// The agent could not be reached. `None`: as `error` of the same scope.
    pub unreachable: Option<Vec<Rung>>,
    /// The hard deadline passed.
    pub timeout: Option<Vec<Rung>>,
    /// The platform refused the agent's answer.
    pub refused: Option<Vec<Rung>>,
    /// The message could not be read.
    pub unreadable: Option<Vec<Rung>>,
    /// A voice note could not be written down.
    pub unheard: Option<Vec<Rung>>,
    /// The agent has used its budget of the day.
    pub budget: Option<Vec<Rung>>,
}

/// The template that a ladder ends with if it has no other last word.
const fn words_for(cause: Cause) -> &'static str {
    match cause {
        Cause::Silent => "silent",
        Cause::Error => "failed",
        Cause::Unreachable => "unreachable",
        Cause::Timeout => "late",
        Cause::Refused => "refused",
        Cause::Unreadable => "unreadable",
        Cause::Unheard => "unheard",
        Cause::Budget => "budget",
    }
}

/// In the order of the manual.
const CHATS: [ChatKind; 2] = [ChatKind::Direct, ChatKind::Group];

impl Chats {
    const fn rungs(&self, chat: ChatKind) -> &Rungs {
        match chat {
            ChatKind::Direct => &self.direct,
            ChatKind::Group => &self.group,
        }
    }
}

impl Rungs {
    pub(crate) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The causes with rungs of their own.
    fn all(&self) -> impl Iterator<Item = (Cause, &[Rung])> {
        Cause::ALL.into_iter().filter_map(|cause| Some((cause, self.get(cause)?)))
    }

    /// The rungs for the causes that have some, each with the cause's own words at the end: something is said when every
    /// configured rung fails.
    pub(crate) fn complete(&self) -> Vec<(Cause, Vec<Rung>)> {
        let decided = |cause| self.decided(cause).map(|(of, rungs)| (cause, completed(of, rungs)));
        Cause::ALL.into_iter().filter_map(decided).collect()
    }

    /// The rungs for a cause, and the cause for which they are written: an agent that cannot be reached has failed, unless these
    /// rungs say more.
    fn decided(&self, cause: Cause) -> Option<(Cause, &[Rung])> {
        let of = |cause| self.get(cause).map(|rungs| (cause, rungs));
        of(cause).or_else(|| of(Cause::Error).filter(|_| cause == Cause::Unreachable))
    }

    /// Reports what is wrong with the rungs at `key`, for turns of `agent`.
    pub(crate) fn check(&self, key: &Key, texts: Texts<'_>, agent: Option<&str>, checks: &mut Checks<'_>) {
        for (cause, rungs) in self.all() {
            check_rungs(&key.name(cause.as_str()), rungs, texts, checks, |name, _| {
                (agent == Some(name)).then(|| format!("names `{name}`, which has failed by then: name another agent"))
            });
        }
    }

    fn get(&self, cause: Cause) -> Option<&[Rung]> {
        let rungs = match cause {
            Cause::Silent => &self.silent,
            Cause::Error => &self.error,
            Cause::Unreachable => &self.unreachable,
            Cause::Timeout => &self.timeout,
            Cause::Refused => &self.refused,
            Cause::Unreadable => &self.unreadable,
            Cause::Unheard => &self.unheard,
            Cause::Budget => &self.budget,
        };
        rungs.as_deref()
    }
}

/// Rungs with the cause's own words after them, if they do not end with words.
fn completed(cause: Cause, rungs: &[Rung]) -> Vec<Rung> {
    let mut rungs = rungs.to_vec();
    if !matches!(rungs.last(), Some(Rung::Say(_))) {
        rungs.push(Rung::Say(words_for(cause).to_owned()));
    }
    rungs
}

impl Ladders {
    /// The configured rungs for `channel` (`webhook.siri`): from the channel's own ladder, else its platform's, else the
    /// default.
    pub fn rungs(&self, channel: &str, chat: ChatKind, cause: Cause) -> &[Rung] {
        self.decided(channel, chat, cause).map(|(_, rungs)| rungs).unwrap_or_default()
    }

    /// The scope that decides for `channel`, and its rungs.
    fn chosen<'a>(&self, channel: &'a str, chat: ChatKind, cause: Cause) -> Option<(&'a str, &[Rung])> {
        let mut scopes = scopes(channel).chain([EVERYWHERE]);
        scopes.find_map(|scope| Some((scope, self.0.get(scope)?.rungs(chat).get(cause)?)))
    }

    /// As [`Rungs::decided`], of the scope that decides for `channel`.
    fn decided(&self, channel: &str, chat: ChatKind, cause: Cause) -> Option<(Cause, &[Rung])> {
        let mut scopes = scopes(channel).chain([EVERYWHERE]);
        scopes.find_map(|scope| self.0.get(scope)?.rungs(chat).decided(cause))
    }

    /// The rungs of `channel` for every cause, and after them the cause's own words, so that something is said when every
    /// configured rung fails.
    pub(super) fn ladder(&self, channel: &str, chat: ChatKind) -> Ladder {
        Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| {
            let (of, rungs) = self.decided(channel, chat, cause).unwrap_or((cause, &[]));
            ladder.with(cause, completed(of, rungs))
        })
    }

    /// A channel that routes to `agent` and has the rungs of `scope`.
    fn channel_of<'a>(
        &self,
        agent: &str,
        scope: &str,
        chat: ChatKind,
        cause: Cause,
        checks: &Checks<'a>,
    ) -> Option<&'a str> {
        let of_agent = |routed: &&Option<String>| routed.as_deref() == Some(agent);
        let channels =
            checks.names.channels.iter().filter(|(_, routed)| of_agent(routed)).map(|(name, _)| name.as_str());
        channels.into_iter().find(|name| self.chosen(name, chat, cause).is_some_and(|(chosen, _)| chosen == scope))
    }

    fn all(&self) -> impl Iterator<Item = (&str, ChatKind, Cause, &[Rung])> {
        self.0.iter().flat_map(|(scope, chats)| {
            CHATS.into_iter().flat_map(move |chat| {
                Cause::ALL
                    .into_iter()
                    .filter_map(move |cause| Some((scope.as_str(), chat, cause, chats.rungs(chat).get(cause)?)))
            })
        })
    }

    /// The names of the templates that the rungs use.
    pub(super) fn templates(&self) -> BTreeSet<&str> {
        let rungs = self.all().flat_map(|(.., rungs)| rungs);
        rungs.filter_map(|rung| if let Rung::Say(name) = rung { Some(name.as_str()) } else { None }).collect()
    }

    pub(super) fn check(&self, texts: Texts<'_>, checks: &mut Checks<'_>) {
        for scope in self.0.keys().filter(|scope| *scope != EVERYWHERE) {
            check_scope("ladder", scope, checks);
        }
        for (scope, chat, cause, rungs) in self.all() {
            let list = checks.key(&["ladder", scope, chat.as_str(), cause.as_str()]);
            check_rungs(&list, rungs, texts, checks, |agent, checks| {
                let channel = self.channel_of(agent, scope, chat, cause, checks)?;
                Some(format!(
                    "names `{agent}`, which is the agent of `{channel}` and has failed by then: name another agent, or \
                     give this channel a ladder of its own"
                ))
            });
        }
    }
}

/// What rungs name.
#[derive(Clone, Copy)]
pub(crate) struct Texts<'a> {
    pub(super) questions: &'a Questions,
    pub(super) templates: &'a Templates,
}

/// Reports what is wrong with the `rungs` at `list`. `why_not` says why a turn must not be handed to an agent.
fn check_rungs(
    list: &Key,
    rungs: &[Rung],
    texts: Texts<'_>,
    checks: &mut Checks<'_>,
    why_not: impl Fn(&str, &Checks<'_>) -> Option<String>,
) {
    if rungs.is_empty() {
        let what = "is empty: name at least one rung, or a turn that is owed an answer could get none";
        checks.wrong(list.clone(), what);
    }
    for (index, rung) in rungs.iter().enumerate() {
        let rung_key = list.index(index);
        match rung {
            Rung::Handoff(agent) => {
                let key = rung_key.name("handoff");
                checks.refers(key.clone(), "agent", agent, &checks.names.agents);
                if rungs[..index].contains(rung) {
                    checks.wrong(key, format!("hands the turn to `{agent}` a second time"));
                } else if let Some(what) = why_not(agent, checks) {
                    checks.wrong(key, what);
                }
            }
            Rung::Clarify(name) => {
                let questions = texts.questions.names().cloned().collect();
                checks.refers(rung_key.name("clarify"), "question", name, &questions);
            }
            Rung::Say(name) => checks.refers(rung_key.name("say"), "template", name, &texts.templates.names()),
            Rung::React(emoji) => {
                if emoji.is_empty() || emoji.chars().count() > 16 || emoji.chars().any(char::is_alphanumeric) {
                    checks.wrong(rung_key.name("react"), "must be one emoji");
                }
            }
        }
    }
}
