//! `[routing]`: which agent handles a turn, and by which rules.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Weekday;
use rejoinder_core::{
    AgentName, ChatKind, Condition, ConversationRef, Identity, Language, PersonRole, PolicyChange, Rule, day_name,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    Channels, Guard,
    alerts::Zone,
    check::{Checks, Section},
    guard::{Deadlines, HardDeadline, Rungs, SoftDeadline, reversed},
    key::Key,
    number,
    one_or_more::OneOrMore,
    persons::parse_identity,
    span::Span,
    text,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// The agent for channels that do not name one.
    #[serde(deserialize_with = "text::filled")]
    pub default_agent: String,
    /// How many turns run at once on a node; the others wait in the store.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent_turns: u32,
    /// The agents that people may choose for a session.
    #[serde(default)]
    pub choosable: Vec<String>,
    /// The time zone of `between` and `days`.
    pub time_zone: Zone,
    /// The first that an event meets holds for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<WrittenRule>,
}

/// A rule as the operator writes it: its name, its conditions, and what it sets.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(deserialize_with = "text::filled")]
    name: String,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    channel: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    conversation: OneOrMore<Address>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    person: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    role: OneOrMore<PersonRole>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    chat: OneOrMore<ChatKind>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    command: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    between: OneOrMore<Span>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    days: OneOrMore<Day>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text::filled_option")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text::language_option")]
    language: Option<Language>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soft_deadline: Option<SoftDeadline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_deadline: Option<HardDeadline>,
    #[serde(default, skip_serializing_if = "Rungs::is_empty")]
    ladder: Rungs,
}

/// `telegram.main/-100123`, or with a thread.
#[derive(Clone, Debug)]
pub(crate) struct Address(pub(crate) ConversationRef);

text::as_text!(Address, "a conversation such as \"telegram.main/42\"", ConversationRef::parse);

/// `mon`.
#[derive(Clone, Copy, Debug)]
struct Day(Weekday);

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(day_name(self.0))
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "one of mon, tue, wed, thu, fri, sat and sun";
        text::parsed(deserializer, expected, |text| {
            Weekday::Monday.cycle_forward().take(7).find(|day| day_name(*day) == text).map(Self)
        })
    }
}

impl Routing {
    /// The rules in the form that the core uses, in their order.
    pub fn rules(&self) -> Vec<Rule> {
        self.rules.iter().map(|rule| rule.rule(&self.time_zone)).collect()
    }

    /// Reports what does not fit the channels, or the templates, questions and deadlines of `[guard]`.
    pub(crate) fn check_with(&self, channels: &Channels, guard: Option<&Guard>, checks: &mut Checks<'_>) {
        for (index, rule) in self.rules.iter().enumerate() {
            let key = checks.key(&["rules"]).index(index);
            rule.check_people(channels, &key, checks);
            if let Some(guard) = guard {
                rule.ladder.check(&key.name("ladder"), guard.texts(), rule.agent.as_deref(), checks);
                rule.check_deadlines(channels, guard, &key, checks);
            }
        }
    }
}

impl Section for Routing {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.refers_to_agent(&checks.key(&["default_agent"]), [&self.default_agent]);
        for (index, agent) in self.choosable.iter().enumerate() {
            checks.refers_to_agent(&checks.key(&["choosable"]).index(index), [agent]);
        }
        let mut names: BTreeMap<&str, Key> = BTreeMap::new();
        let mut for_all: Option<&str> = None;
        for (index, rule) in self.rules.iter().enumerate() {
            let key = checks.key(&["rules"]).index(index);
            if let Some(first) = names.insert(&rule.name, key.clone()) {
                checks.wrong(key.name("name"), format!("is the name of {first} too: choose another"));
            }
            if rule.name.starts_with("channels.") {
                checks.wrong(key.name("name"), "must not begin with `channels.`: rules of groups are called so");
            }
            if let Some(earlier) = for_all {
                checks.wrong(
                    key.clone(),
                    format!("can never hold, because `{earlier}` has no conditions: move that to the end"),
                );
            } else if rule.conditions().is_empty() {
                for_all = Some(&rule.name);
            }
            rule.check(&key, checks);
        }
    }
}

impl WrittenRule {
    fn rule(&self, zone: &Zone) -> Rule {
        let conditions = [
            self.channel.then(Condition::Channel),
            self.conversation
                .then(|addresses| Condition::Conversation(addresses.into_iter().map(|Address(it)| it).collect())),
            self.person.then(Condition::Person),
            self.role.then(Condition::Role),
            self.chat.then(Condition::Chat),
            self.command.then(Condition::Command),
            self.between
                .then(|spans| Condition::Between(spans.into_iter().map(|Span(it)| it).collect(), zone.zone.clone())),
            self.days.then(|days| Condition::Days(days.into_iter().map(|Day(it)| it).collect(), zone.zone.clone())),
        ];
        Rule {
            name: self.name.as_str().into(),
            conditions: conditions.into_iter().flatten().collect(),
            agent: self.agent.as_deref().map(AgentName::from),
            language: self.language,
            queue: None,
            policy: PolicyChange {
                soft_deadline: self.soft_deadline.map(|SoftDeadline(soft)| soft),
                hard_deadline: self.hard_deadline.map(|HardDeadline(hard)| hard),
                ladder: self.ladder.complete(),
            },
        }
    }

