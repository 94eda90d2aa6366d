//! The port to an agent: the runtime, the events it reports while it runs, and its errors.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::{ApprovalRequest, Choices, Outcome, Reply};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::store::list::FoundLine;
use crate::model::{
    Activity, ActivityState, AgentApproval, AgentMessage, AgentName, AgentTurn, Cost, ModelInput, PersonAnswer,
    Schedule, ScheduleCall, SearchQuery, SessionNotice, Texts, ToolUse, TurnId, Usage,
};

/// An event that a runtime reports during a run.
#[derive(Debug)]
pub enum RunEvent {
    /// More text of the answer.
    Text(String),
    /// The whole text of the answer so far; replaces all text reported before.
    Rewrite(String),
    /// What became of asking a member in the agent's place.
    Member(MemberReport),
    /// A tool call of the agent that has ended: activity, not a signal.
    Tool(ToolUse),
    /// What the agent does, or has done: shown in drafts where the operator wants it. Not a signal.
    Activity(Activity),
    /// More of what the agent thinks: shown beside drafts where the operator wants to see what it does. Never a part of the answer.
    Thought(String),
    /// What the runtime is about to send to the model; the last one counts.
    Shown(ModelInput),
    /// The tokens consumed so far in this run; the last one counts.
    Usage(Usage),
    /// What the run has cost so far, or the member that was asked last, and the tokens whose cost is not in it; the last one counts.
    Cost(Cost, Usage),
    /// What the turn's session is about; the last one counts.
    Title(String),
    /// A message to send to this turn's conversation now. The channel returns whether it was claimed.
    Send(Reply, oneshot::Sender<SendResult>),
    /// What the agent wants of the schedules of this turn's conversation. The channel returns the schedules, or why it is
    /// not done.
    Schedule(ScheduleCall, oneshot::Sender<Result<Vec<Schedule>, String>>),
    /// What the agent searches for in what was said in this turn's conversation. The channel returns the lines, newest first, or why
    /// there are none.
    Search(SearchQuery, oneshot::Sender<Result<Vec<FoundLine>, String>>),
    /// What the agent asks approval for, before it goes on; nobody needs to decide it any more once the token is cancelled. The channel
    /// returns what became of it, or why it was not asked.
    Ask(ApprovalRequest, CancellationToken, oneshot::Sender<Result<AgentApproval, String>>),
    /// The agent's own id of the turn's session. The channel returns whether it is stored, or why not.
    Remember(String, oneshot::Sender<Result<(), String>>),
    /// Who does the run outside of this process. The channel returns whether it is stored, or why not.
    HandOut(String, oneshot::Sender<Result<(), String>>),
    /// The runtime can take messages that have come since the run began. The channel returns them.
    Listen(oneshot::Sender<Vec<AgentMessage>>),
    /// The run is about to return its outcome. The channel returns `true` once this is stored, and `false` if the turn was decided
    /// otherwise. It is closed without an answer if this process does not store it: the turn runs again.
    Ends(oneshot::Sender<bool>),
}

impl Texts for RunEvent {
    fn strip_nul(&mut self) {
        match self {
            Self::Text(text) | Self::Rewrite(text) | Self::Title(text) | Self::Thought(text) => text.strip_nul(),
            Self::Member(MemberReport::Failed(error)) => error.strip_nul(),
            Self::Tool(call) => call.strip_nul(),
            Self::Activity(activity) => activity.strip_nul(),
            Self::Shown(input) => input.strip_nul(),
            Self::Send(reply, _) => reply.strip_nul(),
            Self::Schedule(call, _) => call.strip_nul(),
            Self::Ask(request, ..) => request.strip_nul(),
            // No texts, an id, or words that were read from a text.
            Self::Member(MemberReport::Asked(_) | MemberReport::Answered)
            | Self::Usage(_)
            | Self::Cost(..)
            | Self::Search(..)
            | Self::Remember(..)
            | Self::HandOut(..)
            | Self::Listen(_)
            | Self::Ends(_) => {}
        }
    }
}

/// A report about a member of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberReport {
    /// It is asked from now on: what is consumed until the next report counts for it as well.
    Asked(AgentName),
    /// The one that was asked last has answered.
    Answered,
    /// The one that was asked last has failed. One that was not reached has consumed nothing that it has not reported.
    Failed(AgentError),
}

