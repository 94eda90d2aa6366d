//! The tools of a run whose agent calls them itself, while it runs.
//!
//! One call decides how the run ends: the first of `react`, `ask`, `defer`, `stay_silent`, `request_approval` and `send`. Another one gets
//! an error. `request_approval` waits for the decision, after which the run goes on; if the run ends before, the request is its outcome.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, future::pending, mem::take};

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_core::{
    AgentApproval, AgentError, AgentTurn, ApprovalRequest, Outcome, RunEvents, Timestamp, ToolUse, is_blank,
};
use tokio::{sync::oneshot, time::Instant};

use super::{
    answer::ToolAnswer,
    call::{ASK, Call, DEFER, REACT, REQUEST_APPROVAL, SEND, STAY_SILENT, ToolCall},
    offer::{Tool, offered_to_callers},
    run::{MAX_TOOL_NAME, RunState},
};
use crate::{
    approval::Approval,
    asking::{Decisions, allows},
};

/// The tools of which a run has one call.
const DECISIVE: [&str; 6] = [REACT, ASK, DEFER, STAY_SILENT, REQUEST_APPROVAL, SEND];

/// The calls of an agent in one run, and what they come to.
pub struct CallerTools {
    /// Without its files and its history.
    turn: AgentTurn,
    events: RunEvents,
    began: Instant,
    state: RunState,
    /// The tool that decided how the run ends.
    first: Option<&'static str>,
    asking: Option<Asking>,
    decided: Decisions,
    calls: u32,
}

const USED: &str = "error: this was approved for another call of yours: ask again";

/// How many calls an agent has in one run.
const MOST_CALLS: u32 = 1_000;

/// An approval that is not decided yet.
struct Asking {
    request: ApprovalRequest,
    arguments: String,
    decision: BoxFuture<'static, Decision>,
    /// The calls that wait for it: the agent may have given up on one, and called again.
    waiting: Vec<oneshot::Sender<ToolAnswer>>,
    /// Whether the worker that asked has lost the run, and no other one has asked for the same.
    is_left: bool,
}

/// What became of a request, or why nobody was asked.
type Decision = Result<AgentApproval, String>;

impl CallerTools {
    /// The calls of a run of `turn`, which begins now. Puts nothing of the turn away.
    pub fn of(turn: &mut AgentTurn, events: RunEvents) -> Self {
        let turn = without_content(turn);
        Self {
            decided: Decisions::of(&turn.past.approvals),
            calls: 0,
            turn,
            events,
            began: Instant::now(),
            state: RunState::default(),
            first: None,
            asking: None,
        }
    }

