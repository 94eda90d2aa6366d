//! Explains how an event would be routed: with the functions that route it.

use std::sync::Arc;

use rejoinder_guard::{Expectation, Policy};

use super::{Route, language, route, rule};
use crate::{
    model::{Handler, InboundEvent, Language, PersonRole, QueueMode, SessionChoice, Settings},
    people::People,
};

/// How an event would be routed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteExplanation {
    /// The rules in their order.
    pub rules: Vec<ExplainedRule>,
    /// The name and the role of the sender, if they are known.
    pub person: Option<(String, PersonRole)>,
    /// Whether the sender may write.
    pub access: RouteAccess,
    /// Who would handle the turn, and what would be owed; `None`: no turn is opened.
    pub handler: Option<(Handler, Expectation)>,
    /// What was chosen for the session, and holds.
    pub chosen: SessionChoice,
    /// The language of what the gateway would say; `None`: the templates have no languages.
    pub language: Option<Language>,
    /// What would happen to a message while a turn runs, if nobody has chosen it for the conversation.
    pub queue: QueueMode,
    /// The deadlines and the ladder.
    pub policy: Policy,
}

/// A rule, and whether it holds for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRule {
    /// The name of the rule.
    pub name: Arc<str>,
    /// Whether it holds.
    pub verdict: RuleVerdict,
}

/// Whether a rule holds for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// It is the first whose conditions are all met.
    Holds,
    /// A condition is not met.
    Fails {
        /// The condition as in the configuration.
        condition: String,
        /// What is so instead: the rest of a sentence that begins with "it".
        found: String,
    },
    /// An earlier rule holds.
    NotReached,
}

/// Whether a sender may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// They may.
    Granted,
    /// They may not, and are told so.
    DeniedWithNotice,
    /// They may not, and are given a code to be let in with.
    DeniedWithCode,
    /// They may not, and are told nothing.
    Denied,
}

pub(crate) fn explain(mut event: InboundEvent, settings: &Settings, people: &People) -> RouteExplanation {
    let known = &people.known();
    let holds = rule(&event, settings, known);
    let mut is_reached = true;
    let explained = settings.rules.iter().map(|rule| {
        let verdict = match rule.unmet(&event, known) {
            _ if !is_reached => RuleVerdict::NotReached,
            Some(condition) => {
                RuleVerdict::Fails { condition: condition.to_string(), found: condition.found(&event, known) }
            }
            None => RuleVerdict::Holds,
        };
        is_reached &= verdict != RuleVerdict::Holds;
        ExplainedRule { name: Arc::clone(&rule.name), verdict }
    });
    let rules = explained.collect();
    event.language = language(&event, holds, people);
    let (access, handler) = match route(&event, holds, settings, people) {
        Route::To { handler, expectation } => (RouteAccess::Granted, Some((handler, expectation))),
        Route::Stranger => (RouteAccess::DeniedWithNotice, None),
        Route::Asks => (RouteAccess::DeniedWithCode, None),
        Route::NoTurn => (RouteAccess::Denied, None),
    };
    let holds = holds.map(|rule| &*rule.name);
    RouteExplanation {
        rules,
        person: event.known_as(known).map(|(role, name)| (name.to_owned(), role)),
        access,
        handler,
        chosen: SessionChoice::default(),
        language: settings.templates.language(&event.conversation.channel, event.language),
        queue: settings.queue_mode(&event, holds),
        policy: settings.policy_for(&event, holds).into_owned(),
    }
}