/// The result of [`RunEvents::send`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// The message is the turn's answer: it is stored, and in flight or delivered.
    Claimed,
    /// It was not sent: the turn had its answer already, the message was empty, the run had ended or the store failed.
    Suppressed,
}

/// The handle through which a runtime reports events during a run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunEvents {
    sender: mpsc::Sender<RunEvent>,
    told: Arc<AtomicU64>,
}

impl RunEvents {
    /// Creates the channel: the first half is for the runtime, the second for the core.
    pub fn channel() -> (Self, mpsc::Receiver<RunEvent>) {
        Self::with_room(64)
    }

    /// The same for this many events that the core has not read yet.
    pub(crate) fn with_room(events: usize) -> (Self, mpsc::Receiver<RunEvent>) {
        let (sender, receiver) = mpsc::channel(events);
        (Self { sender, told: Arc::default() }, receiver)
    }

    /// Creates the channel of a member that runs in the agent's place: the second half is for the agent, which passes on what the
    /// member reports. What the member is told of its approvals counts as told to the agent.
    pub fn of_member(&self) -> (Self, mpsc::Receiver<RunEvent>) {
        let (member, receiver) = Self::channel();
        (Self { told: Arc::clone(&self.told), ..member }, receiver)
    }

    /// Reports more text of the answer. The outcome must still hold the whole answer.
    pub async fn text(&self, delta: impl Into<String> + Send) {
        self.report(RunEvent::Text(delta.into())).await;
    }

    /// Replaces all text of the answer that was reported before with `text`.
    pub async fn rewrite(&self, text: impl Into<String> + Send) {
        self.report(RunEvent::Rewrite(text.into())).await;
    }

    /// Reports which member is asked in the agent's place.
    pub async fn member(&self, name: AgentName) {
        self.report(RunEvent::Member(MemberReport::Asked(name))).await;
    }

    /// Reports how the member that was asked last has ended. An end that says nothing about the member is not reported.
    pub async fn member_ended(&self, result: Result<(), AgentError>) {
        let report = result.map_or_else(MemberReport::Failed, |()| MemberReport::Answered);
        self.report(RunEvent::Member(report)).await;
    }

    /// Reports a tool call of the agent, when it has ended.
    pub async fn tool(&self, call: ToolUse) {
        self.report(RunEvent::Tool(call)).await;
    }

    /// Reports what the agent does now, in a few words for people, or that it has ended: activities are told apart by their titles.
    /// The core shows the latest that has not ended, in one line of 80 characters, below the draft.
    pub async fn activity(&self, title: impl Into<String> + Send, state: ActivityState) {
        self.report(RunEvent::Activity(Activity { title: title.into(), state })).await;
    }

    /// Reports more of what the agent thinks before it answers. Only chat pages show it, folded, and only where activities are shown.
    pub async fn thought(&self, more: impl Into<String> + Send) {
        self.report(RunEvent::Thought(more.into())).await;
    }

    /// Reports what is about to be sent to the model, for the operator. A later report of the run replaces it.
    pub async fn shown(&self, input: ModelInput) {
        self.report(RunEvent::Shown(input)).await;
    }

    /// Reports the tokens consumed so far in this run.
    pub async fn usage(&self, usage: Usage) {
        self.report(RunEvent::Usage(usage)).await;
    }

    /// Reports what this run has cost so far, if the agent knows it. That counts in place of what the tokens cost, if it is in the
    /// currency of the agent's price. A later report replaces it. After [`member`](Self::member), it is what that member has cost. A cost of
    /// 0 is none: agents say it that know no prices.
    pub async fn cost(&self, cost: Cost) {
        self.cost_beside(cost, Usage::default()).await;
    }

    /// The same, if it is not known what these tokens of the run have cost: they cost what the agent's price says.
    pub async fn cost_beside(&self, cost: Cost, unpriced: Usage) {
        if cost.micros == 0 {
            return;
        }
        self.report(RunEvent::Cost(cost, unpriced)).await;
    }

    /// Reports what the turn's session is about, for lists of sessions in which nobody has named it. One line, of which 100 characters are
    /// kept; a later title replaces it, and one in which nothing can be seen does not. It is stored when the run ends.
    pub async fn title(&self, title: impl Into<String> + Send) {
        self.report(RunEvent::Title(title.into())).await;
    }

