//! Giving a turn up: the person is told so.

use super::{
    candidate::Candidate,
    decision::{Effect, EventContext},
    record::Obligation,
    state::{ObligationState, Settlement},
};
use crate::{Body, CancelledBy, End, Reply, Via, is_blank};

/// The template that says that a turn is given up: `guard.templates.given_up`.
const GIVEN_UP: &str = "given_up";

impl Obligation {
    /// Gives the turn up. The result of an attempt that is under way is waited for: if it gets through, it is the answer.
    pub(super) fn given_up(&mut self, reason: String, say: Option<String>, context: &mut EventContext<'_>) {
        let may_be_seen = match &self.state {
            ObligationState::Settled(_) | ObligationState::Merged { .. } => return,
            ObligationState::Claimed(claim) if claim.is_cancelled() || matches!(claim.via, Via::GivenUp { .. }) => {
                return;
            }
            ObligationState::Undeliverable { .. } => return self.cancelled(CancelledBy::Operator(reason), context),
            ObligationState::Open | ObligationState::Deferred => false,
            ObligationState::Claimed(claim) => claim.partly || claim.in_doubt,
        };
        let was_held = std::mem::take(&mut self.held);
        self.stop_work(context);
        let candidate = Candidate::GivenUp { reason, say };
        if may_be_seen {
            self.wait_for_result(candidate, context);
            self.say_given_up_at_once(context);
        } else {
            self.end(candidate, context);
        }
        if was_held {
            // A draft that may be in the chat is still looked for.
            context.emit(Effect::Release);
        }
    }

    /// Says that the turn is given up, in place of a claim that may have been seen and is not sent any more. `false`: it is
    /// not given up.
    pub(super) fn say_given_up_at_once(&mut self, context: &mut EventContext<'_>) -> bool {
        let Some(Candidate::GivenUp { reason, say }) = self.take_pending(Candidate::is_given_up) else {
            return false;
        };
        if let Some(claim) = self.withdraw(context) {
            if claim.is_deferral() && claim.in_doubt {
                self.deferral_lost(claim.asks);
            } else if claim.is_partly_seen_answer() {
                self.forget_edited();
            }
        }
        self.say_given_up(reason, say, context);
        true
    }

    pub(super) fn say_given_up(&mut self, reason: String, say: Option<String>, context: &mut EventContext<'_>) {
        if !self.is_owed() || context.policy.only_agents_words {
            return self.settle(Settlement::Cancelled { by: CancelledBy::Operator(reason) });
        }
        let body = match say.filter(|say| !is_blank(say)) {
            Some(say) => Body::Reply(Reply::text(say)),
            None => Body::Say(GIVEN_UP.to_owned()),
        };
        self.end_soft_deadline();
        self.claim(body, Via::GivenUp { reason }, End::Cancel, context);
    }
}
