//! Sessions: what an agent remembers of a conversation. People name them, go back to them, and use one in several
//! conversations.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{ToSpan, civil::Time, tz::TimeZone};
use rejoinder_guard::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::{AgentName, HistoryLine, Reaction},
    ids::{ConversationId, PersonId, SessionId, TurnId},
    name::clean,
};

/// How many characters the name of a session has at most.
const MAX_NAME: usize = 40;

/// How many characters of a session's title are kept.
pub(crate) const MAX_TITLE: usize = 100;

/// What became of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnsweredTurn {
    /// Its lines in the transcript, oldest first.
    pub lines: Vec<HistoryLine>,
    /// The reactions to its answer, oldest first: the latest one of each person.
    pub reactions: Vec<Reaction>,
}

/// A session that can be used in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: SessionId,
    /// Its position among the sessions that can be used in the conversation, the oldest first, counted from 1.
    pub number: u32,
    /// The name that somebody gave it.
    pub name: Option<String>,
    /// What it is about, as an agent says.
    pub title: Option<String>,
    pub choice: SessionChoice,
    /// When something was last put before an agent in it, to the minute; before that, when it began.
    pub used_at: Timestamp,
    pub began_here: bool,
    /// Whether the conversation continues in it.
    pub is_current: bool,
    /// Whether another conversation continues in it.
    pub is_elsewhere: bool,
    /// The first text that somebody wrote in it, as far as it is stored.
    pub begins: Option<String>,
}

/// What people have chosen for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// The agent, if not that of the channel or of a rule.
    pub agent: Option<AgentName>,
    /// The agent's model, if not its own.
    pub model: Option<Arc<str>>,
}

/// In which session a new turn is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionUse {
    /// The id of a session that begins with the turn.
    pub id: SessionId,
    /// Whose session that is: a person who is known, in a direct chat. `None`: it belongs to its conversation.
    pub person: Option<PersonId>,
    /// Whether the current session is left unless it is the person's, or the conversation's own.
    pub is_checked: bool,
    /// The limit of age: an unnamed current session with an earlier last use ends. A new one begins, with the choices
    /// of the old one, in all conversations that continued in it.
    pub unused_since: Option<Timestamp>,
    /// Whether the current session stays as it is, also when it was last used.
    pub is_untouched: bool,
}

impl SessionUse {
    /// The current session, or the first one of a new conversation.
    pub const fn current(id: SessionId) -> Self {
        Self { id, person: None, is_checked: false, unused_since: None, is_untouched: false }
    }
}

/// A change of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// A conversation's new current session.
    New {
        id: SessionId,
        conversation: ConversationId,
        name: Option<String>,
        /// Whose it is; `None`: it belongs to its conversation.
        person: Option<PersonId>,
        at: Timestamp,
    },
    /// A conversation continues in a session.
    Use {
        conversation: ConversationId,
        session: SessionId,
        /// When: an unused session is not left at once.
        at: Timestamp,
    },
    Rename {
        session: SessionId,
        name: String,
    },
    /// An agent says what a session is about, if there still is one. Nobody decides on a title, so this is no change of the version.
    Title {
        session: SessionId,
        title: String,
    },
    /// An agent and a model are chosen for a session.
    Choose {
        session: SessionId,
        choice: SessionChoice,
    },
    /// A session goes, with the lines of its transcript. No conversation may continue in it.
    Delete {
        session: SessionId,
    },
    /// Turns of a session are left out of what agents are shown of it.
    LeaveOut {
        session: SessionId,
        turns: Vec<TurnId>,
    },
}

/// When a conversation begins a new session by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SessionReset {
    #[default]
    Never,
    /// With the first message after this time of each day.
    Daily(Time, TimeZone),
    /// With the first message after nothing was said for so long.
    Idle(Duration),
}

impl SessionReset {
    /// Since when a session must have been used to go on now. A time that jiff cannot express resets nothing.
    pub fn unused_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Idle(pause) => {
                let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                Some(Timestamp::from_millis(now.as_millis().saturating_sub(pause)))
            }
            Self::Daily(time, zone) => {
                let now = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?.to_zoned(zone.clone());
                let of = |date: jiff::civil::Date| date.to_datetime(*time).to_zoned(zone.clone()).ok();
                let today = of(now.date())?;
                let last = if today <= now { today } else { of(now.date().checked_sub(1.day()).ok()?)? };
                Some(Timestamp::from_millis(last.timestamp().as_millisecond()))
            }
        }
    }
}

/// What the operator allows with sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSettings {
    /// When a conversation begins a new session by itself.
    pub reset: SessionReset,
    pub agents: Vec<AgentName>,
    /// The models of agents, for those of which one may be chosen: the agent's own first.
    pub models: BTreeMap<AgentName, Vec<Arc<str>>>,
    pub new_in_groups: NewInGroups,
}