    /// Sends a message to this turn's conversation now, as the turn's answer. Returns when the decision is stored.
    pub async fn send(&self, reply: Reply) -> SendResult {
        let (answer, result) = oneshot::channel();
        if !self.report(RunEvent::Send(reply, answer)).await {
            return SendResult::Suppressed;
        }
        result.await.unwrap_or(SendResult::Suppressed)
    }

    /// Makes, shows or removes schedules of this turn's conversation. Returns when it is stored.
    ///
    /// # Errors
    /// Says why it is not done, for the agent.
    pub async fn schedule(&self, call: ScheduleCall) -> Result<Vec<Schedule>, String> {
        self.ask(|answer| RunEvent::Schedule(call, answer)).await
    }

    /// Searches the lines of earlier turns of this conversation in the turn's session. Returns at most 20, newest first.
    ///
    /// # Errors
    /// Says why nothing was searched, for the agent.
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<FoundLine>, String> {
        self.ask(|answer| RunEvent::Search(query, answer)).await
    }

    /// Asks for an approval in the middle of the run, and waits until it is decided, or closed for another reason: minutes or days.
    /// The run's deadline stands still meanwhile, and other turns run. One approval is asked for at a time. Drop the [files](crate::AgentFile)
    /// of the turn before: what they take others cannot have. Once it is decided, the run goes on when one more may run.
    ///
    /// If the process ends meanwhile, the turn runs again once it is decided, with the decision in
    /// [`crate::AgentPast::approvals`]. A runtime
    /// that cannot wait any longer drops this future, and ends the run at once with the same request as its
    /// [outcome](Outcome::Approval): that comes to the same. A run that does not end within two seconds is ended so.
    ///
    /// # Errors
    /// Says why nobody was asked, for the agent.
    pub async fn ask_approval(&self, request: ApprovalRequest) -> Result<AgentApproval, String> {
        self.ask_approval_unless(request, CancellationToken::new()).await
    }

    /// The same, unless `taken_back` is cancelled: nobody needs to decide it any more then. It is closed, and if it was not decided before,
    /// this returns [that](crate::ApprovalState::Dropped) when the run may go on. Another run of the turn is not told of it.
    ///
    /// # Errors
    /// Says why nobody was asked, for the agent.
    pub async fn ask_approval_unless(
        &self,
        request: ApprovalRequest,
        taken_back: CancellationToken,
    ) -> Result<AgentApproval, String> {
        let told = self.ask_approval_for_member(request, taken_back).await;
        self.note_told();
        told
    }

    /// The same for somebody else who asks: it counts as told when a [member](Self::of_member) has received the decision itself, or with
    /// [`note_told`](Self::note_told).
    ///
    /// # Errors
    /// Says why nobody was asked, for who asks.
    pub async fn ask_approval_for_member(
        &self,
        request: ApprovalRequest,
        taken_back: CancellationToken,
    ) -> Result<AgentApproval, String> {
        self.ask(|answer| RunEvent::Ask(request, taken_back, answer)).await
    }

    /// Asks the person who wrote in the middle of the run, and waits until they have answered: minutes or days, as for an
    /// [approval](Self::ask_approval), with the same bounds. Choices are picked, and with `free_text` the next message of the person is the
    /// answer. Only where [`crate::AgentRights::may_ask_person`] says so.
    ///
    /// If the process ends meanwhile, the turn runs again once it is answered, with the answer in [`crate::AgentPast::answers`].
    ///
    /// # Errors
    /// Says why the person was not asked, for the agent.
    pub async fn ask_person(&self, text: impl Into<String> + Send, choices: Choices) -> Result<PersonAnswer, String> {
        self.ask_person_unless(text, choices, CancellationToken::new()).await
    }

    /// The same, unless `taken_back` is cancelled: the question is [closed](Self::ask_approval_unless) then, without an answer.
    ///
    /// # Errors
    /// Says why the person was not asked, for the agent.
    pub async fn ask_person_unless(
        &self,
        text: impl Into<String> + Send,
        choices: Choices,
        taken_back: CancellationToken,
    ) -> Result<PersonAnswer, String> {
        self.ask_approval_unless(ApprovalRequest::question(text, choices), taken_back).await.map(PersonAnswer::of)
    }

    /// Counts as told what became of the latest [request of somebody else](Self::ask_approval_for_member). If it does not count
    /// when the run ends with that request as its [outcome](Outcome::Approval), the turn runs again with the decision, and nobody is asked
    /// again.
    pub fn note_told(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
    }

