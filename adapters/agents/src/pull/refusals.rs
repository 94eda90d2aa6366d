//! What is recorded of an outcome that is not used: whose it was, of what kind, and why. None of its words. A worker has nothing recorded
//! with a turn that it never had.

use rejoinder_core::{AgentTurn, Refusal, TurnId};

use super::{
    agent::{Caller, Pull},
    desk::Asking,
    lease::LeaseNumber,
    leases::NotHeld,
};

impl Pull {
    /// Has an outcome recorded that came with a lease which is not good. What has not the form of a lease is none, and is only logged.
    pub(super) fn record(&self, turn: TurnId, lease: &str, caller: &Caller<'_>, why: NotHeld, what: &str) {
        if let Some(number) = LeaseNumber::of(lease) {
            self.note(turn, Some(lease), caller, why, &format!("{what}, with the lease {number}"));
        }
    }

    /// Has an answer recorded whose body was not read, because it is too large for a turn that no worker has.
    pub(super) fn record_unread(&self, turn: TurnId, caller: &Caller<'_>, why: NotHeld) {
        self.note(turn, None, caller, why, "what is too large to be read");
    }

    fn note(&self, turn: TurnId, lease: Option<&str>, caller: &Caller<'_>, why: NotHeld, what: &str) {
        let takes = |turn: &AgentTurn| caller.takes(&turn.place.conversation.channel);
        let asking = Asking { worker: &caller.worker, takes: &takes };
        // If not yet, the worker sends it again.
        if matches!(why, NotHeld::NotYet | NotHeld::Elsewhere) || !self.desk.had(turn, lease, &asking) {
            return;
        }
        let (agent, name) = (&self.name, &caller.worker.name);
        let worker = if caller.worker.has_own_token {
            format!("the worker `{name}` of `{agent}`")
        } else {
            format!("a worker of `{agent}` at {name}")
        };
        self.refusals.note(Refusal { turn, detail: format!("{what}, from {worker}: {why}") });
    }
}
