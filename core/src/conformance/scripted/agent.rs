//! An agent that acts by a script.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_guard::{Outcome, Reply};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{
        agent::{AgentTurn, Usage},
        ids::TurnId,
    },
    ports::{
        agent::{AgentError, AgentRuntime, RunEvents, SendResult},
        clock::SharedClock,
    },
};

/// What an agent does in one run, step by step, and how it ends.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it does, in this order.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
    /// Whether it goes on when it is told to stop.
    pub ignores_cancel: bool,
}

/// What an agent does before it ends.
#[derive(Clone, Debug)]
pub enum Step {
    /// Takes so long.
    Take(Duration),
    /// Waits at a gate, or until the run is cancelled.
    Wait(Gate),
    /// Streams a piece of text.
    Stream(String),
    /// Streams this in place of all that it has streamed.
    Rewrite(String),
    /// Uses a tool of this name.
    Tool(String),
    /// Reports what it consumed.
    Use(Usage),
    /// Sends a message of its own.
    Send(String),
}

/// How a run ends.
#[derive(Clone, Debug)]
pub enum End {
    /// With an outcome.
    Outcome(Outcome),
    /// With a deferral.
    Defer {
        /// What the person is told.
        note: Option<String>,
        /// How long after the end of the run the answer is due.
        within: Duration,
    },
    /// With an error.
    Fail(String),
    /// With this status, where it is asked over HTTP; else with an error.
    Refuse(u16),
    /// With a panic.
    Panic,
    /// Never.
    Hang,
}

/// What a run waits for until the test lets it through.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    /// A closed one.
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets everybody through, now and later.
    pub fn opens(&self) {
        self.0.close();
    }

    /// Lets one through, now or later.
    pub fn lets_one_through(&self) {
        self.0.add_permits(1);
    }

    /// Waits to be let through.
    pub async fn passes(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl Script {
    /// Replies `text`.
    #[must_use]
    pub fn replies(text: &str) -> Self {
        Self::ends(End::Outcome(Outcome::Reply(Reply::text(text))))
    }

    /// Replies with `reply`, files and all.
    #[must_use]
    pub const fn answers(reply: Reply) -> Self {
        Self::ends(End::Outcome(Outcome::Reply(reply)))
    }

    /// Puts `emoji` on the message.
    #[must_use]
    pub fn reacts(emoji: &str) -> Self {
        Self::ends(End::Outcome(Outcome::React(emoji.to_owned())))
    }

    /// Chooses silence.
    #[must_use]
    pub fn is_silent(reason: &str) -> Self {
        Self::ends(End::Outcome(Outcome::Silent(reason.to_owned())))
    }

    /// Puts the answer off.
    #[must_use]
    pub fn defers(note: Option<&str>, within: Duration) -> Self {
        Self::ends(End::Defer { note: note.map(str::to_owned), within })
    }

    /// Fails.
    #[must_use]
    pub fn fails(why: &str) -> Self {
        Self::ends(End::Fail(why.to_owned()))
    }

    /// Refuses with this status of HTTP.
    #[must_use]
    pub const fn refuses(status: u16) -> Self {
        Self::ends(End::Refuse(status))
    }

    /// Panics.
    #[must_use]
    pub const fn panics() -> Self {
        Self::ends(End::Panic)
    }

    /// Never ends.
    #[must_use]
    pub const fn hangs() -> Self {
        Self::ends(End::Hang)
    }

    /// Takes so long, after what it did before.
    #[must_use]
    pub fn taking(self, time: Duration) -> Self {
        self.doing(Step::Take(time))
    }

    /// Waits at a gate, after what it did before.
    #[must_use]
    pub fn waiting(self, gate: &Gate) -> Self {
        self.doing(Step::Wait(gate.clone()))
    }

    /// Streams a piece of text, after what it did before.
    #[must_use]
    pub fn streaming(self, text: &str) -> Self {
        self.doing(Step::Stream(text.to_owned()))
    }

    /// Takes back what it streamed, and streams `text` in its place.
    #[must_use]
    pub fn rewriting(self, text: &str) -> Self {
        self.doing(Step::Rewrite(text.to_owned()))
    }

    /// Uses a tool, after what it did before.
    #[must_use]
    pub fn using(self, tool: &str) -> Self {
        self.doing(Step::Tool(tool.to_owned()))
    }

    /// Reports what it consumed, after what it did before.
    #[must_use]
    pub fn consuming(self, usage: Usage) -> Self {
        self.doing(Step::Use(usage))
    }

    /// Sends a message of its own, after what it did before.
    #[must_use]
    pub fn sending(self, text: &str) -> Self {
        self.doing(Step::Send(text.to_owned()))
    }

    /// Goes on when it is told to stop.
    #[must_use]
    pub const fn ignoring_cancel(mut self) -> Self {
        self.ignores_cancel = true;
        self
    }

    const fn ends(end: End) -> Self {
        Self { steps: Vec::new(), end, ignores_cancel: false }
    }

    fn doing(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// A run that an agent was given.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it was given.
    pub turn: AgentTurn,
    /// What became of its own sends, so far.
    pub sent: Vec<SendResult>,
}

/// Gives the script of a run.
type Director = Box<dyn Fn(&AgentTurn) -> Script + Send + Sync>;

/// An agent that acts by the scripts of a test.
pub struct ScriptedAgent {
    clock: SharedClock,
    director: Director,
    history: usize,
    reads: &'static [&'static str],
    runs: Mutex<Vec<Run>>,
    given: watch::Sender<usize>,
    steps: AtomicU64,
}

impl std::fmt::Debug for ScriptedAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedAgent").finish_non_exhaustive()
    }
}

