//! Climbing the fallback ladder, and giving up.

use super::{
    decision::{Effect, EventContext},
    record::{Climb, Obligation, Runs, Work},
    state::ObligationState,
};
use crate::{Body, Cause, End, Rung, Via};

/// The template that says that the rest of an answer could not be sent: `guard.templates.cut_off`.
const CUT_OFF: &str = "cut_off";

impl Obligation {
    /// Takes the next rung. The first cause of the climb selects the rungs, also when later rungs fail.
    pub(super) fn climb(&mut self, cause: Cause, why: &str, context: &mut EventContext<'_>) {
        let policy = context.policy;
        let climb =
            self.climb.get_or_insert_with(|| Climb { cause, why: why.to_owned(), rungs: policy.rungs(cause), next: 0 });
        let cause = climb.cause;
        let Some(rung) = climb.rungs.get(climb.next).cloned() else {
            let reason = if climb.next == 0 {
                format!("{cause}: {why}; the ladder has no rung for it")
            } else {
                format!("{cause}: {}; every rung failed, the last with: {why}", climb.why)
            };
            return self.give_up(reason, context);
        };
        climb.next += 1;
        let body = match &rung {
            Rung::Handoff(agent) => {
                // A late run ends: one agent works on a turn at a time.
                self.stop_work(context);
                self.runs = Runs { handoff: Some(agent.clone()), ..Runs::default() };
                self.work = Work::Waiting;
                self.reopen();
                if let Some(debt) = &mut self.debt {
                    debt.due = debt.due.max(context.now + context.policy.hard_deadline);
                }
                return self.run_again(context);
            }
            Rung::Clarify(question) => Body::Ask(question.clone()),
            Rung::Say(template) => Body::Say(template.clone()),
            Rung::React(emoji) => Body::React(emoji.clone()),
        };
        if self.work.is_before_run() {
            self.work = Work::Idle;
        }
        let rank = if cause == Cause::Timeout { End::Deadline } else { End::Failure };
        self.claim(body, Via::Fallback { cause, rung }, rank, context);
    }

    /// Claims the template that says that an answer was cut off. No rung is left after it.
    pub(super) fn claim_cut_off_notice(&mut self, why: &str, context: &mut EventContext<'_>) {
        if context.policy.only_agents_words {
            return self.give_up(why.to_owned(), context);
        }
        let cause = self.climb.as_ref().map_or(Cause::Refused, |climb| climb.cause);
        self.climb = Some(Climb { cause, why: why.to_owned(), rungs: Vec::new(), next: usize::MAX });
        let rung = Rung::Say(CUT_OFF.to_owned());
        self.claim(Body::Say(CUT_OFF.to_owned()), Via::Fallback { cause, rung }, End::Failure, context);
    }

    /// Makes the turn a dead letter.
    pub(super) fn give_up(&mut self, reason: String, context: &mut EventContext<'_>) {
        self.stop_work(context);
        self.note_undelivered();
        if let Some(pending) = self.take_pending(|_| true) {
            pending.suppress(reason.clone(), context);
        }
        self.held = false;
        self.state = ObligationState::Undeliverable { reason: reason.clone() };
        context.emit(Effect::DeadLetter { reason });
    }
}