    /// How often the runtime was told what became of what it asked for.
    pub fn told_count(&self) -> u64 {
        self.told.load(Ordering::SeqCst)
    }

    /// Counts how often the runtime was told what became of what it asked for: what is sent while it stops to wait does not count.
    pub(crate) fn told(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.told)
    }

    /// Stores the agent's own id of the turn's session, of at most 4096 bytes, in place of an earlier one: later runs of the session
    /// get it as [`crate::AgentPlace::own_session`], also after a restart. Returns when it is stored. Only for a runtime that
    /// [keeps sessions](AgentRuntime::keeps_sessions).
    ///
    /// # Errors
    /// Says why it is not stored.
    pub async fn remember(&self, own_session: impl Into<String> + Send) -> Result<(), String> {
        let own_session = own_session.into();
        self.ask(|answer| RunEvent::Remember(own_session, answer)).await
    }

    /// Stores a note of who does the run outside of this process, of at most 4096 bytes and in place of an earlier one. An empty note:
    /// nobody does any more. If this process ends before the run does, the next run of the turn gets the note as
    /// [`crate::AgentPast::holder`]. Returns when it is stored. Only for a runtime that [hands runs out](AgentRuntime::hands_out).
    ///
    /// # Errors
    /// Says why it is not stored.
    pub async fn hand_out(&self, holder: impl Into<String> + Send) -> Result<(), String> {
        let holder = holder.into();
        self.ask(|answer| RunEvent::HandOut(holder, answer)).await
    }

    /// Reports that the run returns its outcome next. What is returned tells whether that counts, once it is stored; an error if this
    /// process does not store it: the turn runs again. Await it only after the run has returned.
    pub async fn ends(&self) -> oneshot::Receiver<bool> {
        let (answer, stored) = oneshot::channel();
        self.ends_for_member(answer).await;
        stored
    }

    /// The same for a [member](Self::of_member) whose end is that of the run.
    pub async fn ends_for_member(&self, answer: oneshot::Sender<bool>) {
        if let Err(mpsc::error::SendError(RunEvent::Ends(answer))) = self.sender.send(RunEvent::Ends(answer)).await {
            // The core has ended the run. The receiver may be gone, too.
            let _ = answer.send(false);
        }
    }

    /// Reports an event, whose texts then have no U+0000. Returns `false` if the core has ended the run.
    async fn report(&self, event: RunEvent) -> bool {
        self.sender.send(event.without_nul()).await.is_ok()
    }

    /// Reports an event that the core answers. The error says why not.
    async fn ask<T: Send>(
        &self,
        event: impl FnOnce(oneshot::Sender<Result<T, String>>) -> RunEvent + Send,
    ) -> Result<T, String> {
        let (answer, told) = oneshot::channel();
        let ended = || "the run has ended".to_owned();
        if !self.report(event(answer)).await {
            return Err(ended());
        }
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Takes the messages that have come since the run began and are to be answered by it: those of the queue mode `steer`.
    /// The run must take them into account, because it answers for them from now on.
    pub async fn listen(&self) -> Vec<AgentMessage> {
        let (answer, messages) = oneshot::channel();
        if !self.report(RunEvent::Listen(answer)).await {
            return Vec::new();
        }
        messages.await.unwrap_or_default()
    }
}

/// Why a run gave no outcome. The texts are for the operator only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The runtime cannot be reached, or is not configured.
    #[error("the agent cannot be reached: {0}")]
    Unreachable(String),
    /// The runtime reported a failure.
    #[error("the agent failed: {0}")]
    Failed(String),
    /// The runtime refused the request, in its own words.
    #[error("the agent failed: {status}: {message}")]
    Refused {
        /// The kind of refusal, such as an HTTP status.
        status: String,
        /// What the runtime says about it. It may repeat what people wrote.
        message: String,
    },
    /// The runtime stopped sending output.
    #[error("the agent stalled: {0}")]
    Stalled(String),
    /// The runtime's answer cannot be parsed.
    #[error("the agent's answer is invalid: {0}")]
    Broken(String),
}

impl AgentError {
    /// The error without what the runtime said in its own words, for the log and for what operators see of an agent: runtimes repeat
    /// what people wrote.
    pub fn summary(&self) -> String {
        match self {
            Self::Unreachable(_) | Self::Stalled(_) => self.to_string(),
            Self::Refused { status, .. } => format!("the agent failed: {status}"),
            Self::Failed(_) => "the agent failed".to_owned(),
            Self::Broken(_) => "the agent's answer is invalid".to_owned(),
        }
    }

