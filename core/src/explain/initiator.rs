//! Who began a turn.

use std::fmt;

use crate::model::{EventKind, InboundEvent, Sender, SenderKind};

/// Who began a turn, by the names that operators know them by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator<'a> {
    /// Somebody wrote, or a program that speaks for them.
    Person,
    /// An operator with the token of this name had a message sent.
    Operator(&'a str),
    /// A schedule.
    Schedule(&'a str),
    /// A trigger of `[triggers]`.
    Trigger(&'a str),
    /// An event that came in on this channel.
    Event(&'a str),
    /// Something is wrong with the gateway.
    Alert,
    /// The gateway itself: it asks, or tells.
    Gateway,
}

impl<'a> Initiator<'a> {
    /// Who began the turn of this event. The key of what the gateway begins tells.
    pub fn of(event: &'a InboundEvent) -> Self {
        let name = event.sender.id.as_str();
        if event.sender.kind != SenderKind::Operator {
            return Self::Person;
        }
        let is_own = matches!(
            event.kind,
            EventKind::PersonAsks { .. }
                | EventKind::LinkAsked { .. }
                | EventKind::ApprovalAsked { .. }
                | EventKind::Expired { .. }
        );
        let key = event.external_id.strip_prefix("operator:").unwrap_or_default();
        match key.split_once(':').map_or("", |(kind, _)| kind) {
            _ if is_own => Self::Gateway,
            "schedule" | "run" => Self::Schedule(name),
            "trigger" => Self::Trigger(name.strip_prefix("trigger:").unwrap_or(name)),
            "news" => Self::Event(name),
            "paired" | "turned-away" => Self::Gateway,
            _ if name == Sender::ALERTER => Self::Alert,
            _ => Self::Operator(name),
        }
    }

    /// The kind, in interfaces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Operator(_) => "operator",
            Self::Schedule(_) => "schedule",
            Self::Trigger(_) => "trigger",
            Self::Event(_) => "event",
            Self::Alert | Self::Gateway => "gateway",
        }
    }

    /// What it did, after "after".
    pub(super) fn began(self) -> String {
        match self {
            Self::Person => "it was accepted".to_owned(),
            Self::Operator(_) => format!("{self} sent it"),
            Self::Event(_) => format!("{self} came"),
            Self::Alert => format!("{self} was raised"),
            Self::Schedule(_) | Self::Trigger(_) | Self::Gateway => format!("{self} began it"),
        }
    }
}

impl fmt::Display for Initiator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("the person"),
            Self::Operator(name) => write!(f, "the operator `{name}`"),
            Self::Schedule(name) => write!(f, "the schedule `{name}`"),
            Self::Trigger(name) => write!(f, "the trigger `{name}`"),
            Self::Event(channel) => write!(f, "the event on `{channel}`"),
            Self::Alert => f.write_str("an alert"),
            Self::Gateway => f.write_str("the gateway"),
        }
    }
}
