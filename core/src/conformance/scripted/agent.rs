//! An agent that follows a script.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::{ApprovalRequest, Choices, Outcome, Reply};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{
        agent::{AgentApproval, AgentName, AgentTurn},
        agent_session::SessionNotice,
        ids::TurnId,
        run::{Activity, ActivityState, Cost, ModelInput, ToolUse, Usage},
        schedule::{Schedule, ScheduleCall},
    },
    ports::{
        agent::{AgentError, AgentRuntime, MemberHealth, RunEvents, SendResult},
        clock::SharedClock,
    },
};

/// The steps and the end of one run of an agent.
#[derive(Clone, Debug)]
pub struct Script {
    /// The steps, in order.
    pub steps: Vec<ScriptStep>,
    /// The end after the last step.
    pub end: ScriptEnd,
    /// Whether it continues when it is cancelled.
    pub ignores_cancel: bool,
}

/// One step of a run.
#[derive(Clone, Debug)]
pub enum ScriptStep {
    /// Sleeps on the agent's clock.
    Take(Duration),
    /// Waits at a gate, or until the run is cancelled.
    Wait(Gate),
    /// Streams a piece of text.
    Stream(String),
    /// Streams this text in place of all that it has streamed.
    Rewrite(String),
    /// Reports a tool call.
    Tool(ToolUse),
    /// Reports what it does.
    Act(Activity),
    /// Reports what it thinks.
    Think(String),
    /// Reports what the model is shown.
    Show(ModelInput),
    /// Reports the tokens consumed so far.
    Use(Usage),
    /// Reports what it has cost so far.
    Cost(Cost),
    /// Reports what the session is about.
    Title(String),
    /// Reports which member is asked in its place.
    Ask(AgentName),
    /// Sends a message to the conversation, as the turn's answer.
    Send(String),
    /// Wants this of the schedules.
    Schedule(ScheduleCall),
    /// Takes in the messages that came since the run began.
    Listen,
    /// Asks for an approval and waits for it; with a duration, for so long at the most.
    AskApproval(ApprovalRequest, Option<Duration>),
    /// Asks for an approval, and stops to wait after this time without having looked at the decision.
    AskApprovalUnheard(ApprovalRequest, Duration),
    /// Asks for an approval, takes it back after this time, and waits until it is told so.
    TakeBackApproval(ApprovalRequest, Duration),
    /// The same, and does not wait.
    TakeBackApprovalUnheard(ApprovalRequest, Duration),
    /// Stores this as its own id of the session.
    Remember(String),
    /// Stores this as who does the run outside of the process.
    HandOut(String),
}

/// How a run ends.
#[derive(Clone, Debug)]
pub enum ScriptEnd {
    /// With this outcome.
    Outcome(Outcome),
    /// With a deferral.
    Defer {
        /// The deferral's text; `None` for the operator's template.
        note: Option<String>,
        /// How long after the end of the run the answer is due.
        within: Duration,
    },
    /// It wants this of the schedules, and answers with their names, or with why it is not done.
    Schedule(ScheduleCall),
    /// With an error of this text.
    Fail(String),
    /// With this HTTP status, if the agent is called over HTTP; otherwise with an error.
    Refuse(u16),
    /// With a panic.
    Panic,
    /// Never.
    Hang,
}

