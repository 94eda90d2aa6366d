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
    call::{ASK, Call, DEFER, REACT, REQUEST_APPROVAL, SEND, STAY_SILENT, ToolCall},
    offer::{Tool, offered_to_callers},
    run::{MAX_TOOL_NAME, RunState},
};
use crate::approval::Approval;

/// The tools of which a run has one call.
const DECISIVE: [&str; 6] = [REACT, ASK, DEFER, STAY_SILENT, REQUEST_APPROVAL, SEND];

/// The result of a call, for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    /// Whether nothing was done.
    pub is_error: bool,
}

impl From<String> for ToolAnswer {
    fn from(text: String) -> Self {
        let is_error = text.starts_with("error: ") || text.starts_with("not sent: ");
        Self { text, is_error }
    }
}

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
    /// The approvals that were decided in this run.
    decided: Vec<(ApprovalRequest, ToolAnswer)>,
}

/// An approval that is not decided yet.
struct Asking {
    request: ApprovalRequest,
    arguments: String,
    decision: BoxFuture<'static, Decision>,
    /// The calls that wait for it: the agent may have given up on one, and called again.
    waiting: Vec<oneshot::Sender<ToolAnswer>>,
}

/// What became of a request, or why nobody was asked.
type Decision = Result<AgentApproval, String>;

impl CallerTools {
    /// The calls of a run of `turn`, which begins now. Puts nothing of the turn away.
    pub fn of(turn: &mut AgentTurn, events: RunEvents) -> Self {
        Self {
            turn: without_content(turn),
            events,
            began: Instant::now(),
            state: RunState::default(),
            first: None,
            asking: None,
            decided: Vec::new(),
        }
    }

    /// What the agent may call.
    pub fn offered(&self) -> Vec<Cow<'static, Tool>> {
        offered_to_callers(&self.turn)
    }

    /// Carries out a call, with its arguments as JSON. The result is sent to `answer`, that of `request_approval` once it is
    /// [decided](Self::decision).
    pub async fn call(&mut self, name: &str, arguments: String, answer: oneshot::Sender<ToolAnswer>) {
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
        let Some(Asking { request, arguments, waiting, .. }) = self.asking.take() else { return };
        let answer = ToolAnswer::from(match decision {
            Ok(approval) => Approval::from(&approval).json(),
            Err(why) => format!("error: nobody was asked: {why}"),
        });
        for waiting in waiting {
            let _ = waiting.send(answer.clone());
        }
        report(&self.events, REQUEST_APPROVAL, arguments, &answer).await;
        if !answer.is_error {
            self.decided.push((request, answer));
        }
    }

    /// The outcome of a run that has `ended` like this. What was called for stands in place of what the agent said at the end, also if it
    /// failed; but its text comes before a question, and is the note of a deferral without one.
    ///
    /// # Errors
    /// When the run failed, and no call has decided how it ends.
    pub fn outcome(self, ended: Result<Outcome, AgentError>) -> Result<Outcome, AgentError> {
        if let Some(Asking { request, .. }) = self.asking {
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
        if let Some((_, told)) = self.decided.iter().find(|(decided, _)| *decided == request) {
            let _ = answer.send(told.clone());
            return;
        }
        match &mut self.asking {
            Some(asking) if asking.request == request => {
                asking.waiting.retain(|waiting| !waiting.is_closed());
                asking.waiting.push(answer);
            }
            Some(_) => {
                let why = "error: another approval is not decided yet: wait for it, or end your turn".to_owned();
                let _ = answer.send(refuse(&self.events, REQUEST_APPROVAL, arguments, why).await);
            }
            None => {
                let (events, asked) = (self.events.clone(), request.clone());
                let decision = async move { events.ask_approval(asked).await }.boxed();
                self.asking = Some(Asking { request, arguments, decision, waiting: vec![answer] });
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
    events.tool(ToolUse { name, arguments, result: answer.text.clone() }).await;
}

/// A copy without what only the agent reads, which may be large.
fn without_content(turn: &mut AgentTurn) -> AgentTurn {
    let content = (take(&mut turn.history), take(&mut turn.attachments), take(&mut turn.quoted), take(&mut turn.more));
    let copy = turn.clone();
    (turn.history, turn.attachments, turn.quoted, turn.more) = content;
    copy
}
