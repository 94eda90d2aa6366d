//! Drafts on platforms where a draft is a message, which shows the answer while it is written.
//!
//! The message is sent like a signal: its delivery is stored before its first byte, and a lost response or a crash is
//! resolved in the same way. It settles nothing. The deferral and the answer replace it. When the platform cannot say
//! whether it arrived, it is lost, as a deferral can be: the answer gets a label.

use super::{
    decision::{Effect, EventContext},
    record::{Drafting, Obligation},
    state::ObligationState,
};
use crate::{Cleared, Draft, Shim};

/// Where the next draft of a turn goes, on a platform where drafts are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftTarget<'a> {
    /// Into a new message: see [`Event::Draft`](crate::Event::Draft).
    New,
    /// Into this message, which it edits: an earlier draft, or the deferral.
    Message(&'a str),
    /// It is not shown: no run is in flight, a delivery is in flight, or an earlier draft was lost.
    Nowhere,
}

impl Obligation {
    /// Clears a draft while [`may_draft`](Self::may_draft); `None` when nothing is left to show. `text` is the whole
    /// text so far; the draft leaves out what the [`Shim`] holds back or removes.
    #[must_use]
    pub fn clear_draft(&self, text: impl AsRef<str>) -> Option<Cleared<Draft>> {
        if !self.may_draft() {
            return None;
        }
        let text = Shim::default().push(text.as_ref());
        (!text.is_empty()).then(|| Cleared::new(Draft { text }))
    }

    /// Whether drafts may be shown: a run is in flight, at most a deferral has been claimed, and the turn is not held.
    pub fn may_draft(&self) -> bool {
        self.runs_in_time() && self.is_undecided() && !self.held
    }

    /// Where the next draft goes, on a platform where drafts are messages.
    pub fn draft_target(&self) -> DraftTarget<'_> {
        if !self.may_draft() {
            return DraftTarget::Nowhere;
        }
        match (&self.state, &self.draft) {
            (ObligationState::Deferred, _) => {
                let message = self.debt.as_ref().and_then(|debt| debt.messages.first());
                message.map_or(DraftTarget::Nowhere, |message| DraftTarget::Message(message))
            }
            (_, Some(Drafting::Shown { message })) => DraftTarget::Message(message),
            (ObligationState::Open, None) => DraftTarget::New,
            _ => DraftTarget::Nowhere,
        }
    }

    /// The platform's id of the message that shows the draft.
    pub fn draft_message(&self) -> Option<&str> {
        match &self.draft {
            Some(Drafting::Shown { message }) => Some(message),
            Some(Drafting::Sending { .. } | Drafting::Lost) | None => None,
        }
    }

    /// Platform ids of the messages in the chat that are not the answer: the deferral's, then the draft's.
    pub fn unfinished_messages(&self) -> impl Iterator<Item = &str> {
        let deferral = self.debt.iter().flat_map(|debt| &debt.messages).map(String::as_str);
        let draft = self.draft_message().filter(|draft| !deferral.clone().any(|message| message == *draft));
        deferral.clone().chain(draft)
    }

    /// A message is not in the chat any more: no signal replaces it, and nobody removes it.
    pub(super) fn message_gone(&mut self, message: &str) {
        if let Some(debt) = &mut self.debt {
            debt.messages.retain(|one| one != message);
        }
        if self.draft_message() == Some(message) {
            self.draft = None;
        }
    }

    /// Whether a draft or a deferral may be in the chat that no edit can replace: the answer may look like a second
    /// one.
    pub fn has_lost_message(&self) -> bool {
        self.draft == Some(Drafting::Lost)
    }

    /// The platform does not say whether a deferral is in the chat. `asks`: it is a question, which no answer takes the place of.
    pub(super) fn deferral_lost(&mut self, asks: bool) {
        self.deferrals.may_be_seen = true;
        if !asks {
            self.draft.get_or_insert(Drafting::Lost);
        }
    }

    /// Whether the draft's delivery is still to be sent.
    pub const fn is_draft_pending(&self) -> bool {
        matches!(self.draft, Some(Drafting::Sending { .. }))
    }

    /// Whether the draft's first message is on its way.
    pub(super) const fn is_draft_attempted(&self) -> bool {
        matches!(self.draft, Some(Drafting::Sending { attempted: true, .. } | Drafting::Sending { in_doubt: true, .. }))
    }

    pub(super) fn draft(&mut self, text: &str, context: &mut EventContext<'_>) {
        if self.draft_target() == DraftTarget::New
            && let Some(draft) = self.clear_draft(text)
        {
            self.draft = Some(Drafting::Sending { attempted: false, in_doubt: false });
            context.emit(Effect::Draft(draft));
        }
    }

    pub(super) const fn draft_attempted(&mut self) {
        if let Some(Drafting::Sending { attempted, .. }) = &mut self.draft {
            *attempted = true;
        }
    }

    /// A draft that was not sent is not retried: the next one has more text.
    pub(super) fn draft_not_sent(&mut self, context: &mut EventContext<'_>) {
        if let Some(Drafting::Sending { in_doubt: false, .. }) = self.draft {
            self.withdraw_draft(context);
        }
    }

    pub(super) fn draft_shown(&mut self, messages: Vec<String>) {
        if self.is_draft_pending() {
            self.draft = messages.into_iter().next().map(|message| Drafting::Shown { message });
        }
    }

    /// The draft was refused or expired: it is not sent again.
    pub(super) fn draft_ended(&mut self) {
        if let Some(Drafting::Sending { in_doubt, .. }) = self.draft {
            self.draft = in_doubt.then_some(Drafting::Lost);
        }
    }

    pub(super) fn draft_lost(&mut self, idempotent: bool, context: &mut EventContext<'_>) {
        let Some(Drafting::Sending { in_doubt, .. }) = &mut self.draft else { return };
        if idempotent {
            // The resend finds out whether it arrived, and under which id.
            *in_doubt = true;
            context.emit(Effect::Resend { claim: Draft::CLAIM, labelled: false });
        } else {
            self.draft = Some(Drafting::Lost);
        }
    }

    /// Withdraws a draft that was not attempted, if the turn has left the open state.
    pub(super) fn withdraw_unsent_draft(&mut self, context: &mut EventContext<'_>) {
        let is_unsent = matches!(self.draft, Some(Drafting::Sending { attempted: false, in_doubt: false }));
        if is_unsent && self.state != ObligationState::Open {
            self.withdraw_draft(context);
        }
    }

    fn withdraw_draft(&mut self, context: &mut EventContext<'_>) {
        self.draft = None;
        context.emit(Effect::Withdraw { claim: Draft::CLAIM });
    }
}