/// A gate that a run waits at until the test lets it through.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    /// A closed gate.
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets all runs through, now and later.
    pub fn open(&self) {
        self.0.close();
    }

    /// Lets one run through, now or later.
    pub fn release_one(&self) {
        self.0.add_permits(1);
    }

    /// Waits until the gate lets the caller through.
    pub async fn wait(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Script {
    /// Replies with `text`.
    #[must_use]
    pub fn replies(text: &str) -> Self {
        Self::ends(ScriptEnd::Outcome(Outcome::Reply(Reply::text(text))))
    }

    /// Replies with `reply`, its files included.
    #[must_use]
    pub const fn answers(reply: Reply) -> Self {
        Self::ends(ScriptEnd::Outcome(Outcome::Reply(reply)))
    }

    /// Asks a question with these choices, which never expires.
    #[must_use]
    pub fn asks(question: &str, choices: &[&str]) -> Self {
        let options = choices.iter().map(|choice| (*choice).to_owned()).collect();
        Self::answers(Reply::question(question, Choices { options, free_text: true, expires: None }))
    }

    /// Asks for the approval of an action of this kind.
    #[must_use]
    pub fn asks_approval(action: &str, kind: Option<&str>) -> Self {
        Self::ends(ScriptEnd::Outcome(Outcome::Approval(request(action, kind))))
    }

    /// Adds a step that asks for the approval of an action of this kind, and waits for it.
    #[must_use]
    pub fn asking_approval(self, action: &str, kind: Option<&str>) -> Self {
        self.doing(ScriptStep::AskApproval(request(action, kind), None))
    }

    /// The same, for so long at the most.
    #[must_use]
    pub fn asking_approval_for(self, action: &str, patience: Duration) -> Self {
        self.doing(ScriptStep::AskApproval(request(action, None), Some(patience)))
    }

    /// Asks for approval, and stops to wait after `time`, without having looked whether it was decided.
    #[must_use]
    pub fn asking_approval_unheard(self, action: &str, time: Duration) -> Self {
        self.doing(ScriptStep::AskApprovalUnheard(request(action, None), time))
    }

    /// Adds a step that asks for approval and takes that back after `time`.
    #[must_use]
    pub fn taking_approval_back(self, action: &str, time: Duration) -> Self {
        self.doing(ScriptStep::TakeBackApproval(request(action, None), time))
    }

    /// The same, and goes on at once.
    #[must_use]
    pub fn taking_approval_back_unheard(self, action: &str, time: Duration) -> Self {
        self.doing(ScriptStep::TakeBackApprovalUnheard(request(action, None), time))
    }

    /// Adds a step that asks the person this question, and waits for the answer.
    #[must_use]
    pub fn asking_person(self, question: &str, options: &[&str], free_text: bool) -> Self {
        self.doing(ScriptStep::AskApproval(to_person(question, options, free_text), None))
    }

    /// Adds a step that asks the person this question with these choices, and takes it back after `time`.
    #[must_use]
    pub fn taking_question_back(self, question: &str, options: &[&str], time: Duration) -> Self {
        self.doing(ScriptStep::TakeBackApproval(to_person(question, options, false), time))
    }

    /// Reacts to the message with `emoji`.
    #[must_use]
    pub fn reacts(emoji: &str) -> Self {
        Self::ends(ScriptEnd::Outcome(Outcome::React(emoji.to_owned())))
    }

    /// Ends in silence for `reason`.
    #[must_use]
    pub fn is_silent(reason: &str) -> Self {
        Self::ends(ScriptEnd::Outcome(Outcome::Silent(reason.to_owned())))
    }

    /// Defers the answer, due `within` this time after the end of the run.
    #[must_use]
    pub fn defers(note: Option<&str>, within: Duration) -> Self {
        Self::ends(ScriptEnd::Defer { note: note.map(str::to_owned), within })
    }

    /// Makes, shows or removes schedules; see [`ScriptEnd::Schedule`].
    #[must_use]
    pub const fn schedules(call: ScheduleCall) -> Self {
        Self::ends(ScriptEnd::Schedule(call))
    }

    /// Fails with the error text `why`.
    #[must_use]
    pub fn fails(why: &str) -> Self {
        Self::ends(ScriptEnd::Fail(why.to_owned()))
    }

    /// Fails with this HTTP status; see [`ScriptEnd::Refuse`].
    #[must_use]
    pub const fn refuses(status: u16) -> Self {
        Self::ends(ScriptEnd::Refuse(status))
    }

    /// Panics after its steps.
    #[must_use]
    pub const fn panics() -> Self {
        Self::ends(ScriptEnd::Panic)
    }

    /// Never ends.
    #[must_use]
    pub const fn hangs() -> Self {
        Self::ends(ScriptEnd::Hang)
    }

    /// Adds a step that sleeps for `time`.
    #[must_use]
    pub fn taking(self, time: Duration) -> Self {
        self.doing(ScriptStep::Take(time))
    }

    /// Adds a step that waits at a gate.
    #[must_use]
    pub fn waiting(self, gate: &Gate) -> Self {
        self.doing(ScriptStep::Wait(gate.clone()))
    }

    /// Adds a step that streams a piece of text.
    #[must_use]
    pub fn streaming(self, text: &str) -> Self {
        self.doing(ScriptStep::Stream(text.to_owned()))
    }

    /// Adds a step that reports what it does.
    #[must_use]
    pub fn acting(self, title: &str, state: ActivityState) -> Self {
        self.doing(ScriptStep::Act(Activity { title: title.to_owned(), state }))
    }

    /// Adds a step that reports what it thinks.
    #[must_use]
    pub fn thinking(self, more: &str) -> Self {
        self.doing(ScriptStep::Think(more.to_owned()))
    }

    /// Adds a step that replaces all streamed text by `text`.
    #[must_use]
    pub fn rewriting(self, text: &str) -> Self {
        self.doing(ScriptStep::Rewrite(text.to_owned()))
    }

    /// Adds a step that reports the use of a tool without arguments.
    #[must_use]
    pub fn using(self, tool: &str) -> Self {
        self.calling(tool, "{}", "")
    }

    /// Adds a step that reports a tool call.
    #[must_use]
    pub fn calling(self, tool: &str, arguments: &str, result: &str) -> Self {
        let (name, arguments, result) = (tool.to_owned(), arguments.to_owned(), result.to_owned());
        self.doing(ScriptStep::Tool(ToolUse { name, arguments, result, duration_ms: Some(12) }))
    }

    /// Adds a step that reports what the model is shown, as JSON.
    #[must_use]
    pub fn showing(self, settings: &str, messages: &str) -> Self {
        let (settings, messages) = (settings.to_owned(), messages.to_owned());
        self.doing(ScriptStep::Show(ModelInput { settings, messages, left_out: 0 }))
    }

    /// Adds a step that reports the tokens consumed so far.
    #[must_use]
    pub fn consuming(self, usage: Usage) -> Self {
        self.doing(ScriptStep::Use(usage))
    }

    /// Adds a step that reports what it has cost so far.
    #[must_use]
    pub fn costing(self, cost: Cost) -> Self {
        self.doing(ScriptStep::Cost(cost))
    }

    /// Adds a step that reports what the session is about.
    #[must_use]
    pub fn titling(self, title: &str) -> Self {
        self.doing(ScriptStep::Title(title.to_owned()))
    }

    /// Adds a step that reports which member is asked in its place.
    #[must_use]
    pub fn asking_member(self, name: &str) -> Self {
        self.doing(ScriptStep::Ask(name.into()))
    }

    /// Adds a step that sends a message as the turn's answer.
    #[must_use]
    pub fn sending(self, text: &str) -> Self {
        self.doing(ScriptStep::Send(text.to_owned()))
    }

    /// Adds a step that takes in the messages that came since the run began.
    #[must_use]
    pub fn listening(self) -> Self {
        self.doing(ScriptStep::Listen)
    }

    /// Adds a step that stores the agent's own id of the session.
    #[must_use]
    pub fn naming_session(self, own_session: &str) -> Self {
        self.doing(ScriptStep::Remember(own_session.to_owned()))
    }

    /// Adds a step that stores who does the run outside of the process.
    #[must_use]
    pub fn handing_out(self, holder: &str) -> Self {
        self.doing(ScriptStep::HandOut(holder.to_owned()))
    }

    /// Adds a step that makes, shows or removes schedules.
    #[must_use]
    pub fn scheduling(self, call: ScheduleCall) -> Self {
        self.doing(ScriptStep::Schedule(call))
    }

    /// Makes the run continue when it is cancelled.
    #[must_use]
    pub const fn ignoring_cancel(mut self) -> Self {
        self.ignores_cancel = true;
        self
    }

    const fn ends(end: ScriptEnd) -> Self {
        Self { steps: Vec::new(), end, ignores_cancel: false }
    }

    fn doing(mut self, step: ScriptStep) -> Self {
        self.steps.push(step);
        self
    }
}

/// A run that the agent has begun.
#[derive(Clone, Debug)]
pub struct ScriptedRun {
    /// The agent's input.
    pub turn: AgentTurn,
    /// The results of its own sends so far, in order.
    pub sent: Vec<SendResult>,
    /// The texts of the messages that it took in while it ran.
    pub heard: Vec<String>,
    /// What it was told of the approvals that it waited for.
    pub told: Vec<Result<AgentApproval, String>>,
}

fn request(action: &str, kind: Option<&str>) -> ApprovalRequest {
    ApprovalRequest { kind: kind.map(str::to_owned), ..ApprovalRequest::action(action) }
}

fn to_person(question: &str, options: &[&str], free_text: bool) -> ApprovalRequest {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    ApprovalRequest::question(question, Choices { options, free_text, expires: None })
}

/// Chooses the script of a run.
type Director = Box<dyn Fn(&AgentTurn) -> Script + Send + Sync>;

/// An agent that follows the scripts of a test.
#[expect(clippy::struct_excessive_bools, reason = "each is what a runtime says of itself")]
pub struct ScriptedAgent {
    clock: SharedClock,
    director: Director,
    history: usize,
    reads: &'static [&'static str],
    keeps_sessions: bool,
    forgets_turns: bool,
    hands_out: bool,
    has_worker: bool,
    withdraws: bool,
    seals: bool,
    members: Vec<MemberHealth>,
    notices: Mutex<Vec<SessionNotice>>,
    fails_notices: AtomicBool,
    slow_notices: Duration,
    runs: Mutex<Vec<ScriptedRun>>,
    run_count: watch::Sender<usize>,
    steps: AtomicU64,
}

