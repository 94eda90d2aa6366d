//! The message that shows an answer while it is written, where drafts are messages.
//!
//! Such a message is sent like a signal: its delivery is stored before its first byte, and a lost response
//! or a crash is resolved in the same way. It settles nothing. The deferral and the answer take its place. Where nobody
//! can know whether it arrived, it is lost, as a deferral can be: the answer says that it may be a copy of something.

use serde::{Deserialize, Serialize};

use super::{
    Obligation, State, Work,
    decision::{Effect, Step},
};
use crate::{Cleared, Draft, Shim};

/// How far a draft's message has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Drafting {
    /// Its delivery is stored.
    Sending {
        /// Whether an attempt has begun.
        attempted: bool,
        /// Whether an attempt had an unknown result.
        in_doubt: bool,
    },
    /// It stands in the chat.
    Shown {
        /// The platform's id of it.
        message: String,
    },
    /// It, or a deferral, may stand in the chat, and nobody knows its id.
    Lost,
}

/// Where the next draft of a turn goes, on a platform where drafts are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftPlace<'a> {
    /// It is a new message: see [`Event::Draft`](crate::Event::Draft).
    New,
    /// It changes this message: an earlier draft, or the deferral.
    Message(&'a str),
    /// Nowhere: something else is on its way, or no run is in flight.
    Nowhere,
}

impl Obligation {
    /// Clears the text of a draft: only while a run is in flight and nothing final is on its way. What the
    /// shim would hold back or take out of `text`, the whole text so far, is not in it.
    #[must_use]
    pub fn clear_draft(&self, text: impl AsRef<str>) -> Option<Cleared<Draft>> {
        if !self.may_draft() {
            return None;
        }
        let text = Shim::default().push(text.as_ref());
        (!text.is_empty()).then(|| Cleared::new(Draft { text }))
    }

    /// Whether drafts may be shown: a run is in flight and nothing final is on its way.
    #[must_use]
    pub fn may_draft(&self) -> bool {
        self.work == Work::Running && self.is_undecided()
    }

    /// Where the next draft goes, where drafts are messages.
    #[must_use]
    pub fn draft_place(&self) -> DraftPlace<'_> {
        if !self.may_draft() {
            return DraftPlace::Nowhere;
        }
        match (&self.state, &self.draft) {
            (State::Deferred, _) => {
                let message = self.debt.as_ref().and_then(|debt| debt.messages.first());
                message.map_or(DraftPlace::Nowhere, |message| DraftPlace::Message(message))
            }
            (_, Some(Drafting::Shown { message })) => DraftPlace::Message(message),
            (State::Open, None) => DraftPlace::New,
            _ => DraftPlace::Nowhere,
        }
    }

    /// The message that shows the latest draft.
    #[must_use]
    pub fn draft_message(&self) -> Option<&str> {
        match &self.draft {
            Some(Drafting::Shown { message }) => Some(message),
            Some(Drafting::Sending { .. } | Drafting::Lost) | None => None,
        }
    }

    /// The messages that stand in the chat and are no signal: the draft, and the deferral.
    pub fn unfinished_messages(&self) -> impl Iterator<Item = &str> {
        let deferral = self.debt.iter().flat_map(|debt| &debt.messages).map(String::as_str);
        let draft = self.draft_message().filter(|draft| !deferral.clone().any(|message| message == *draft));
        deferral.clone().chain(draft)
    }

    /// Whether a draft or a deferral may stand in the chat that nothing can take the place of: the answer may look
    /// like a second one.
    #[must_use]
    pub fn has_lost_message(&self) -> bool {
        self.draft == Some(Drafting::Lost)
    }

    pub(super) fn deferral_lost(&mut self) {
        self.draft.get_or_insert(Drafting::Lost);
    }

    /// Whether the draft's delivery is the one to send.
    #[must_use]
    pub const fn is_draft_wanted(&self) -> bool {
        matches!(self.draft, Some(Drafting::Sending { .. }))
    }

    pub(super) fn draft(&mut self, text: &str, step: &mut Step<'_>) {
        if self.draft_place() == DraftPlace::New
            && let Some(draft) = self.clear_draft(text)
        {
            self.draft = Some(Drafting::Sending { attempted: false, in_doubt: false });
            step.emit(Effect::Draft(draft));
        }
    }

    pub(super) const fn draft_attempted(&mut self) {
        if let Some(Drafting::Sending { attempted, .. }) = &mut self.draft {
            *attempted = true;
        }
    }

    /// A draft that did not go out is not tried again: the next one has more text.
    pub(super) fn draft_not_sent(&mut self, step: &mut Step<'_>) {
        if let Some(Drafting::Sending { in_doubt: false, .. }) = self.draft {
            self.take_back_draft(step);
        }
    }

    pub(super) fn draft_shown(&mut self, messages: Vec<String>) {
        if self.is_draft_wanted() {
            self.draft = messages.into_iter().next().map(|message| Drafting::Shown { message });
        }
    }

    /// It will not be sent again.
    pub(super) fn draft_ended(&mut self) {
        if let Some(Drafting::Sending { in_doubt, .. }) = self.draft {
            self.draft = in_doubt.then_some(Drafting::Lost);
        }
    }

    pub(super) fn draft_lost(&mut self, idempotent: bool, step: &mut Step<'_>) {
        let Some(Drafting::Sending { in_doubt, .. }) = &mut self.draft else { return };
        if idempotent {
            // Only the platform knows whether it arrived, and which message it is.
            *in_doubt = true;
            step.emit(Effect::Resend { claim: Draft::CLAIM, labelled: false });
        } else {
            self.draft = Some(Drafting::Lost);
        }
    }

    /// A draft that has not gone out is of no use any more once a signal was claimed.
    pub(super) fn take_back_unsent_draft(&mut self, step: &mut Step<'_>) {
        let is_unsent = matches!(self.draft, Some(Drafting::Sending { attempted: false, in_doubt: false }));
        if is_unsent && self.state != State::Open {
            self.take_back_draft(step);
        }
    }

    fn take_back_draft(&mut self, step: &mut Step<'_>) {
        self.draft = None;
        step.emit(Effect::Withdraw { claim: Draft::CLAIM });
    }
}
