//! Values of the core as columns.

use std::{borrow::Cow, time::Duration};

use rejoinder_core::{
    Amends, Attachment, Author, ChatKind, Directed, EventKind, Expectation, InboundEvent, Obligation, Quote, Sender,
    Timestamp,
};
use serde::{Deserialize, Serialize};

/// The JSON column `details` of an event: the fields that have no column of their own.
#[derive(Serialize, Deserialize)]
pub(super) struct Details<'a> {
    pub(super) chat: ChatKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<Cow<'a, str>>,
    pub(super) sender: Cow<'a, Sender>,
    pub(super) kind: Cow<'a, EventKind>,
    pub(super) directed: Directed,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) attachments: Cow<'a, [Attachment]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) quoted: Option<Cow<'a, Quote>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forwarded: Option<Cow<'a, Author>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) patience: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) amends: Option<Amends>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) more_within: Option<Duration>,
}

impl<'a> Details<'a> {
    pub(super) fn of(event: &'a InboundEvent) -> Self {
        Self {
            chat: event.chat,
            message_id: event.message_id.as_deref().map(Cow::Borrowed),
            sender: Cow::Borrowed(&event.sender),
            kind: Cow::Borrowed(&event.kind),
            directed: event.directed,
            attachments: Cow::Borrowed(&event.attachments),
            quoted: event.quoted.as_ref().map(Cow::Borrowed),
            forwarded: event.forwarded.as_ref().map(Cow::Borrowed),
            patience: event.patience,
            amends: event.amends,
            more_within: event.more_within,
        }
    }
}

/// The columns that repeat parts of an obligation, for searches.
pub(super) struct ObligationColumns {
    pub(super) owed: bool,
    pub(super) state: &'static str,
    pub(super) work: Option<&'static str>,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) overdue_at: Option<Timestamp>,
    pub(super) ended: bool,
}

impl ObligationColumns {
    pub(super) fn of(obligation: &Obligation) -> Self {
        let work = if obligation.is_waiting() {
            Some("waiting")
        } else if obligation.is_running() {
            Some("running")
        } else {
            None
        };
        Self {
            owed: obligation.expectation() == Expectation::Answer,
            state: obligation.state().as_str(),
            work,
            wake_at: obligation.wake_at(),
            overdue_at: obligation.overdue_at(),
            ended: obligation.state().is_final(),
        }
    }
}