    /// The keys of the conditions that are set.
    fn conditions(&self) -> Vec<&'static str> {
        let Self { channel, conversation, person, role, chat, command, between, days, .. } = self;
        let is_set = [
            ("channel", !channel.is_empty()),
            ("conversation", !conversation.is_empty()),
            ("person", !person.is_empty()),
            ("role", !role.is_empty()),
            ("chat", !chat.is_empty()),
            ("command", !command.is_empty()),
            ("between", !between.is_empty()),
            ("days", !days.is_empty()),
        ];
        is_set.into_iter().filter_map(|(key, is_set)| is_set.then_some(key)).collect()
    }

    const fn deadlines(&self) -> Deadlines {
        Deadlines { soft_deadline: self.soft_deadline, hard_deadline: self.hard_deadline }
    }

    fn check(&self, key: &Key, checks: &mut Checks<'_>) {
        let sets_nothing = self.agent.is_none()
            && self.language.is_none()
            && self.deadlines() == Deadlines::default()
            && self.ladder.is_empty();
        if sets_nothing {
            let what = "sets nothing: add agent, language, soft_deadline, hard_deadline or ladder";
            checks.wrong(key.clone(), what);
        }
        checks.refers_to_scope(&key.name("channel"), self.channel.iter());
        checks.refers_to_channel(
            &key.name("conversation"),
            self.conversation.iter().map(|Address(address)| &address.channel),
        );
        for person in self.person.iter().filter(|person| person.contains('/')) {
            if let Some(Identity { channel, .. }) = parse_identity(person) {
                checks.refers_to_channel(&key.name("person"), [&channel]);
            } else {
                let what = "must be a person's name, or a channel and an id such as \"telegram.main/123456789\"";
                checks.wrong(key.name("person"), what);
            }
        }
        for word in self.command.iter() {
            if word.is_empty() || word.chars().any(char::is_whitespace) {
                checks.wrong(key.name("command"), "must be one word, such as \"/code\"");
            }
        }
        checks.refers_to_agent(&key.name("agent"), &self.agent);
        checks.knows_language(key.name("language"), self.language.as_ref().map(Language::as_str));
    }

    /// Reports conditions about people where nobody is known: callers of these channels have a token instead.
    fn check_people(&self, channels: &Channels, key: &Key, checks: &mut Checks<'_>) {
        let names_nobody = !self.person.is_empty() && self.person.iter().all(|person| !person.contains('/'));
        let condition = if self.role.is_empty() { names_nobody.then_some("person") } else { Some("role") };
        let Some(condition) = condition else { return };
        let mut possible = channels.iter().filter(|(id, _)| self.is_for(id.as_str()));
        if possible.next().is_some()
            && !channels.iter().any(|(id, channel)| self.is_for(id.as_str()) && channel.common.people.is_some())
        {
            let what = "can never hold: callers of these channels have a token, and nobody is known there";
            checks.wrong(key.name(condition), what);
        }
    }

    /// Whether it may hold on a channel.
    fn is_for(&self, channel: &str) -> bool {
        let platform = channel.split_once('.').map_or(channel, |(platform, _)| platform);
        let names = |name: &String| name == channel || name == platform;
        (self.channel.is_empty() || self.channel.iter().any(names))
            && (self.conversation.is_empty()
                || self.conversation.iter().any(|Address(it)| it.channel.as_str() == channel))
    }

    /// Reports deadlines in the wrong order on a channel where the rule may hold.
    fn check_deadlines(&self, channels: &Channels, guard: &Guard, key: &Key, checks: &mut Checks<'_>) {
        let own = self.deadlines();
        let kinds = [ChatKind::Direct, ChatKind::Group];
        let kinds = kinds.into_iter().filter(|kind| self.chat.is_empty() || self.chat.iter().any(|it| it == kind));
        let kinds: BTreeSet<ChatKind> = kinds.collect();
        let channels = channels.iter().filter(|(id, _)| self.is_for(id.as_str()));
        let mut holding =
            channels.flat_map(|(id, _)| kinds.iter().map(move |kind| guard.deadlines(id.as_str(), *kind)));
        if own != Deadlines::default() && holding.any(|wider| own.or(wider).are_reversed()) {
            let (name, what) = reversed(own);
            checks.wrong(key.name(name), what);
        }
    }
}
