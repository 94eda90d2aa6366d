//! `[limits]`: what one person may do.

use std::collections::BTreeMap;

use rejoinder_core::{Budget, Currency, PersonLimits, PersonRole};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use serde_with::skip_serializing_none;

use crate::{
    agents::Agent,
    check::{Checks, Section},
    number,
};

const MOST_TOKENS: u32 = 4_000_000_000;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How many turns one person may open within a minute. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, 100_000>")]
    pub turns_per_minute: Option<u32>,
    /// How many turns of one person may wait for their agent at once. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, 100_000>")]
    pub waiting_turns: Option<u32>,
    /// How many turns one person may open on a day. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, 1_000_000>")]
    pub turns_per_day: Option<u32>,
    /// How many tokens agents may use for one person on a day. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, MOST_TOKENS>")]
    pub tokens_per_day: Option<u32>,
    /// What agents may cost for one person on a day. `None`: no limit.
    pub cost_per_day: Money,
    /// What differs for people with these roles.
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub guest: SomeLimits,
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub member: SomeLimits,
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub owner: SomeLimits,
    /// The budgets of agents, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, AgentBudget>,
}

impl Section for Limits {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, budget) in &self.agents {
            let key = checks.key(&["agents", name]);
            checks.refers_to_agent(&key, [name]);
            if budget.tokens_per_day.is_none() && budget.cost_per_day.is_none() {
                checks.wrong(key, "limits nothing: set tokens_per_day or cost_per_day");
            }
        }
    }
}

impl Limits {
    /// What people may do whose role is not known, or has no limits of its own.
    pub const fn general(&self) -> PersonLimits {
        let Self {
            turns_per_minute,
            turns_per_day,
            tokens_per_day,
            cost_per_day: Money(cost_per_day),
            waiting_turns,
            ..
        } = *self;
        PersonLimits { turns_per_minute, turns_per_day, tokens_per_day, cost_per_day, waiting_turns }
    }

    /// What people with a role may do.
    pub fn of_role(&self, role: PersonRole) -> PersonLimits {
        let own = match role {
            PersonRole::Guest => self.guest,
            PersonRole::Member => self.member,
            PersonRole::Owner => self.owner,
        };
        own.or(self.general())
    }

    /// The budgets of agents.
    pub fn budgets(&self) -> impl Iterator<Item = (&str, Budget)> {
        self.agents.iter().map(|(name, budget)| {
            let AgentBudget { tokens_per_day, cost_per_day: Money(micros) } = *budget;
            (name.as_str(), Budget { tokens: tokens_per_day.map(u64::from), micros })
        })
    }

    /// Limits of money need prices, and those of people prices in one currency. `people` are their own limits.
    pub(crate) fn check_with(
        &self,
        agents: &BTreeMap<String, Agent>,
        people: impl IntoIterator<Item = SomeLimits>,
        checks: &mut Checks<'_>,
    ) {
        for (name, agent) in agents {
            if self.agents.get(name).is_some_and(|budget| budget.cost_per_day.is_some()) && agent.price.is_none() {
                let key = checks.key(&["agents", name, "cost_per_day"]);
                let members = agent.members.iter().filter_map(|member| Some((member, agents.get(member)?)));
                let unpriced = members.clone().find(|(_, member)| member.price.is_none());
                let unpriced = unpriced.map(|(member, _)| member).or(agent.members.is_empty().then_some(name));
                let prices = members.filter_map(|(_, member)| Some(member.price?.currency)).collect::<Vec<_>>();
                if let Some(unpriced) = unpriced {
                    checks.wrong(key, format!("needs what the agent's tokens cost: set agents.{unpriced}.price"));
                } else if prices.windows(2).any(|two| two[0] != two[1]) {
                    checks.wrong(key, "needs prices of the agent's members in one currency, and there are several");
                }
            }
        }
        let of_roles = [self.guest, self.member, self.owner];
        let is_limited = self.cost_per_day.is_some()
            || of_roles.into_iter().chain(people).any(|limits| limits.cost_per_day.is_some_and(Money::is_some));
        let currencies: Vec<Currency> = agents.values().filter_map(|agent| Some(agent.price?.currency)).collect();
        if is_limited && currencies.is_empty() {
            checks.wrong(checks.key(&["cost_per_day"]), "needs what an agent's tokens cost: set the price of an agent");
        }
        if is_limited && currencies.windows(2).any(|two| two[0] != two[1]) {
            checks
                .wrong(checks.key(&["cost_per_day"]), "needs prices of agents in one currency, and there are several");
        }
    }
}

/// What an agent may use of a day.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number::between_option::<_, 1, MOST_TOKENS>")]
    pub tokens_per_day: Option<u32>,
    #[serde(skip_serializing_if = "Money::is_none")]
    pub cost_per_day: Money,
}

/// An amount of money, in millionths of a currency that is said elsewhere; `None` is `"off"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Money(pub Option<u64>);

impl Money {
    const MOST: f64 = 1e6;

    const fn is_some(self) -> bool {
        self.0.is_some()
    }

    const fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;
        impl Visitor<'_> for Amount {
            type Value = Money;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an amount from 0.000001 to 1000000, or \"off\"")
            }

            #[expect(clippy::cast_precision_loss, reason = "far from the limits, or refused")]
            fn visit_i64<E: Error>(self, amount: i64) -> Result<Money, E> {
                self.visit_f64(amount as f64)
            }

            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the limits")]
            fn visit_f64<E: Error>(self, amount: f64) -> Result<Money, E> {
                let micros = (amount * 1e6).round();
                let is_within = (1.0..=Money::MOST * 1e6).contains(&micros);
                is_within
                    .then_some(Money(Some(micros as u64)))
                    .ok_or_else(|| E::invalid_value(Unexpected::Float(amount), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Money, E> {
                if text == "off" { Ok(Money(None)) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
            }
        }
        deserializer.deserialize_any(Amount)
    }
}

impl Serialize for Money {
    #[expect(clippy::cast_precision_loss, reason = "no limit is larger than 10^12 millionths")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(micros) => serializer.serialize_f64(micros as f64 / 1e6),
            None => serializer.serialize_str("off"),
        }
    }
}

/// Limits; those that are not set are as elsewhere.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SomeLimits {
    turns_per_minute: Option<Limit<100_000>>,
    waiting_turns: Option<Limit<100_000>>,
    turns_per_day: Option<Limit<1_000_000>>,
    tokens_per_day: Option<Limit<MOST_TOKENS>>,
    cost_per_day: Option<Money>,
}

/// A limit; `None`: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
struct Limit<const MOST: u32>(
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, MOST>")]
    Option<u32>,
);

impl SomeLimits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These limits; in place of those that are not set, the `other` ones.
    pub fn or(self, other: PersonLimits) -> PersonLimits {
        PersonLimits {
            turns_per_minute: self.turns_per_minute.map_or(other.turns_per_minute, |Limit(limit)| limit),
            waiting_turns: self.waiting_turns.map_or(other.waiting_turns, |Limit(limit)| limit),
            turns_per_day: self.turns_per_day.map_or(other.turns_per_day, |Limit(limit)| limit),
            tokens_per_day: self.tokens_per_day.map_or(other.tokens_per_day, |Limit(limit)| limit),
            cost_per_day: self.cost_per_day.map_or(other.cost_per_day, |Money(limit)| limit),
        }
    }
}