impl ScriptedAgent {
    /// An agent that takes its time on `clock`, and whose script for each run `director` gives.
    pub fn new(clock: SharedClock, director: impl Fn(&AgentTurn) -> Script + Send + Sync + 'static) -> Self {
        Self {
            clock,
            director: Box::new(director),
            history: 0,
            reads: &[],
            runs: Mutex::default(),
            given: watch::Sender::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// The same agent, wanting so many lines of history.
    #[must_use]
    pub fn remembering(mut self, lines: usize) -> Self {
        self.history = lines;
        self
    }

    /// The same agent, reading files whose media type begins with one of these.
    #[must_use]
    pub const fn reading(mut self, media_types: &'static [&'static str]) -> Self {
        self.reads = media_types;
        self
    }

    /// Waits until it was given so many runs.
    ///
    /// # Panics
    /// Never: the agent holds what it waits for.
    pub async fn given(&self, runs: usize) {
        self.given.subscribe().wait_for(|given| *given >= runs).await.expect("the agent lives");
    }

    /// The runs it was given, in order.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The turns it was given, in order, with what was said.
    #[must_use]
    pub fn turns(&self) -> Vec<(TurnId, String)> {
        self.runs().into_iter().map(|run| (run.turn.turn, run.turn.text)).collect()
    }

    /// How many steps it made: it stands still when the agent does.
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

    fn reads(&self, media_type: &str) -> bool {
        self.reads.iter().any(|read| media_type.starts_with(read))
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let script = (self.director)(&turn);
        if script.ignores_cancel {
            return self.act(script, turn, events).await;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AgentError::Failed("it was told to stop".to_owned())),
            outcome = self.act(script, turn, events) => outcome,
        }
    }
}

impl ScriptedAgent {
    async fn act(&self, script: Script, turn: AgentTurn, events: RunEvents) -> Result<Outcome, AgentError> {
        let index = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push(Run { turn, sent: Vec::new() });
            runs.len() - 1
        };
        self.given.send_modify(|given| *given += 1);
        for step in script.steps {
            self.steps.fetch_add(1, Ordering::SeqCst);
            match step {
                Step::Take(time) => self.clock.sleep(time).await,
                Step::Wait(gate) => gate.passes().await,
                Step::Stream(text) => events.text(text).await,
                Step::Rewrite(text) => events.rewrite(text).await,
                Step::Tool(name) => events.tool(name).await,
                Step::Use(usage) => events.usage(usage).await,
                Step::Send(text) => {
                    let sent = events.send(Reply::text(text)).await;
                    self.runs.lock().unwrap_or_else(PoisonError::into_inner)[index].sent.push(sent);
                }
            }
        }
        self.steps.fetch_add(1, Ordering::SeqCst);
        match script.end {
            End::Outcome(outcome) => Ok(outcome),
            End::Defer { note, within } => Ok(Outcome::Defer { note, due: self.clock.now() + within }),
            End::Fail(why) => Err(AgentError::Failed(why)),
            End::Refuse(status) => Err(AgentError::Failed(status.to_string())),
            End::Panic => panic!("a bug of the agent's"),
            End::Hang => std::future::pending().await,
        }
    }
}
