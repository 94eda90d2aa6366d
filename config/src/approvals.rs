//! `[approvals]`: who decides what agents ask approval for, and what rules decide.

use std::time::Duration;

use rejoinder_core::{AgentName, ApprovalRule, ApprovalSettings, Condition, Identity, PersonRole};
use serde::{Deserialize, Serialize};

use crate::{
    Persons,
    check::{Checks, Section},
    duration::{self, HOUR, SECOND},
    key::Key,
    number,
    one_or_more::OneOrMore,
    persons::parse_identity,
    text,
};

/// The entry of `approvers` that stands for everybody with that role.
const OWNERS: &str = "owner";

/// Who decides what agents ask approval for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// `owner`, names in `[people]`, and identities such as `telegram.main/42`.
    approvers: Vec<String>,
    /// How long an approval is waited for.
    #[serde(
        serialize_with = "duration::write",
        deserialize_with = "duration::between::<_, { 60 * SECOND }, { 8760 * HOUR }>"
    )]
    pub expires: Duration,
    /// How many an agent may ask for in one turn.
    #[serde(deserialize_with = "number::between::<_, 0, 100>")]
    pub per_turn: u32,
    /// The first that fits decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    auto: Vec<WrittenRule>,
}

/// A rule as the operator writes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text::filled_option")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    agent: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    channel: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    person: OneOrMore<String>,
    #[serde(default, skip_serializing_if = "OneOrMore::is_empty")]
    role: OneOrMore<PersonRole>,
    decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Approve,
    Decline,
}

impl Approvals {
    /// In the form that the core uses. A name refers only to the person in `[people]`, never to
    /// somebody with the same display name.
    pub fn settings(&self, people: &Persons) -> ApprovalSettings {
        let rule = |rule: &WrittenRule| ApprovalRule {
            kind: rule.kind.clone(),
            agents: rule.agent.iter().map(|agent| AgentName::from(&**agent)).collect(),
            people: identities(rule.person.iter(), people),
            conditions: [rule.channel.then(Condition::Channel), rule.role.then(Condition::Role)]
                .into_iter()
                .flatten()
                .collect(),
            approves: rule.decision == Decision::Approve,
        };
        ApprovalSettings {
            owners: self.approvers.iter().any(|one| one == OWNERS),
            people: identities(self.approvers.iter().filter(|one| *one != OWNERS), people),
            rules: self.auto.iter().map(rule).collect(),
        }
    }

    /// Reports names that `[people]` does not have.
    pub(crate) fn check_people(&self, people: &Persons, checks: &mut Checks<'_>) {
        for (index, name) in self.approvers.iter().enumerate().filter(|(_, name)| *name != OWNERS) {
            check_person(checks.key(&["approvers"]).index(index), name, people, checks);
        }
        for (index, rule) in self.auto.iter().enumerate() {
            for name in rule.person.iter() {
                check_person(checks.key(&["auto"]).index(index).name("person"), name, people, checks);
            }
        }
    }
}

impl Section for Approvals {
    fn check(&self, checks: &mut Checks<'_>) {
        for (index, rule) in self.auto.iter().enumerate() {
            let key = checks.key(&["auto"]).index(index);
            checks.refers_to_agent(&key.name("agent"), rule.agent.iter());
            checks.refers_to_scope(&key.name("channel"), rule.channel.iter());
        }
    }
}

fn check_person(key: Key, name: &str, people: &Persons, checks: &mut Checks<'_>) {
    match parse_identity(name) {
        Some(identity) => checks.refers_to_channel(&key, [&identity.channel]),
        None if people.identities(name).is_none() => {
            let what = format!(
                "names `{name}`, who is not in [people]: add them there, or write a channel and a person's id there, such as \
                 \"telegram.main/123456789\""
            );
            checks.wrong(key, what);
        }
        None => {}
    }
}

fn identities<'a>(names: impl Iterator<Item = &'a String>, people: &Persons) -> Vec<Identity> {
    names
        .flat_map(|name| match parse_identity(name) {
            Some(identity) => vec![identity],
            None => people.identities(name).unwrap_or_default(),
        })
        .collect()
}
