//! A run that asks for an approval and waits for it.

use rejoinder_guard::{ApprovalRequest, Event, Outcome};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Worker, bounded};
use crate::{
    base::pauses,
    events::Run,
    ledger::trigger::Trigger,
    model::{AgentApproval, ApprovalState, TurnRecord},
    ports::StoreError,
};

/// Waits for what became of an approval.
pub(super) type Question = oneshot::Sender<Result<AgentApproval, String>>;

impl Worker {
    /// Has the approvers asked. Returns whom to answer once it is decided; `None` if that was done at once.
    pub(super) async fn ask(
        &self,
        turn: &mut TurnRecord,
        run: &Run,
        request: ApprovalRequest,
        question: Question,
    ) -> Option<Question> {
        let outcome = bounded(Outcome::Approval(request));
        let at_once = self.decided_at_once(&outcome, turn, run).await;
        let Outcome::Approval(request) = outcome else { return None };
        let action = request.action.clone();
        let (event, trigger) = match at_once {
            Some(at_once) => (Event::SuspendedByRule(request), Trigger::Asked(at_once)),
            None => (Event::Suspended(request), Trigger::Event),
        };
        let decided = self.ledger.decide_until_stored(turn, event, trigger).await;
        let is_asked = decided.is_some_and(|decided| decided.asked);
        let answer = match at_once {
            _ if !is_asked => Err("nobody is asked: it asks too often, or the turn has its answer".to_owned()),
            None => return Some(question),
            Some(at_once) => Ok(AgentApproval {
                action,
                state: ApprovalState::of_decision(at_once.approves()),
                by: Some(at_once.by()),
                note: at_once.note(),
            }),
        };
        // Fails if the runtime does not wait any longer.
        let _ = question.send(answer);
        None
    }

    /// Tells a run what became of the approval that it waits for. `false` if it waits no longer, or is stopped first.
    pub(super) async fn answer(
        &self,
        turn: &mut TurnRecord,
        question: &mut Option<Question>,
        stop: &CancellationToken,
    ) -> bool {
        loop {
            let read = async {
                let asked = self.inputs.asked(turn.id).await?;
                Ok::<_, StoreError>((asked, self.ledger.turn(turn.id).await?))
            };
            match read.await {
                Ok((mut asked, now)) => {
                    *turn = now;
                    let answer = asked.pop().ok_or_else(|| "what became of it is not stored any more".to_owned());
                    return question.take().is_some_and(|question| question.send(answer).is_ok());
                }
                Err(error) => warn!(turn = %turn.id, %error, "cannot read what became of an approval, retrying"),
            }
            let may_read = tokio::select! {
                () = stop.cancelled() => false,
                goes_on = self.lifecycle.pause(pauses::READ_AGAIN) => goes_on,
            };
            if !may_read {
                return false;
            }
        }
    }
}