/// Who may begin a new session in a group, where it is everybody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewInGroups {
    Owners,
    /// All but guests, and strangers who may write there.
    #[default]
    Members,
    /// All who may write there.
    Everyone,
}

impl SessionSettings {
    /// The choice as far as it is still allowed, for messages that are routed to `routed`, and what of it is not: the rest
    /// of a remark.
    pub(crate) fn allowed(&self, choice: SessionChoice, routed: &AgentName) -> (SessionChoice, Option<String>) {
        let mut gone = None;
        let agent = choice.agent.filter(|agent| {
            let is_allowed = self.agents.contains(agent);
            if !is_allowed {
                gone = Some(format!("the session's agent `{agent}` may not be chosen any more: {routed}"));
            }
            is_allowed
        });
        let models = self.models.get(agent.as_ref().unwrap_or(routed));
        // The model of an agent that is gone goes with it.
        let model = choice.model.filter(|_| gone.is_none()).filter(|model| {
            let is_allowed = models.is_some_and(|models| models.contains(model));
            if !is_allowed {
                gone = Some(format!("the session's model `{model}` may not be chosen any more"));
            }
            is_allowed
        });
        (SessionChoice { agent, model }, gone)
    }
}

/// The name of a session, as somebody wrote it. `None` if it has nothing to see, is too long, or is a number, by which
/// sessions are chosen too.
pub(crate) fn name(text: &str) -> Option<String> {
    let name = clean(text, MAX_NAME + 1);
    let is_number = name.chars().all(|c| c.is_ascii_digit());
    (!is_number && name.chars().count() <= MAX_NAME).then_some(name)
}

/// The title of a session, as an agent wrote it. `None` if it has nothing to see.
pub(crate) fn title(text: &str) -> Option<String> {
    Some(clean(text, MAX_TITLE)).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Timestamp {
        Timestamp::from_millis(text.parse::<jiff::Timestamp>().expect("it is a time").as_millisecond())
    }

    #[test]
    fn a_name_can_be_told_from_a_number() {
        assert_eq!(name(" My \u{202e}trip\n2 ").as_deref(), Some("My trip 2"));
        assert_eq!([name(""), name("\u{200b}"), name("12"), name(&"x".repeat(41))], [None, None, None, None]);
        assert_eq!(name(&"ä".repeat(40)).map(|name| name.chars().count()), Some(40));
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title(" Fix \u{202e}the\nlogin ").as_deref(), Some("Fix the login"));
        assert_eq!([title(""), title(" \u{200b}\n")], [None, None]);
        assert_eq!(title(&"ä".repeat(1_000)).map(|title| title.chars().count()), Some(100));
    }

    #[test]
    fn a_day_begins_at_the_configured_time() {
        let zone = TimeZone::get("Europe/Vienna").expect("it is known");
        let daily = SessionReset::Daily(jiff::civil::time(4, 0, 0, 0), zone);
        let since = |now| daily.unused_since(millis(now)).expect("it is daily");

        assert_eq!(since("2026-07-02T01:59:59Z"), millis("2026-07-01T02:00:00Z"));
        assert_eq!(since("2026-07-02T02:00:00Z"), millis("2026-07-02T02:00:00Z"));
        // The clocks were set back at 3:00.
        assert_eq!(since("2026-10-25T12:00:00Z"), millis("2026-10-25T03:00:00Z"));
        assert_eq!(since("2026-10-25T02:30:00Z"), millis("2026-10-24T02:00:00Z"));
    }

    #[test]
    fn a_pause_is_counted_back_from_now() {
        let idle = SessionReset::Idle(Duration::from_hours(8));

        assert_eq!(idle.unused_since(millis("2026-07-02T09:00:00Z")), Some(millis("2026-07-02T01:00:00Z")));
        assert_eq!(SessionReset::Never.unused_since(millis("2026-07-02T09:00:00Z")), None);
    }

    #[test]
    fn what_may_not_be_chosen_any_more_is_left_out() {
        let [main, other]: [AgentName; 2] = ["main".into(), "other".into()];
        let settings = SessionSettings {
            agents: vec![other.clone()],
            models: BTreeMap::from([(other.clone(), vec!["small".into(), "large".into()])]),
            ..SessionSettings::default()
        };
        let choice = |agent: &AgentName, model: &str| SessionChoice {
            agent: Some(Arc::clone(agent)),
            model: Some(model.into()),
        };

        assert_eq!(settings.allowed(choice(&other, "large"), &main), (choice(&other, "large"), None));
        let (kept, gone) = settings.allowed(choice(&other, "huge"), &main);
        assert_eq!((kept.agent, kept.model), (Some(other), None));
        assert!(gone.is_some_and(|gone| gone.contains("`huge`")));
        let (kept, gone) = settings.allowed(choice(&"former".into(), "large"), &main);
        assert_eq!(kept, SessionChoice::default());
        assert!(gone.is_some_and(|gone| gone.contains("`former`")));
    }
}