    /// What the agent may call.
    pub fn offered(&self) -> Vec<Cow<'static, Tool>> {
        offered_to_callers(&self.turn)
    }

    /// Carries out a call, with its arguments as JSON. The result is sent to `answer`, that of `request_approval` once it is
    /// [decided](Self::decision).
    pub async fn call(&mut self, name: &str, arguments: String, answer: oneshot::Sender<ToolAnswer>) {
        self.calls = self.calls.saturating_add(1);
        if self.calls > MOST_CALLS {
            // Not reported: a run that calls without end would fill its record.
            let text = format!("error: a run has at most {MOST_CALLS} calls: end your turn");
            let _ = answer.send(ToolAnswer { text, is_error: true });
            return;
        }
        let decisive = DECISIVE.into_iter().find(|tool| *tool == name);
        let result = match decisive.and_then(|tool| self.refusal(tool)) {
            Some(why) => refuse(&self.events, name, arguments, why).await,
            None if decisive == Some(REQUEST_APPROVAL) => match Call::parse(name, &arguments, &self.turn, self.now()) {
                Ok(Call::Approval(request)) => return self.ask(request, arguments, answer).await,
                Ok(_) => unreachable!("a call of this tool is a request"),
                Err(why) => refuse(&self.events, name, arguments, why).await,
            },
            None => self.perform(name, arguments, decisive).await,
        };
        // The caller may have gone.
        let _ = answer.send(result);
    }

    /// Waits until the approval that the agent asked for is decided; for ever if there is none. To be passed to
    /// [`decided`](Self::decided).
    ///
    /// # Errors
    /// Says why nobody was asked.
    pub async fn decision(&mut self) -> Decision {
        match &mut self.asking {
            Some(asking) => (&mut asking.decision).await,
            None => pending().await,
        }
    }

    /// Answers the calls that wait for this decision.
    pub async fn decided(&mut self, decision: Decision) {
        let Some(Asking { arguments, waiting, .. }) = self.asking.take() else { return };
        let answer = ToolAnswer::from(match &decision {
            Ok(approval) => Approval::from(approval).json(),
            Err(why) => format!("error: nobody was asked: {why}"),
        });
        let is_yes = decision.as_ref().is_ok_and(allows);
        let mut is_told = false;
        for waiting in waiting {
            let answer = if is_yes && is_told { ToolAnswer::from(USED.to_owned()) } else { answer.clone() };
            // The caller may have gone.
            is_told |= waiting.send(answer).is_ok();
        }
        report(&self.events, REQUEST_APPROVAL, arguments, &answer).await;
        if let Ok(decision) = decision
            && !(is_told && is_yes)
        {
            self.decided.add(decision);
        }
    }

    /// Another worker has the run from now on: what was chosen before does not count, and calls that wait get no answer. What was sent was
    /// sent.
    pub fn begin_again(&mut self) {
        self.first = None;
        self.state.begin_again();
        // The worker before has read these in its turn.
        self.decided.drop_read(&self.turn.past.approvals);
        if let Some(asking) = &mut self.asking {
            asking.waiting.clear();
            asking.is_left = true;
        }
    }

    /// The outcome of a run that has `ended` like this. What was called for stands in place of what the agent said at the end, also if it
    /// failed; but its text comes before a question, and is the note of a deferral without one.
    ///
    /// # Errors
    /// When the run failed, and no call has decided how it ends.
    pub fn outcome(self, ended: Result<Outcome, AgentError>) -> Result<Outcome, AgentError> {
        if let Some(Asking { request, is_left: false, .. }) = self.asking {
            return Ok(Outcome::Approval(request));
        }
        let said = match &ended {
            Ok(Outcome::Reply(reply)) if !is_blank(&reply.text) => Some(&*reply.text),
            _ => None,
        };
        let says_nothing =
            matches!(&ended, Ok(Outcome::Reply(reply)) if said.is_none() && reply.attachments.is_empty());
        let is_sent = self.state.sent;
        // A reaction is an answer instead of words: those beside it speak about it.
        match self.state.choice_beside(said.filter(|_| self.first != Some(REACT))) {
            Some(outcome) => Ok(outcome),
            None if is_sent && says_nothing => Ok(Outcome::Silent("answered with the tool `send`".to_owned())),
            None => ended,
        }
    }

    /// Why a call that decides how the run ends comes too late, if it does.
    fn refusal(&self, tool: &'static str) -> Option<String> {
        if self.state.sent {
            return Some("error: what you sent is your answer already: end your turn".to_owned());
        }
        if let Some(first) = self.first {
            return Some(format!("error: you have called `{first}` already, which decides how your turn ends: end it"));
        }
        (self.asking.is_some() && tool != REQUEST_APPROVAL)
            .then(|| "error: what you asked approval for is not decided yet: wait for it, or end your turn".to_owned())
    }

    async fn perform(&mut self, name: &str, arguments: String, decisive: Option<&'static str>) -> ToolAnswer {
        let (call, now) = (ToolCall { id: String::new(), name: name.to_owned(), arguments }, self.now());
        let results = self.state.perform(&[call], &self.turn, now, &self.events).await;
        let answer = ToolAnswer::from(results.into_iter().map(|result| result.text).collect::<String>());
        if !answer.is_error && decisive != Some(SEND) {
            self.first = decisive;
        }
        answer
    }

    /// Asks for an approval, or waits for the one that was asked for with the same request.
    async fn ask(&mut self, request: ApprovalRequest, arguments: String, answer: oneshot::Sender<ToolAnswer>) {
        if let Some(decided) = self.decided.take(&request) {
            let told = ToolAnswer::from(Approval::from(&decided).json());
            report(&self.events, REQUEST_APPROVAL, arguments, &told).await;
            if answer.send(told).is_err() && allows(&decided) {
                self.decided.add(decided);
            }
            return;
        }
        match &mut self.asking {
            Some(asking) if asking.request == request => {
                asking.waiting.retain(|waiting| !waiting.is_closed());
                asking.waiting.push(answer);
                asking.is_left = false;
            }
            Some(_) => {
                let why = "error: another approval is not decided yet: wait for it, or end your turn".to_owned();
                let _ = answer.send(refuse(&self.events, REQUEST_APPROVAL, arguments, why).await);
            }
            None => {
                let (events, asked) = (self.events.clone(), request.clone());
                let decision = async move { events.ask_approval(asked).await }.boxed();
                self.asking = Some(Asking { request, arguments, decision, waiting: vec![answer], is_left: false });
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.turn.now + self.began.elapsed()
    }
}

async fn refuse(events: &RunEvents, name: &str, arguments: String, why: String) -> ToolAnswer {
    let answer = ToolAnswer::from(why);
    report(events, name, arguments, &answer).await;
    answer
}

/// Reports a call that has ended, for the operator.
async fn report(events: &RunEvents, name: &str, arguments: String, answer: &ToolAnswer) {
    let name = name.chars().take(MAX_TOOL_NAME).collect();
    let result = answer.text.clone();
    events.tool(ToolUse { name, arguments, result, duration_ms: None }).await;
}

/// A copy without what only the agent reads, which may be large.
fn without_content(turn: &mut AgentTurn) -> AgentTurn {
    let message = &mut turn.message;
    let content =
        (take(&mut message.attachments), take(&mut message.quoted), take(&mut turn.more), take(&mut turn.past.history));
    let copy = turn.clone();
    (turn.message.attachments, turn.message.quoted, turn.more, turn.past.history) = content;
    copy
}
