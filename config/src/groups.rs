//! `[channels.<platform>.<name>.groups."<id>"]`: what differs in a single group.
//!
//! They are one of the [`ChannelKeys`](crate::ChannelKeys). A platform's section checks the ids with [`Groups::check`].

use std::collections::BTreeMap;

use rejoinder_core::{
    AgentName, ChannelId, ChatKind, Condition, ConversationRef, GroupPolicy, Language, PolicyChange, QueueMode, Rule,
};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    Guard, IdFormat,
    check::Checks,
    guard::{Deadlines, HardDeadline, Rungs, SoftDeadline, reversed},
    key::Key,
    text,
};

/// Groups, by their id on the platform.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Groups(BTreeMap<String, Group>);

/// What differs in a group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the fields are the keys of the configuration")]
pub struct Group {
    #[serde(deserialize_with = "text::filled_option")]
    agent: Option<String>,
    /// Which messages are given to the agent.
    group_policy: Option<GroupPolicy>,
    /// The language of people who have not chosen one.
    #[serde(deserialize_with = "text::language_option")]
    language: Option<Language>,
    /// What happens to a message that comes while a turn runs.
    queue: Option<QueueMode>,
    soft_deadline: Option<SoftDeadline>,
    hard_deadline: Option<HardDeadline>,
    #[serde(skip_serializing_if = "Rungs::is_empty")]
    ladder: Rungs,
}

impl Group {
    const fn deadlines(&self) -> Deadlines {
        Deadlines { soft_deadline: self.soft_deadline, hard_deadline: self.hard_deadline }
    }

    /// The rule for the group with this id; `None` if only its `group_policy` differs.
    fn rule(&self, channel: &ChannelId, id: &str) -> Option<Rule> {
        let rule = Rule {
            name: format!("channels.{channel}.groups.{id}").into(),
            conditions: vec![Condition::Conversation(vec![ConversationRef::new(channel.clone(), id)])],
            agent: self.agent.as_deref().map(AgentName::from),
            language: self.language,
            queue: self.queue,
            policy: PolicyChange {
                soft_deadline: self.soft_deadline.map(|SoftDeadline(soft)| soft),
                hard_deadline: self.hard_deadline.map(|HardDeadline(hard)| hard),
                ladder: self.ladder.complete(),
            },
        };
        let sets_nothing = rule.agent.is_none()
            && rule.language.is_none()
            && rule.queue.is_none()
            && rule.policy == PolicyChange::default();
        (!sets_nothing).then_some(rule)
    }
}

impl Groups {
    /// The rules for the groups of a channel.
    pub fn rules(&self, channel: &ChannelId) -> impl Iterator<Item = Rule> {
        self.0.iter().filter_map(|(id, group)| group.rule(channel, id))
    }

    /// Which messages are given to the agent, for the groups that differ in this.
    pub fn policies(&self) -> impl Iterator<Item = (&str, GroupPolicy)> {
        self.0.iter().filter_map(|(id, group)| Some((id.as_str(), group.group_policy?)))
    }

    /// Whether nothing is set for any group.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports ids that no group of the platform has, and names of agents and languages that do not exist.
    pub fn check(&self, format: &IdFormat, checks: &mut Checks<'_>) {
        for (id, group) in &self.0 {
            let key = checks.key(&["groups", id]);
            if !(format.is_group)(id) {
                checks.wrong(key.clone(), format!("must be called by {}", format.group));
            }
            checks.refers_to_agent(&key.name("agent"), &group.agent);
            checks.knows_language(key.name("language"), group.language.as_ref().map(Language::as_str));
        }
    }

    /// Reports what does not fit `[guard]`. `key` is that of the channel.
    pub(crate) fn check_with(&self, channel: &ChannelId, guard: &Guard, key: &Key, checks: &mut Checks<'_>) {
        let wider = guard.deadlines(channel.as_str(), ChatKind::Group);
        for (id, group) in &self.0 {
            let key = key.names(&["groups", id]);
            group.ladder.check(&key.name("ladder"), guard.texts(), group.agent.as_deref(), checks);
            let own = group.deadlines();
            if own != Deadlines::default() && own.or(wider).are_reversed() {
                let (name, what) = reversed(own);
                checks.wrong(key.name(name), what);
            }
        }
    }
}