impl std::fmt::Debug for ScriptedAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedAgent").finish_non_exhaustive()
    }
}

impl ScriptedAgent {
    /// Makes an agent that sleeps on `clock`; `director` chooses the script of each run.
    pub fn new(clock: SharedClock, director: impl Fn(&AgentTurn) -> Script + Send + Sync + 'static) -> Self {
        Self {
            clock,
            director: Box::new(director),
            history: 0,
            reads: &[],
            keeps_sessions: false,
            forgets_turns: true,
            hands_out: false,
            has_worker: true,
            withdraws: false,
            seals: false,
            members: Vec::new(),
            notices: Mutex::default(),
            fails_notices: AtomicBool::new(false),
            slow_notices: Duration::ZERO,
            runs: Mutex::default(),
            run_count: watch::Sender::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// Makes it ask for `lines` lines of history.
    #[must_use]
    pub fn remembering(mut self, lines: usize) -> Self {
        self.history = lines;
        self
    }

    /// Makes it ask for the bytes of files whose media type begins with one of `media_types`.
    #[must_use]
    pub const fn reading(mut self, media_types: &'static [&'static str]) -> Self {
        self.reads = media_types;
        self
    }

    /// Makes it one that can seal its answers.
    #[must_use]
    pub const fn sealing(mut self) -> Self {
        self.seals = true;
        self
    }

    /// Makes it keep sessions in a memory of its own.
    #[must_use]
    pub const fn keeping_sessions(mut self) -> Self {
        self.keeps_sessions = true;
        self
    }

    /// Makes something outside of the process do its runs.
    #[must_use]
    pub const fn handing_out(mut self) -> Self {
        self.hands_out = true;
        self
    }

    /// Makes it one whose workers are at another node.
    #[must_use]
    pub const fn without_worker(mut self) -> Self {
        self.has_worker = false;
        self
    }

    /// Makes it one that lets its runs be withdrawn: no worker has had them.
    #[must_use]
    pub const fn withdrawing(mut self) -> Self {
        self.withdraws = true;
        self
    }

    /// Makes it keep sessions that it can only forget as a whole.
    #[must_use]
    pub const fn keeping_whole_sessions(mut self) -> Self {
        (self.keeps_sessions, self.forgets_turns) = (true, false);
        self
    }

    /// Makes it take this long when it is told what happens to a session.
    #[must_use]
    pub const fn taking_for_notices(mut self, time: Duration) -> Self {
        self.slow_notices = time;
        self
    }

    /// Makes it one in whose place others answer.
    #[must_use]
    pub fn with_members(mut self, names: &[&str]) -> Self {
        let member = |name: &&str| MemberHealth { name: (*name).into(), ..MemberHealth::default() };
        self.members = names.iter().map(member).collect();
        self
    }

    /// Makes it fail when it is told what happens to its sessions, or not.
    pub fn fail_notices(&self, fails: bool) {
        self.fails_notices.store(fails, Ordering::SeqCst);
    }

    /// What it was told of its sessions, in order, also when it failed.
    #[must_use]
    pub fn notices(&self) -> Vec<SessionNotice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it has been given this many runs.
    ///
    /// # Panics
    /// Never: the agent holds the sender.
    pub async fn wait_for_runs(&self, runs: usize) {
        self.run_count.subscribe().wait_for(|count| *count >= runs).await.expect("the agent lives");
    }

    /// The runs it was given, in order.
    #[must_use]
    pub fn runs(&self) -> Vec<ScriptedRun> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The id and text of the turn of each run, in order.
    #[must_use]
    pub fn turns(&self) -> Vec<(TurnId, String)> {
        self.runs().into_iter().map(|run| (run.turn.turn, run.turn.message.text)).collect()
    }

    /// The number of steps begun, ends included. It stops growing when the agent is idle.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl AgentRuntime for ScriptedAgent {
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    fn history(&self) -> usize {
        self.history
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        self.reads.iter().any(|read| media_type.starts_with(read)).then_some(usize::MAX)
    }

    fn hears(&self, media_type: &str) -> bool {
        media_type.starts_with("audio/") && self.reads(media_type).is_some()
    }

    fn seals(&self) -> bool {
        self.seals
    }

    fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    fn forgets_turns(&self) -> bool {
        self.forgets_turns
    }

    fn hands_out(&self) -> bool {
        self.hands_out
    }

    fn has_worker(&self) -> bool {
        self.has_worker
    }

    fn withdraw(&self, _: TurnId, _: u32) -> bool {
        self.withdraws
    }

    fn members(&self) -> Vec<MemberHealth> {
        self.members.clone()
    }

    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        if !self.slow_notices.is_zero() {
            self.clock.sleep(self.slow_notices).await;
        }
        if self.fails_notices.load(Ordering::SeqCst) {
            return Err(AgentError::Failed("it does not forget".to_owned()));
        }
        Ok(())
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let script = (self.director)(&turn);
        if script.ignores_cancel {
            return self.act(script, turn, events).await;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AgentError::Failed("it was cancelled".to_owned())),
            outcome = self.act(script, turn, events) => outcome,
        }
    }
}

