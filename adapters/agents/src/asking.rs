//! What runtimes share that ask for approvals: what was decided. No I/O.

use rejoinder_core::{AgentApproval, ApprovalRequest, ApprovalState, as_stored, is_shortened};

/// Whether a decision allows a call.
#[must_use]
pub fn allows(decision: &AgentApproval) -> bool {
    decision.state == ApprovalState::Approved && !decision.is_used
}

/// What was decided about what a run asks for. A yes allows one call, a no holds for the whole run.
#[derive(Default)]
pub struct Decisions(Vec<AgentApproval>);

impl Decisions {
    /// Those that an agent has when its run begins.
    #[must_use]
    pub fn of(approvals: &[AgentApproval]) -> Self {
        let mut decisions = Self::default();
        for approval in approvals {
            decisions.add(approval.clone());
        }
        decisions
    }

    /// Keeps a decision for a call to come. A yes that is used is none.
    pub fn add(&mut self, decision: AgentApproval) {
        if decision.state != ApprovalState::Approved || allows(&decision) {
            self.0.push(decision);
        }
    }

    /// The latest decision of this request. A yes is taken out: it is for the call that follows. The no to a long request is found by the
    /// digest of it, too: which part of the details is stored may differ between versions.
    pub fn take(&mut self, request: &ApprovalRequest) -> Option<AgentApproval> {
        let stored = as_stored(request);
        let is_long = is_shortened(&stored);
        let has_digest =
            |decision: &AgentApproval| is_long && !allows(decision) && decision.request.action == stored.action;
        let index = self.0.iter().rposition(|decision| decision.request == stored || has_digest(decision))?;
        Some(if allows(&self.0[index]) { self.0.remove(index) } else { self.0[index].clone() })
    }

    /// Whether the same action was declined, whatever else the request said.
    #[must_use]
    pub fn declines(&self, request: &ApprovalRequest) -> bool {
        let stored = as_stored(request);
        self.0.iter().any(|decision| !allows(decision) && decision.request.action == stored.action)
    }

    /// Drops each yes that is among these: somebody else has read them.
    pub fn drop_read(&mut self, read: &[AgentApproval]) {
        self.0.retain(|decision| !(allows(decision) && read.contains(decision)));
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::conformance::runtime;

    use super::*;

    fn request() -> ApprovalRequest {
        ApprovalRequest::action("pay the rent")
    }

    fn decision(state: ApprovalState, is_used: bool) -> AgentApproval {
        AgentApproval { is_used, ..runtime::decision(&request(), state) }
    }

    #[test]
    fn a_yes_is_for_one_call_and_a_no_for_all() {
        let mut yes = Decisions::of(&[decision(ApprovalState::Approved, false)]);
        assert!(yes.take(&request()).is_some_and(|decision| allows(&decision)));
        assert_eq!(yes.take(&request()), None);

        let mut no = Decisions::of(&[decision(ApprovalState::Declined, false)]);
        for _ in 0..2 {
            assert!(no.take(&request()).is_some_and(|decision| !allows(&decision)));
        }
    }

    /// An earlier version has stored another part of its details.
    #[test]
    fn a_no_to_a_long_request_is_found_by_its_digest() {
        let long = |text: &str| ApprovalRequest { details: Some(text.repeat(3000)), ..request() };
        let stored = ApprovalRequest { details: Some("x".repeat(2000)), ..as_stored(&long("x")) };
        let take = |state, asked| {
            let decided = AgentApproval { request: stored.clone(), ..decision(state, false) };
            Decisions::of(&[decided]).take(&asked).map(|decision| decision.state)
        };

        assert_eq!(take(ApprovalState::Declined, long("x")), Some(ApprovalState::Declined));
        assert_eq!(take(ApprovalState::Declined, long("y")), None);
        assert_eq!(take(ApprovalState::Approved, long("x")), None);
    }

    /// Also one that is told in the middle of a run.
    #[test]
    fn a_yes_that_is_used_decides_nothing() {
        let used = decision(ApprovalState::Approved, true);
        let mut decisions = Decisions::of(std::slice::from_ref(&used));
        decisions.add(used);

        assert_eq!(decisions.take(&request()), None);
    }

    #[test]
    fn a_yes_that_somebody_else_has_read_is_dropped_and_a_no_stays() {
        let (yes, no) = (decision(ApprovalState::Approved, false), decision(ApprovalState::Declined, false));
        let mut decisions = Decisions::of(&[no.clone(), yes.clone()]);

        decisions.drop_read(&[no.clone(), yes]);

        assert_eq!(decisions.take(&request()), Some(no));
    }
}
