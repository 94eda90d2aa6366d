//! The tools of a run whose agent calls them itself, while it runs.
//!
//! One call decides how the run ends: the first of `react`, `ask`, `defer`, `stay_silent`, `request_approval` and `send`. Another one gets
//! an error. `request_approval` waits for the decision, and `ask` with `wait` for the answer, after which the run goes on; if the run ends
//! before, or no call has heard the decision, the request is its outcome.

mod answers;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, future::pending, mem::take};

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_core::{
    AgentApproval, AgentError, AgentTurn, ApprovalRequest, ApprovalState, Outcome, PersonAnswer, RunEvents, Timestamp,
    ToolUse, as_stored, is_blank,
};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use self::answers::Answers;
use super::{
    answer::ToolAnswer,
    call::{ASK, Call, DEFER, REACT, REQUEST_APPROVAL, SEND, STAY_SILENT, ToolCall, waiting_question},
    offer::{Tool, offered_to_callers},
    run::{MAX_TOOL_NAME, RunState},
};
use crate::{
    approval::Approval,
    asking::{Decisions, allows},
    person_answer::Answer,
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
    /// What the agent asked for last, if that is decided and no call of its has heard so.
    unheard: Option<Unheard>,
    decided: Decisions,
    answers: Answers,
    calls: u32,
}

const REPLACED: &str = "error: a later call of yours waits for it";

/// How many calls an agent has in one run.
const MOST_CALLS: u32 = 1_000;

/// An approval that is not decided yet, or a question that is not answered yet.
struct Asking {
    request: ApprovalRequest,
    arguments: String,
    decision: BoxFuture<'static, Decision>,
    /// The latest call that waits for it: the agent may have given up on those before.
    waiting: Option<oneshot::Sender<ToolAnswer>>,
    /// Whether the worker that asked has lost the run, and no other one has asked for the same.
    is_left: bool,
}

/// A decision that no call has heard.
struct Unheard {
    request: ApprovalRequest,
    /// How often the run had been told a decision when it came.
    told: u64,
}

impl Unheard {
    fn is_of(&self, request: &ApprovalRequest) -> bool {
        as_stored(&self.request) == as_stored(request)
    }
}

/// What became of a request, or why nobody was asked.
type Decision = Result<AgentApproval, String>;

impl CallerTools {
    /// The calls of a run of `turn`, which begins now. Puts nothing of the turn away.
    pub fn of(turn: &mut AgentTurn, events: RunEvents) -> Self {
        let turn = without_content(turn);
        Self {
            decided: Decisions::of(&turn.past.approvals),
            answers: Answers::of(&turn.past.answers),
            calls: 0,
            turn,
            events,
            began: Instant::now(),
            state: RunState::default(),
            first: None,
            asking: None,
            unheard: None,
        }
    }