    /// The same of an error that was stored as a text. Of a status only its three digits are left.
    pub(crate) fn summary_of(stored: &str) -> &str {
        match stored.split_once(": ") {
            Some((kind @ "the agent failed", told)) => {
                let has_status = told.len() > 3
                    && told.bytes().take(3).all(|byte| byte.is_ascii_digit())
                    && matches!(told.as_bytes()[3], b' ' | b':');
                &stored[..if has_status { kind.len() + ": 000".len() } else { kind.len() }]
            }
            Some((kind @ ("the agent's answer is invalid" | "the agent's runtime panicked"), _)) => kind,
            _ => stored,
        }
    }
}

impl Texts for AgentError {
    fn strip_nul(&mut self) {
        match self {
            Self::Unreachable(text) | Self::Failed(text) | Self::Stalled(text) | Self::Broken(text) => text.strip_nul(),
            Self::Refused { status, message } => {
                status.strip_nul();
                message.strip_nul();
            }
        }
    }
}

/// An agent that answers in place of another one, and how its runs for that one went since it was configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberHealth {
    /// Its name in the configuration.
    pub name: AgentName,
    /// Whether it is left out for now, because it kept failing.
    pub is_left_out: bool,
    /// How many runs it answered.
    pub answered: u64,
    /// How many runs it failed.
    pub failed: u64,
    /// The median time of its recent answers; `None` if there are none.
    pub median: Option<Duration>,
    /// The time that 95 in 100 of its recent answers took at most; `None` if there are none. It is never less than the median.
    pub p95: Option<Duration>,
    /// The tokens that its runs reported, also those that failed or were stopped.
    pub usage: Usage,
    /// What its runs cost, as it says or by its price; `None` if neither is known.
    pub cost: Option<Cost>,
    /// Its latest error, without what it said, if its latest run failed.
    pub error: Option<String>,
}

