//! `[guard.deadlines.<where>]`: deadlines of single platforms and channels.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::ChatKind;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::scope::{check_scope, scopes};
use crate::{
    check::Checks,
    duration::{self, HOUR},
};

/// The deadlines by scope: a channel (`webhook.siri`) or a platform (`webhook`).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ScopedDeadlines(BTreeMap<String, OfScope>);

/// The deadlines of one scope.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct OfScope {
    soft_deadline: Option<SoftDeadline>,
    hard_deadline: Option<HardDeadline>,
    direct: Option<Deadlines>,
    group: Option<Deadlines>,
}

/// Deadlines. What is `None` is as in the next wider scope.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deadlines {
    pub soft_deadline: Option<SoftDeadline>,
    pub hard_deadline: Option<HardDeadline>,
}

/// A soft deadline; `None`: the gateway sends no deferrals on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct SoftDeadline(
    #[serde(
        serialize_with = "duration::write_or_off",
        deserialize_with = "duration::between_or_off::<_, 10, { 24 * HOUR }>"
    )]
    pub Option<Duration>,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct HardDeadline(
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub  Duration,
);

impl ScopedDeadlines {
    /// The deadlines that are set for `channel` (`webhook.siri`): by the channel's own table, else by its platform's; each time
    /// those of the kind of chat come first.
    pub(super) fn of(&self, channel: &str, chat: ChatKind) -> Deadlines {
        let tables = scopes(channel).filter_map(|scope| self.0.get(scope)).flat_map(|scope| {
            let of_chat = match chat {
                ChatKind::Direct => scope.direct,
                ChatKind::Group => scope.group,
            };
            let general = Deadlines { soft_deadline: scope.soft_deadline, hard_deadline: scope.hard_deadline };
            of_chat.into_iter().chain([general])
        });
        tables.fold(Deadlines::default(), Deadlines::or)
    }

    /// Where both deadlines of a table, with those of `general` in place of what it does not set, are in the wrong order.
    pub(super) fn check(&self, general: Deadlines, checks: &mut Checks<'_>) {
        for (name, scope) in &self.0 {
            check_scope("deadlines", name, checks);
            let own = Deadlines { soft_deadline: scope.soft_deadline, hard_deadline: scope.hard_deadline };
            let key = checks.key(&["deadlines", name]);
            own.or(self.of(name, ChatKind::Direct)).or(general).check(&key, own, checks);
            for (chat, own) in [(ChatKind::Direct, scope.direct), (ChatKind::Group, scope.group)] {
                if let Some(own) = own {
                    self.of(name, chat).or(general).check(&key.name(chat.as_str()), own, checks);
                }
            }
        }
    }
}

impl Deadlines {
    /// These; in place of what they do not set, the `wider` ones.
    pub(crate) fn or(self, wider: Self) -> Self {
        Self {
            soft_deadline: self.soft_deadline.or(wider.soft_deadline),
            hard_deadline: self.hard_deadline.or(wider.hard_deadline),
        }
    }

    /// Whether a deferral would come too late.
    pub(crate) fn are_reversed(self) -> bool {
        let soft = self.soft_deadline.and_then(|SoftDeadline(soft)| soft);
        soft.zip(self.hard_deadline).is_some_and(|(soft, HardDeadline(hard))| soft >= hard)
    }

    /// Reports at `table`, which sets `own`, that these deadlines are in the wrong order.
    fn check(self, table: &crate::Key, own: Self, checks: &mut Checks<'_>) {
        if own != Self::default() && self.are_reversed() {
            let (name, what) = reversed(own);
            checks.wrong(table.name(name), what);
        }
    }
}

/// The key of `own` to report, if deadlines are in the wrong order, and what to say.
pub(crate) const fn reversed(own: Deadlines) -> (&'static str, &'static str) {
    match own.soft_deadline {
        Some(_) => ("soft_deadline", "must be shorter than the hard_deadline that holds here, or \"off\""),
        None => (
            "hard_deadline",
            "must be longer than the soft_deadline that holds here: also set that to less, or to \"off\"",
        ),
    }
}