    /// What the agent may call.
    pub fn offered(&self) -> Vec<Cow<'static, Tool>> {
        offered_to_callers(&self.turn)
    }

    /// Carries out a call, with its arguments as JSON. The result is sent to `answer`, that of a call that waits once it is
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
        let request = self.request(name, &arguments).transpose();
        let result = match (decisive.and_then(|_| self.refusal(request.is_some())), request) {
            (Some(why), _) | (None, Some(Err(why))) => refuse(&self.events, name, arguments, why).await,
            (None, Some(Ok(request))) => return self.ask(request, arguments, answer).await,
            (None, None) => self.perform(name, arguments, decisive).await,
        };
        // The caller may have gone.
        let _ = answer.send(result);
    }

    /// Waits until what the agent asked for is decided or answered; for ever if there is nothing. To be passed to
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

    /// Answers the call that waits for this decision.
    pub async fn decided(&mut self, decision: Decision) {
        let Some(Asking { request, arguments, waiting, is_left, .. }) = self.asking.take() else { return };
        let tool = tool_of(&request);
        let answer = ToolAnswer::from(match &decision {
            Ok(approval) if tool == ASK => Answer::from(&said(approval.clone())).json(),
            Ok(approval) => Approval::from(approval).json(),
            Err(why) => not_asked(why),
        });
        // The caller may have gone.
        let is_told = waiting.is_some_and(|waiting| waiting.send(answer.clone()).is_ok());
        if is_told || is_left || decision.is_err() {
            self.events.note_told();
        } else {
            self.unheard = Some(Unheard { request, told: self.events.told_count() });
        }
        report(&self.events, tool, arguments, &answer).await;
        match decision {
            Ok(approval) if tool == ASK => self.answers.add(said(approval), is_told),
            Ok(approval) if !(is_told && allows(&approval)) => self.decided.add(approval),
            Ok(_) | Err(_) => {}
        }
    }

    /// Another worker has the run from now on: what was chosen before does not count, and calls that wait get no answer. What was sent was
    /// sent.
    pub fn begin_again(&mut self) {
        self.first = None;
        self.state.begin_again();
        // The worker before has read these in its turn.
        self.decided.drop_read(&self.turn.past.approvals);
        self.answers.begin_again();
        self.forget_unheard();
        if let Some(asking) = &mut self.asking {
            asking.waiting = None;
            asking.is_left = true;
        }
    }

    /// The outcome of a run that has `ended` like this. What was called for stands in place of what the agent said at the end, also if it
    /// failed; but its text comes before a question, is the note of a deferral without one, and goes with files. An agent that has not
    /// heard the decision it waited for runs again with it, also if it has deferred its answer.
    ///
    /// # Errors
    /// When the run failed, and no call has decided how it ends.
    pub fn outcome(mut self, mut ended: Result<Outcome, AgentError>) -> Result<Outcome, AgentError> {
        if let Some(Asking { request, is_left: false, .. }) = self.asking.take() {
            return Ok(Outcome::Approval(request));
        }
        let is_undecided = self.first.is_none() && !self.state.sent && matches!(&ended, Ok(Outcome::Reply(_)) | Err(_));
        // The agent itself may have asked for something else since.
        if let Some(unheard) = self.unheard.take_if(|unheard| unheard.told == self.events.told_count()) {
            match &ended {
                Ok(Outcome::Approval(request)) if unheard.is_of(request) => return ended,
                _ if is_undecided => return Ok(Outcome::Approval(unheard.request)),
                // The run that pays the debt is to hear it.
                _ if self.defers(&ended) => {}
                _ => self.events.note_told(),
            }
        }
        match &mut ended {
            // It may have files and a question of its own.
            Ok(Outcome::Reply(reply)) if self.first.is_none() => reply.attachments.append(self.state.files()),
            // The next run sends them.
            Ok(Outcome::Defer { .. } | Outcome::Approval(_)) if self.first.is_none() => self.state.files().clear(),
            _ => {}
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

    /// Whether a run that has `ended` like this has deferred its answer.
    fn defers(&self, ended: &Result<Outcome, AgentError>) -> bool {
        self.first.map_or_else(|| matches!(ended, Ok(Outcome::Defer { .. })), |first| first == DEFER)
    }

    /// What a call waits for; `None`: it does not wait.
    ///
    /// # Errors
    /// Says for the agent what is wrong with the arguments.
    fn request(&self, name: &str, arguments: &str) -> Result<Option<ApprovalRequest>, String> {
        match name {
            REQUEST_APPROVAL => {
                let Call::Approval(request) = Call::parse(name, arguments, &self.turn, self.now())? else {
                    unreachable!("a call of this tool is a request")
                };
                Ok(Some(request))
            }
            ASK => waiting_question(arguments, &self.turn, self.now()),
            _ => Ok(None),
        }
    }

    /// Why a call that decides how the run ends, or waits, comes too late, if it does.
    fn refusal(&self, waits: bool) -> Option<String> {
        if self.state.sent {
            return Some("error: what you sent is your answer already: end your turn".to_owned());
        }
        if let Some(first) = self.first {
            return Some(format!("error: you have called `{first}` already, which decides how your turn ends: end it"));
        }
        // What a worker asked that has lost the run stands in nobody's way; only one thing waits at a time.
        let asking = self.asking.as_ref().filter(|asking| !waits && !asking.is_left)?;
        Some(asking.why_wait("what you asked approval for"))
    }

    async fn perform(&mut self, name: &str, arguments: String, decisive: Option<&'static str>) -> ToolAnswer {
        let (call, now) = (ToolCall { id: String::new(), name: name.to_owned(), arguments }, self.now());
        let results = self.state.perform(&[call], &self.turn, now, &self.events).await;
        let answer = ToolAnswer::from(results.into_iter().map(|result| result.text).collect::<String>());
        if let Some(decisive) = decisive.filter(|tool| *tool != SEND && !answer.is_error) {
            self.first = Some(decisive);
        }
        answer
    }

    /// Asks for an approval, or the person, or waits for what was asked for with the same request.
    async fn ask(&mut self, request: ApprovalRequest, arguments: String, answer: oneshot::Sender<ToolAnswer>) {
        let tool = tool_of(&request);
        if let Some(known) = self.answers.take(&request) {
            let told = ToolAnswer::from(Answer::from(&known).json());
            report(&self.events, tool, arguments, &told).await;
            let is_told = answer.send(told).is_ok();
            self.answers.add(known, is_told);
            if is_told {
                self.note_heard(&request);
            }
            return;
        }
        if let Some(decided) = self.decided.take(&request) {
            let told = ToolAnswer::from(Approval::from(&decided).json());
            report(&self.events, REQUEST_APPROVAL, arguments, &told).await;
            match answer.send(told) {
                Ok(()) => self.note_heard(&request),
                Err(_) if allows(&decided) => self.decided.add(decided),
                Err(_) => {}
            }
            return;
        }
        match &mut self.asking {
            Some(asking) if asking.request == request => {
                if let Some(before) = asking.waiting.replace(answer) {
                    // A client may have given up without a word: its connection is free again.
                    let _ = before.send(ToolAnswer::from(REPLACED.to_owned()));
                }
                asking.is_left = false;
            }
            Some(asking) => {
                let why = asking.why_wait("another approval");
                let _ = answer.send(refuse(&self.events, tool, arguments, why).await);
            }
            None => {
                self.forget_unheard();
                let (events, asked) = (self.events.clone(), request.clone());
                // It is told when a call hears it.
                let decision =
                    async move { events.ask_approval_for_member(asked, CancellationToken::new()).await }.boxed();
                self.asking = Some(Asking { request, arguments, decision, waiting: Some(answer), is_left: false });
            }
        }
    }

    /// Notes that a call has heard what became of this.
    fn note_heard(&mut self, request: &ApprovalRequest) {
        if self.unheard.as_ref().is_some_and(|unheard| unheard.is_of(request)) {
            self.forget_unheard();
        }
    }

    /// Nobody needs to hear any more what the agent asked for last.
    fn forget_unheard(&mut self) {
        if self.unheard.take().is_some() {
            self.events.note_told();
        }
    }

    fn now(&self) -> Timestamp {
        self.turn.now + self.began.elapsed()
    }
}

impl Asking {
    /// Why another call has to wait. `approval`: what is asked for, if it is no question.
    fn why_wait(&self, approval: &str) -> String {
        if self.is_left {
            let (tool, arguments) = (tool_of(&self.request), &self.arguments);
            return format!(
                "error: what was asked before you had this turn is not decided yet: call `{tool}` with {arguments} to wait for it, or end \
                 your turn"
            );
        }
        let what = match self.request.choices {
            Some(_) => "your question is not answered yet".to_owned(),
            None => format!("{approval} is not decided yet"),
        };
        format!("error: {what}: wait for it, or end your turn")
    }
}

/// The tool that asks for this.
const fn tool_of(request: &ApprovalRequest) -> &'static str {
    if request.choices.is_some() { ASK } else { REQUEST_APPROVAL }
}

/// What the person has answered.
fn said(AgentApproval { request, state, note, .. }: AgentApproval) -> PersonAnswer {
    PersonAnswer { question: request, answer: note.filter(|_| state == ApprovalState::Approved) }
}

fn not_asked(why: &str) -> String {
    format!("error: nobody was asked: {why}")
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