/// An agent, or a client of one.
///
/// A run may be dropped at any await. When its deadline passes or the person cancels, the core cancels `cancel` and
/// drops the run up to two seconds later, so that the runtime can notify the agent.
#[async_trait]
pub trait AgentRuntime: Send + Sync + 'static {
    /// The kind, as the configuration names it, and the address: `openai llama3.1 at http://…`. No secrets.
    fn describe(&self) -> String;

    /// The maximum number of transcript lines that a run gets. 0 for a runtime with its own memory.
    fn history(&self) -> usize {
        0
    }

    /// The size of the largest file of this media type that a run reads, in bytes. `None`, the default, if it reads none of
    /// them.
    fn reads(&self, media_type: &str) -> Option<usize> {
        let _ = media_type;
        None
    }

    /// Whether the agent listens to recordings of this media type, and so understands what is said in them. No by default. One that does
    /// not gets no turn that was spoken and could not be written down, also if it [reads](Self::reads) any files.
    fn hears(&self, media_type: &str) -> bool {
        let _ = media_type;
        false
    }

    /// Whether the agent can seal its answer to the key of the asker ([`crate::AgentPerson::seal_to`]), and then gives no other. An agent that
    /// cannot gets no turn whose answer is to be sealed.
    fn seals(&self) -> bool {
        false
    }

    /// Whether the agent has a memory of its own, in which it keeps sessions: only then its sessions are stored and it is
    /// [told](Self::session_changed) what happens to them.
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// Whether something outside of this process may do a run, and go on with it when the process ends.
    fn hands_out(&self) -> bool {
        false
    }

    /// Whether a run can begin in this process: not if workers fetch the agent's turns, and none is at work or has asked for one lately.
    /// While another node has a worker of the agent, a node without one begins no runs. Of a cascade: whether each member has one.
    fn has_worker(&self) -> bool {
        true
    }

    /// Whether turns wait for a worker of the agent, and none has asked for one lately.
    fn needs_worker(&self) -> bool {
        false
    }

    /// Withdraws a run that waits for a worker. Called while another node has a worker and this node has none. `true`: no worker has had
    /// the run or can get it any more, and the run is dropped. `false`, the default: the run goes on. Not called for the run after one that
    /// was withdrawn, nor once a member of a cascade has failed.
    fn withdraw(&self, turn: TurnId, attempt: u32) -> bool {
        let _ = (turn, attempt);
        false
    }

    /// Whether the agent can forget one turn of a session. If not, its own id of the session is forgotten with the turn: the next run
    /// gets none, also after a restart.
    fn forgets_turns(&self) -> bool {
        true
    }

    /// Makes the agent forget, or leave, what it keeps of a session. Called for each change of a session of which the agent was given
    /// a turn: after the change, and not in a run. It may be called twice for one change, also at the same time as a run, and for a
    /// session or a turn that the agent does not know, or no longer: that is no error. One that takes longer than 30 seconds has
    /// failed, and may be dropped at any await.
    ///
    /// # Errors
    /// When the agent may still remember: it is called again, for a week, with growing pauses.
    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        let _ = notice;
        Ok(())
    }

    /// Whether a [probe](Self::probe) asks anything. No by default: then nobody is woken to call it.
    fn has_probe(&self) -> bool {
        false
    }

    /// Asks whether the agent can be reached, without giving it a turn. Called now and then while it is idle, and dropped after
    /// ten seconds. `None`, the default: nothing was asked.
    async fn probe(&self) -> Option<Result<(), AgentError>> {
        None
    }

    /// The agents of which one answers in its place, as their latest runs for it went. None by default.
    fn members(&self) -> Vec<MemberHealth> {
        Vec::new()
    }

    /// The names of its [members](Self::members). Called before each run of an agent with a budget.
    fn member_names(&self) -> Vec<AgentName> {
        self.members().into_iter().map(|member| member.name).collect()
    }

    /// Runs the agent on `turn`.
    ///
    /// # Errors
    /// When it ended without an outcome.
    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError>;
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::model::ApprovalState;

    /// What becomes of a decision that is sent to a member which may have stopped to wait.
    #[tokio::test]
    async fn a_member_is_told_once_it_has_received_the_decision() {
        for listens in [true, false] {
            let request = ApprovalRequest::action("pay");
            let (state, by, note) = (ApprovalState::Approved, None, None);
            let decided = AgentApproval { request: request.clone(), state, by, note, chosen: None, is_used: false };
            let (events, mut reported) = RunEvents::channel();
            let (member, mut of_member) = events.of_member();
            let mut asking = Box::pin(member.ask_approval(request));
            assert!(asking.as_mut().now_or_never().is_none());
            let Some(RunEvent::Ask(request, taken_back, to_member)) = of_member.recv().await else { panic!("it asks") };
            let mut passed_on = Box::pin(events.ask_approval_for_member(request, taken_back));
            assert!(passed_on.as_mut().now_or_never().is_none());
            let Some(RunEvent::Ask(_, _, answer)) = reported.recv().await else { panic!("it is asked") };

            answer.send(Ok(decided)).expect("it waits");
            to_member.send(passed_on.await).expect("it waits still");
            assert_eq!(events.told().load(Ordering::SeqCst), 0, "nothing was received");
            if listens {
                asking.await.expect("it is told");
            } else {
                drop(asking);
            }

            assert_eq!(events.told().load(Ordering::SeqCst), u64::from(listens));
        }
    }

    /// Runtimes repeat what people wrote.
    #[test]
    fn a_stored_error_is_told_without_the_words_of_the_runtime() {
        let words = || "404 am: the secret".to_owned();
        let refused = AgentError::Refused { status: "429 Too Many Requests".to_owned(), message: words() };
        let cases = [
            (AgentError::Unreachable("no route".to_owned()), "the agent cannot be reached: no route"),
            (AgentError::Stalled("no output".to_owned()), "the agent stalled: no output"),
            (refused, "the agent failed: 429"),
            (AgentError::Refused { status: "-32000".to_owned(), message: words() }, "the agent failed"),
            (AgentError::Failed("the secret".to_owned()), "the agent failed"),
            (AgentError::Failed("é".to_owned()), "the agent failed"),
            (AgentError::Broken(words()), "the agent's answer is invalid"),
        ];
        for (error, summary) in cases {
            assert_eq!(AgentError::summary_of(&error.to_string()), summary, "{error:?}");
        }
        assert_eq!(AgentError::summary_of("the agent's runtime panicked: the secret"), "the agent's runtime panicked");
        assert_eq!(AgentError::summary_of("no answer after run 3"), "no answer after run 3");
    }
}
