//! Decides what agents want to do.

use rejoinder_guard::{ApprovalRequest, Event, Timestamp};

use super::{Operations, remark_with};
use crate::{
    base::conflicts::decide_anew,
    events::{TurnEvents, subjects::subject_of},
    ledger::trigger::{DecidedApproval, Trigger},
    model::{
        Approval, ApprovalChange, ApprovalDecision, ApprovalFilter, ApprovalId, ApprovalState, ChannelId, LogEvent,
        NewLogEntry, TurnRecord,
    },
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::Remark,
};

impl Approval {
    /// The decision of somebody, whom the agent is told as `name`.
    pub(crate) fn decided(
        &self,
        turn: &TurnRecord,
        decision: ApprovalDecision,
        name: &str,
        by: &Actor,
        at: Timestamp,
    ) -> DecidedApproval {
        let state = ApprovalState::of_decision(decision.approves);
        let chosen = decision.option.and_then(|number| self.option(number)).map(|option| option.name.clone());
        let detail = remark_with(by, &chosen.as_ref().map(|name| format!(", with “{name}”")).unwrap_or_default());
        let is_question = self.request.choices.is_some();
        let (kind, action) =
            if is_question { ("answered", "answer_question") } else { (state.as_str(), state.audit_action()) };
        let (note, subject) = (by.reason.clone(), subject_of(turn));
        let event = LogEvent::ApprovalDecided { approval_id: Some(self.id), decision: state.as_str() };
        DecidedApproval {
            change: ApprovalChange::Decided { id: self.id, state, at, by: name.to_owned(), note, chosen },
            operation: operation(by, action, self.id, subject.clone(), at),
            remark: Remark { turn: turn.id, at, kind: kind.to_owned(), detail },
            log: NewLogEntry { at, subject, event },
        }
    }
}

impl Operations {
    /// The approvals that wait, or the latest of all.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<Approval>, OperationError> {
        Ok(self.approvals.list(filter).await?)
    }

    /// An approval on a channel that the caller may see, and the whole of its request if there is more of it and it was kept.
    pub async fn approval(
        &self,
        id: ApprovalId,
        may_see: impl FnOnce(&ChannelId) -> bool,
    ) -> Result<Option<(Approval, Option<ApprovalRequest>)>, OperationError> {
        let found = self.approvals.get(id).await?.filter(|it| may_see(&it.channel));
        let Some(approval) = found else { return Ok(None) };
        let whole = self.approvals.whole(&approval).await?;
        Ok(Some((approval, whole)))
    }

    /// The approvals that wait although nobody who is known may decide them.
    pub async fn approvals_without_approver(&self) -> Result<Vec<Approval>, OperationError> {
        if self.people.has_approver(&self.settings.get().approvals) {
            return Ok(Vec::new());
        }
        let now = self.clock.now();
        let waiting = self.approvals(ApprovalFilter::Waiting).await?;
        Ok(waiting.into_iter().filter(|approval| approval.is_open(now)).collect())
    }

    /// Decides what an agent wants to do. It runs again, and is told. The actor's reason is told to it as well.
    pub async fn decide(
        &self,
        id: ApprovalId,
        decision: impl Into<ApprovalDecision> + Send,
        by: Actor,
    ) -> Result<(), OperationError> {
        let decision = decision.into();
        Ok(decide_anew!(self.try_to_decide(id, decision, &by).await?)?)
    }

    /// `None` if the turn was changed meanwhile.
    async fn try_to_decide(
        &self,
        id: ApprovalId,
        decision: ApprovalDecision,
        by: &Actor,
    ) -> Result<Option<()>, OperationError> {
        let unknown = OperationError::Unknown("there is no approval with this id");
        let Some(approval) = self.approvals.get(id).await?.filter(|it| by.may(&it.channel)) else {
            return Err(unknown);
        };
        if !approval.is_open(self.clock.now()) {
            let by = approval.decided_by.map(|by| format!(", by {by}")).unwrap_or_default();
            let what = match approval.state {
                ApprovalState::Waiting => ApprovalState::Expired,
                state => state,
            };
            return Err(OperationError::Unfit(format!("it does not wait any more: it is {}{by}", what.as_str())));
        }
        if let Some(why) = approval.unfit(decision) {
            return Err(OperationError::Unfit(why));
        }
        let Some(turn) = self.store.turn(approval.turn).await? else { return Err(unknown) };
        let decided = approval.decided(&turn, decision, &by.name, by, self.clock.now());
        let mut inputs = [TurnEvents { turn, events: vec![Event::Decided] }];
        Ok(self.ledger.try_to_decide(&mut inputs, &Trigger::Approval(Box::new(decided))).await?.map(drop))
    }
}