impl ScriptedAgent {
    async fn patience(&self, patience: Option<Duration>) {
        match patience {
            Some(patience) => self.clock.sleep(patience).await,
            None => std::future::pending().await,
        }
    }

    async fn act(&self, script: Script, turn: AgentTurn, events: RunEvents) -> Result<Outcome, AgentError> {
        let index = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push(ScriptedRun { turn, sent: Vec::new(), heard: Vec::new(), told: Vec::new() });
            runs.len() - 1
        };
        self.run_count.send_modify(|count| *count += 1);
        for step in script.steps {
            self.steps.fetch_add(1, Ordering::SeqCst);
            match step {
                ScriptStep::Take(time) => self.clock.sleep(time).await,
                ScriptStep::Wait(gate) => gate.wait().await,
                ScriptStep::Stream(text) => events.text(text).await,
                ScriptStep::Rewrite(text) => events.rewrite(text).await,
                ScriptStep::Tool(call) => events.tool(call).await,
                ScriptStep::Act(Activity { title, state }) => events.activity(title, state).await,
                ScriptStep::Think(more) => events.thought(more).await,
                ScriptStep::Show(input) => events.shown(input).await,
                ScriptStep::Use(usage) => events.usage(usage).await,
                ScriptStep::Cost(cost) => events.cost(cost).await,
                ScriptStep::Title(title) => events.title(title).await,
                ScriptStep::Ask(member) => events.member(member).await,
                ScriptStep::Send(text) => {
                    let sent = events.send(Reply::text(text)).await;
                    self.runs.lock().unwrap_or_else(PoisonError::into_inner)[index].sent.push(sent);
                }
                ScriptStep::Schedule(call) => drop(events.schedule(call).await),
                ScriptStep::AskApproval(request, patience) => tokio::select! {
                    told = events.ask_approval(request) => {
                        self.runs.lock().unwrap_or_else(PoisonError::into_inner)[index].told.push(told);
                    }
                    () = self.patience(patience) => {}
                },
                ScriptStep::AskApprovalUnheard(request, time) => {
                    let mut asked = std::pin::pin!(events.ask_approval(request));
                    std::future::poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_ready())).await;
                    self.clock.sleep(time).await;
                }
                ScriptStep::TakeBackApprovalUnheard(request, time) => {
                    let taken_back = CancellationToken::new();
                    tokio::select! {
                        _ = events.ask_approval_unless(request, taken_back.clone()) => {}
                        () = self.clock.sleep(time) => taken_back.cancel(),
                    }
                }
                ScriptStep::TakeBackApproval(request, time) => {
                    let taken_back = CancellationToken::new();
                    let asked = events.ask_approval_unless(request, taken_back.clone());
                    let later = async {
                        self.clock.sleep(time).await;
                        taken_back.cancel();
                    };
                    let (told, ()) = tokio::join!(asked, later);
                    self.runs.lock().unwrap_or_else(PoisonError::into_inner)[index].told.push(told);
                }
                ScriptStep::HandOut(holder) => drop(events.hand_out(holder).await),
                ScriptStep::Remember(own_session) => drop(events.remember(own_session).await),
                ScriptStep::Listen => {
                    let heard = events.listen().await.into_iter().map(|message| message.text);
                    self.runs.lock().unwrap_or_else(PoisonError::into_inner)[index].heard.extend(heard);
                }
            }
        }
        self.steps.fetch_add(1, Ordering::SeqCst);
        match script.end {
            ScriptEnd::Outcome(outcome) => Ok(outcome),
            ScriptEnd::Defer { note, within } => Ok(Outcome::Defer { note, due: self.clock.now() + within }),
            ScriptEnd::Schedule(call) => {
                let names = |all: Vec<Schedule>| all.into_iter().map(|it| it.new.name).collect::<Vec<_>>().join(", ");
                let text = events.schedule(call).await.map_or_else(|why| why, names);
                Ok(Outcome::Reply(Reply::text(if text.is_empty() { "none".to_owned() } else { text })))
            }
            ScriptEnd::Fail(why) => Err(AgentError::Failed(why)),
            ScriptEnd::Refuse(status) => {
                Err(AgentError::Refused { status: status.to_string(), message: "refused".to_owned() })
            }
            ScriptEnd::Panic => panic!("a bug in the agent"),
            ScriptEnd::Hang => std::future::pending().await,
        }
    }
}
