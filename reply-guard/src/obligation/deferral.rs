//! Deferrals: the gateway's own while a run takes long, and the agent's promise to answer later.

use super::{
    candidate::Candidate,
    deadlines::first_signal_by,
    decision::{Effect, EventContext, Suppressed},
    record::{Debt, FirstSignal, LateAnswerState, Obligation, Work},
    state::ObligationState,
};
use crate::{Body, Cause, End, Policy, Timestamp, Via, outcome::NormalisedOutcome};

impl Obligation {
    /// How often an agent may still defer the turn.
    pub const fn deferrals_left(&self, policy: &Policy) -> u32 {
        policy.max_deferrals.saturating_sub(self.agents_deferrals())
    }

    /// Whether the turn is deferred and waits for the time that the agent named: [`Event::Hurried`](crate::Event::Hurried) has
    /// the agent asked now.
    pub fn may_be_hurried(&self) -> bool {
        self.asked_at().is_some() && !self.held
    }

    /// Whether an answer is still to come and no run is in flight or waited for: the turn waits for the time that a deferral
    /// named, or for an approval.
    pub fn is_put_off(&self) -> bool {
        self.asked_at().is_some() || (self.decide_by().is_some() && !self.is_suspended())
    }

    /// When the agent is asked for what it deferred, also while its note is on its way. `None` while it runs or waits for its
    /// run, and if it deferred nothing.
    pub fn asked_at(&self) -> Option<Timestamp> {
        match &self.state {
            _ if self.work != Work::Idle => None,
            ObligationState::Deferred => self.due(),
            // Its note is on its way, or waits for the result of an attempt.
            ObligationState::Claimed(claim) => match &claim.pending {
                None => claim.due,
                Some(Candidate::Outcome(NormalisedOutcome::Defer { due, .. })) if claim.is_deferral() => Some(*due),
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// A deferral by the agent, due within bounds, or the failure of an agent that defers too often.
    pub(super) fn bounded_deferral(
        &self,
        note: Option<String>,
        due: Timestamp,
        context: &EventContext<'_>,
    ) -> Candidate {
        if self.deferrals_left(context.policy) == 0 {
            let why = format!("deferred {} times already", self.agents_deferrals());
            return Candidate::Failed { cause: Cause::Timeout, why };
        }
        let due = due.clamp(context.now, context.now + context.policy.max_defer);
        Candidate::Outcome(NormalisedOutcome::Defer { note, due })
    }

    /// The agent has promised the answer for `due`.
    pub(super) fn count_promise(&mut self, due: Timestamp) {
        // A run that ends in a deferral does not count towards `max_runs`.
        self.uncount_run();
        self.deferrals.agents += 1;
        self.deferrals.named = Some(due);
    }

    pub(super) fn claim_deferral(&mut self, body: Body, due: Timestamp, via: Via, context: &mut EventContext<'_>) {
        self.end_soft_deadline();
        self.claim(body, via, End::Deferral, context);
        if let Some(claim) = self.in_flight_mut() {
            claim.due = Some(due);
        }
    }

    /// The gateway does not defer by itself any more, before it is to say something first again.
    pub(super) const fn end_soft_deadline(&mut self) {
        if let Some(first) = &mut self.first_signal {
            first.soft_at = None;
        }
    }

    /// Whether the gateway may defer by itself. What the agent defers does not count.
    pub(super) const fn may_defer_itself(&self, policy: &Policy) -> bool {
        self.deferrals.own < policy.max_deferrals
    }

    /// The gateway defers by itself.
    pub(super) fn defer_itself(&mut self, due: Timestamp, context: &mut EventContext<'_>) {
        self.deferrals.own += 1;
        if !self.defer_by_draft(due, context) {
            self.claim_deferral(Body::Defer { note: None, due }, due, Via::Deferral, context);
        }
    }

    /// Where the draft shows the answer so far, it is the deferral: another text would replace it. `false` if none does.
    fn defer_by_draft(&mut self, due: Timestamp, context: &mut EventContext<'_>) -> bool {
        let is_open = self.state == ObligationState::Open;
        let draft = self.draft_message().filter(|_| is_open && self.may_draft());
        let Some(message) = draft.map(str::to_owned) else { return false };
        self.deferral_shown(due, vec![message]);
        let reason = "the answer so far is in the chat".to_owned();
        context.emit(Effect::Suppress(Suppressed { what: End::Deferral, text: None, reason }));
        true
    }

    /// The person sees the deferral in these messages: the answer is a debt.
    pub(super) fn deferral_shown(&mut self, due: Timestamp, messages: Vec<String>) {
        self.debt = Some(Debt { due, messages, shown: self.shown_deferrals() + 1 });
        self.state = ObligationState::Deferred;
    }

    /// The person sees a part of the deferral in flight: an answer is owed, and takes the place of these messages.
    pub(super) fn deferral_begun(&mut self, mut messages: Vec<String>, context: &EventContext<'_>) {
        let claim = self.in_flight();
        let due = claim.and_then(|claim| claim.due).unwrap_or(context.now);
        if claim.is_some_and(|claim| claim.asks) {
            self.question_shown(&mut messages);
        }
        let shown = self.shown_deferrals();
        let debt = self.debt.get_or_insert(Debt { due, messages: Vec::new(), shown });
        // It may be an edit of an earlier deferral.
        let new: Vec<_> = messages.into_iter().filter(|message| !debt.messages.contains(message)).collect();
        debt.messages.extend(new);
    }

    /// The person sees a question in these messages, which stays in the chat: the answer takes the place of no message.
    pub(super) fn question_shown(&mut self, messages: &mut Vec<String>) {
        for message in messages.drain(..) {
            self.message_gone(&message);
        }
    }

    /// The rest of the deferral cannot be delivered. The person has read that an answer comes.
    pub(super) fn deferral_cut_short(&mut self) {
        if let Some(debt) = &mut self.debt {
            debt.shown += 1;
        }
    }

    /// Whether the claim in flight asks the person a question that nobody needs to answer any more.
    pub(super) fn asks_in_vain(&self) -> bool {
        let is_next_asked = self.pending().is_some_and(Candidate::is_approval);
        (self.decide_by().is_none() || is_next_asked) && self.in_flight().is_some_and(|claim| claim.asks)
    }

    /// A question that may have been seen is sent again, unless nobody needs to answer it before that.
    pub(super) fn let_question_go(&mut self) {
        let Some(claim) = self.in_flight_mut().filter(|claim| claim.asks) else { return };
        claim.attempted = false;
        self.deferral_lost(true);
    }

    /// Such a question was not sent, and is not sent again. An earlier attempt may have shown it, or a part of it.
    pub(super) fn end_question(&mut self, context: &mut EventContext<'_>) {
        let Some(claim) = self.in_flight_mut() else { return };
        claim.attempted = false;
        let (may_be_seen, is_begun, pending) = (claim.in_doubt, claim.partly, claim.pending.take());
        if may_be_seen {
            self.deferral_lost(true);
        }
        if is_begun {
            self.deferral_cut_short();
        }
        self.take_back_note(context);
        if let Some(pending) = pending {
            self.proceed(pending, context);
        }
    }

    /// A deferral arrived after its turn was cancelled: its messages are unfinished.
    pub(super) fn cancelled_deferral_shown(&mut self, claim: u32, messages: Vec<String>, context: &EventContext<'_>) {
        if self.late.take_if(|late| *late == LateAnswerState::Deferral(claim)).is_some() {
            self.debt = Some(Debt { due: context.now, messages, shown: self.shown_deferrals() });
        }
    }

    /// The person cannot be told that the agent answers later. The agent is asked at that time all the same.
    pub(super) fn deferral_not_shown(&mut self, due: Timestamp) {
        let (shown, messages) = (self.shown_deferrals(), self.debt.take().map(|debt| debt.messages));
        self.debt = Some(Debt { due, messages: messages.unwrap_or_default(), shown });
        self.state = ObligationState::Deferred;
    }

    pub(super) fn hurried(&mut self, context: &mut EventContext<'_>) {
        if self.may_be_hurried() {
            self.ask_again(context);
        }
    }

    /// The time has come at which the agent answers what it deferred: it is asked again.
    pub(super) fn ask_again(&mut self, context: &mut EventContext<'_>) {
        if let Some(Candidate::Outcome(NormalisedOutcome::Defer { note, due })) =
            self.take_pending(Candidate::is_deferral)
        {
            self.drop_note(note, due, context);
        }
        self.ask_now(context);
    }

    /// A note that waited for the result of an attempt is not sent any more: the agent has been asked by then.
    pub(super) fn note_too_late(&mut self, note: Option<String>, due: Timestamp, context: &mut EventContext<'_>) {
        self.drop_note(note, due, context);
        self.ask_now(context);
    }

    /// The agent's promise counts, and the person is not told.
    fn drop_note(&mut self, note: Option<String>, due: Timestamp, context: &mut EventContext<'_>) {
        self.count_promise(due);
        let dropped = Candidate::Outcome(NormalisedOutcome::Defer { note, due });
        dropped.suppress("the agent is asked before it could be sent".to_owned(), context);
    }

    fn ask_now(&mut self, context: &mut EventContext<'_>) {
        if self.may_run_again(context) {
            self.wait_for_next_run(context);
        } else {
            self.time_out("the debt fell due", context);
        }
    }

    /// What the turn waited for has come: it waits for the run that answers it.
    pub(super) fn wait_for_next_run(&mut self, context: &mut EventContext<'_>) {
        self.take_back_note(context);
        self.work = Work::Waiting;
        let due = context.now + context.policy.hard_deadline;
        self.due_dates().for_each(|date| *date = due);
        self.run_again(context);
    }

    /// Takes back what the person was to be told: it would not be true any more. A turn of which the person has seen no
    /// deferral is as one that was just accepted.
    pub(super) fn take_back_note(&mut self, context: &mut EventContext<'_>) {
        if self.in_flight().is_some_and(|claim| claim.is_deferral() && !claim.attempted) {
            self.withdraw(context);
        }
        if self.shown_deferrals() > 0 || self.in_flight().is_some() {
            return;
        }
        self.debt = None;
        self.reopen();
        self.expect_first_signal(context);
    }

    /// The time until the first signal begins now, if an answer is owed.
    pub(super) fn expect_first_signal(&mut self, context: &EventContext<'_>) {
        if self.is_owed() {
            let soft = context.policy.soft_deadline;
            let by = first_signal_by(soft, context.policy, context.now);
            self.first_signal = Some(FirstSignal { by, soft_at: soft.map(|soft| context.now + soft) });
        }
    }

    /// The due dates of the debt and of the deferral in flight.
    pub(super) fn due_dates(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let deferral = match &mut self.state {
            ObligationState::Claimed(claim) => claim.due.as_mut(),
            _ => None,
        };
        self.debt.as_mut().map(|debt| &mut debt.due).into_iter().chain(deferral)
    }
}
