//! A run that asks for an approval and waits for it.

use std::{future::pending, time::Duration};

use rejoinder_guard::{ApprovalRequest, Event, Outcome};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    Worker,
    budgets::Rest,
    grace::GRACE,
    input::{NOBODY_TO_ASK, may_be_asked},
    question::{Answer, Left, Question, Wait},
};
use crate::{
    base::pauses,
    events::Run,
    ledger::trigger::Trigger,
    model::{AgentApproval, ApprovalState, TurnRecord},
    ports::StoreError,
    questions::request::{as_stored, whole},
};

impl Worker {
    /// Has the approvers asked, or the person. Returns what the run waits for; `None` if it was answered at once.
    pub(super) async fn ask(
        &self,
        turn: &mut TurnRecord,
        run: &Run,
        request: ApprovalRequest,
        taken_back: CancellationToken,
        answer: Answer,
    ) -> Option<Question> {
        let (request, whole) = (as_stored(&request), whole(&request));
        if request.choices.is_some() && !may_be_asked(&turn.event) {
            let _ = answer.send(Err(NOBODY_TO_ASK.to_owned()));
            return None;
        }
        let at_once = self.decided_at_once(&Outcome::Approval(request.clone()), turn, run).await;
        let event = match at_once {
            Some(_) => Event::SuspendedByRule(request.clone()),
            None => Event::Suspended(request.clone()),
        };
        let trigger = Trigger::Asked { at_once, whole, run: run.number };
        let decided = self.ledger.decide_until_stored(turn, event, trigger).await;
        let is_asked = decided.is_some_and(|decided| decided.asked);
        let told = match at_once {
            _ if !is_asked => Err("nobody is asked: it asks too often, or the turn has its answer".to_owned()),
            None => {
                let (handoff, since) = (turn.obligation.handoff().map(str::to_owned), self.clock.uptime());
                let taken_back = Some(taken_back);
                return Some(Question { request, answer, handoff, since, taken_back, given_up_at: None });
            }
            Some(at_once) => Ok(AgentApproval {
                request,
                state: ApprovalState::of_decision(at_once.approves()),
                by: Some(at_once.by()),
                note: at_once.note(),
                chosen: None,
                is_used: false,
            }),
        };
        // Fails if the runtime does not wait any longer.
        let _ = answer.send(told);
        None
    }

    /// How long a run has waited for what it asks.
    pub(super) fn waits(&self, question: Option<&Question>) -> Duration {
        question.map_or(Duration::ZERO, |question| self.clock.uptime().saturating_sub(question.since))
    }

    /// Returns when a run leaves its question.
    pub(super) async fn until_left(&self, question: &mut Option<Question>) -> Left {
        let Some(Question { request, answer, taken_back, given_up_at, .. }) = question else { return pending().await };
        // The run goes on without it, once there is a permit.
        let Some(token) = taken_back else { return pending().await };
        let is_given_up = async {
            if given_up_at.is_none() {
                answer.closed().await;
            }
            let since = *given_up_at.get_or_insert_with(|| self.clock.now());
            self.clock.sleep((since + GRACE).since(self.clock.now())).await;
        };
        tokio::select! {
            biased;
            () = token.cancelled() => {
                *taken_back = None;
                Left::TakenBack
            }
            () = is_given_up => Left::GivenUp(request.clone()),
        }
    }

    /// Stores that a run does not need to know any more what it asked for.
    pub(super) async fn take_back(&self, turn: &mut TurnRecord, run: &Run, question: Option<&Question>) {
        let agent = question.and_then(|question| question.handoff.clone());
        let taken_back = Event::TakenBack { agent, attempt: run.attempt };
        self.ledger.decide_until_stored(turn, taken_back, Trigger::Event).await;
    }

    /// Lets a run go on after the decision on what it asks. If it may not go on now, it waits on, until it is stopped.
    ///
    /// # Errors
    ///
    /// When the budget of its agent was used meanwhile: it does not go on, for this reason.
    pub(super) async fn go_on(
        &self,
        turn: &mut TurnRecord,
        run: &Run,
        wait: &mut Wait,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        let waits = self.waits(wait.question.as_ref());
        wait.note_told();
        wait.decided = self.answer(turn, run, &mut wait.question, stop).await?;
        if !wait.is_on() {
            wait.waited += waits;
        }
        Ok(())
    }

    /// Tells a run what became of the approval that it waits for, once it is stored that its time goes on. Returns what it asked for: it
    /// may have stopped to wait. `None` if it took that back, or waits on.
    ///
    /// # Errors
    ///
    /// When the budget of its agent was used meanwhile: it does not go on, for this reason.
    async fn answer(
        &self,
        turn: &mut TurnRecord,
        run: &Run,
        question: &mut Option<Question>,
        stop: &CancellationToken,
    ) -> Result<Option<ApprovalRequest>, String> {
        let agent = question.as_ref().and_then(|question| question.handoff.clone());
        let resumed = Event::RunResumed { agent, attempt: run.attempt };
        loop {
            // What it does not hear it is not given.
            let hears = question.as_ref().is_some_and(|question| !question.answer.is_closed());
            let going_on = async {
                *turn = self.ledger.turn(turn.id).await?;
                if turn.obligation.is_suspended() {
                    return Ok(None);
                }
                let rest = self.budgets.rest(run, &self.inputs.agents).await?;
                let asked = match &rest {
                    Rest::Nothing(_) => Vec::new(),
                    Rest::Some { .. } if !hears => Vec::new(),
                    Rest::Some { .. } => self.inputs.give_approvals(turn.id, run).await?,
                };
                if matches!(rest, Rest::Some { .. }) {
                    self.ledger.decide(turn, resumed.clone(), Trigger::Event).await?;
                }
                Ok::<_, StoreError>(Some((asked, rest)))
            };
            match going_on.await {
                // Nobody has decided yet.
                Ok(None) => return Ok(None),
                Ok(Some((asked, rest))) => {
                    if let Rest::Nothing(why) = rest {
                        return Err(why);
                    }
                    // The person has stopped it meanwhile: it is told nothing that it could act on.
                    if stop.is_cancelled() || !turn.obligation.is_running() {
                        return Ok(None);
                    }
                    let Some(Question { request, answer, taken_back, .. }) = question.take() else { return Ok(None) };
                    let decided = asked.into_iter().rev().find(|approval| approval.request == request);
                    let told = decided.ok_or_else(|| "what became of it is not stored any more".to_owned());
                    // Fails if the runtime does not wait any longer.
                    let _ = answer.send(told);
                    return Ok(taken_back.map(|_| request));
                }
                Err(error) => warn!(turn = %turn.id, %error, "cannot let a run go on after an approval, retrying"),
            }
            let may_retry = tokio::select! {
                () = stop.cancelled() => false,
                goes_on = self.lifecycle.pause(pauses::READ_AGAIN) => goes_on,
            };
            if !may_retry {
                return Ok(None);
            }
        }
    }
}
