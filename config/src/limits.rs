//! `[limits]`: what one person may do.

use rejoinder_core::{PersonLimits, PersonRole};
use serde::{Deserialize, Serialize};

use crate::number;

const MOST_TOKENS: u32 = 4_000_000_000;

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
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
    /// What differs for people with these roles.
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub guest: SomeLimits,
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub member: SomeLimits,
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    pub owner: SomeLimits,
}

impl Limits {
    /// What people may do whose role is not known, or has no limits of its own.
    pub const fn general(&self) -> PersonLimits {
        let Self { turns_per_minute, turns_per_day, tokens_per_day, waiting_turns, .. } = *self;
        PersonLimits { turns_per_minute, turns_per_day, tokens_per_day, waiting_turns }
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
}

/// Limits; those that are not set are as elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SomeLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_per_minute: Option<Limit<100_000>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_turns: Option<Limit<100_000>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_per_day: Option<Limit<1_000_000>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_day: Option<Limit<MOST_TOKENS>>,
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
        }
    }
}
