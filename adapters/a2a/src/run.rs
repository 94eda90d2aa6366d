//! One run: a message, the task that the agent makes of it, and the outcome.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_agents::{Takes, prompt::blocks, redacted_url, report::Report, sessions::Sessions};
use rejoinder_core::{
    ActivityState, AgentError, AgentName, AgentRuntime, AgentTurn, Backoff, Outcome, Reply, RunEvents, SessionNotice,
    is_blank,
};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    A2aSection,
    answer::{self, Answer, DraftChange},
    call_error::CallError,
    card::Endpoint,
    connection::{Connection, EventStream},
    memory::{Begin, MAX_ID, Memory, Slot, TaskMemory, messages},
    message,
    protocol::{Event, INVALID_PARAMS, Method, RpcError, State, Status, TASK_NOT_FOUND, Task, UNSUPPORTED_OPERATION},
    task::RunTask,
};

/// How often in a row the state of a task may not be told.
const MAX_FAILURES: usize = 5;

/// How long an agent is read whose answer is full: its files and its end may follow.
const REST: Duration = Duration::from_secs(2);

/// An agent with the Agent2Agent protocol.
pub struct A2a {
    name: AgentName,
    settings: A2aSection,
    connection: Arc<Connection>,
    sessions: Sessions<Slot>,
}

impl fmt::Debug for A2a {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2a").field("name", &self.name).field("at", &self.describe()).finish_non_exhaustive()
    }
}

impl A2a {
    /// Sends nothing yet. `http` must follow no redirects and have no timeout for whole requests: an answer may take minutes.
    ///
    /// # Errors
    /// Says which header cannot be sent.
    pub fn new(name: AgentName, settings: A2aSection, http: reqwest::Client) -> Result<Self, String> {
        let connection = Arc::new(Connection::new(&settings, http)?);
        Ok(Self { name, settings, connection, sessions: Sessions::default() })
    }

    async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        // The turn has what was said until now: a context of it is not kept if something is removed while the card is read.
        let slot = self.sessions.of(turn.place.session);
        let Begin { epoch, memory, may_go_on } = slot.begin(turn.place.own_session.as_deref());
        let endpoint = self.connection.endpoint().await?;
        let mut run = Run::new(self, turn, events, (slot, epoch), endpoint);
        // Otherwise an earlier run of the turn in this process has canceled its task.
        if may_go_on && let Some(begun) = memory.as_ref().and_then(|memory| memory.begun_for(turn)) {
            let begun = begun.id.clone();
            run.memory.clone_from(&memory);
            // A later run of this process begins with what becomes of this one.
            if let Some(memory) = memory.clone() {
                run.slot.keep(run.epoch, memory);
            }
            // If this run ends before the task has answered, nobody follows it.
            run.task.goes_on(&begun);
            if let Some(outcome) = run.resume(&begun).await? {
                return Ok(outcome);
            }
            run.task.ended();
        }
        let is_known = memory.is_some();
        match run.ask(memory).await {
            // A server that was started again may have lost what it knew.
            Err(RunError::Call(CallError::Rpc(error))) if is_known && is_lost(&error) && !run.has_begun => {
                debug!(
                    agent = &*self.name,
                    code = error.code,
                    "an agent does not go on in a context, another one is begun"
                );
                run.slot.forget(run.epoch);
                Ok(run.ask(None).await?)
            }
            ended => Ok(ended?),
        }
    }
}

/// Whether a message is refused because of the context or the task in which it is sent.
const fn is_lost(error: &RpcError) -> bool {
    matches!(error.code, TASK_NOT_FOUND | UNSUPPORTED_OPERATION | INVALID_PARAMS)
}

#[async_trait]
impl AgentRuntime for A2a {
    fn describe(&self) -> String {
        format!("a2a at {}", redacted_url(&self.settings.url))
    }

    fn history(&self) -> usize {
        if self.settings.introduction { self.settings.history_messages as usize } else { 0 }
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        Takes::PICTURES.largest(media_type)
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    fn forgets_turns(&self) -> bool {
        false
    }

    /// The context of a session that is deleted, or from which a turn is taken, is not used any more: the next turn begins another one,
    /// with what is left of the transcript. The protocol has no way to delete one.
    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        self.sessions.changed(&notice);
        Ok(())
    }

    fn has_probe(&self) -> bool {
        true
    }

    async fn probe(&self) -> Option<Result<(), AgentError>> {
        Some(self.connection.read_card().await.map(drop))
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        tokio::select! {
            biased;
            outcome = self.answer(&turn, &events) => outcome,
            // The task, which is gone, is canceled.
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
        }
    }
}

/// Why a message has no answer.
enum RunError {
    Call(CallError),
    Agent(AgentError),
}

impl From<CallError> for RunError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<AgentError> for RunError {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl From<RunError> for AgentError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Call(error) => error.into(),
            RunError::Agent(error) => error,
        }
    }
}

/// What a run has heard of the agent so far.
struct Run<'a> {
    a2a: &'a A2a,
    turn: &'a AgentTurn,
    events: &'a RunEvents,
    slot: Arc<Slot>,
    /// The slot's when the run began.
    epoch: u64,
    endpoint: Arc<Endpoint>,
    memory: Option<Memory>,
    task: RunTask,
    report: Report<'a>,
    answer: Answer,
    /// What the agent said last of its progress.
    activity: Option<String>,
    /// Whether the agent has answered anything.
    has_begun: bool,
    /// Whether the message answers a question of a task.
    goes_on: bool,
}

impl<'a> Run<'a> {
    fn new(
        a2a: &'a A2a,
        turn: &'a AgentTurn,
        events: &'a RunEvents,
        (slot, epoch): (Arc<Slot>, u64),
        endpoint: Arc<Endpoint>,
    ) -> Self {
        let task = RunTask::new(Arc::clone(&a2a.connection), Arc::clone(&endpoint));
        let (report, answer) = (Report::to(events), Answer::default());
        Self {
            a2a,
            turn,
            events,
            slot,
            epoch,
            endpoint,
            memory: None,
            task,
            report,
            answer,
            activity: None,
            has_begun: false,
            goes_on: false,
        }
    }

    /// Sends the message of the turn, and follows what the agent makes of it. `memory`: where it goes on.
    async fn ask(&mut self, memory: Option<Memory>) -> Result<Outcome, RunError> {
        let A2a { name, settings, connection, .. } = self.a2a;
        let blocks = message::blocks(self.turn, settings, &self.endpoint, memory.as_ref());
        let input = json!({ "agent": &**name, "at": redacted_url(&self.endpoint.url) });
        self.report.shown(blocks::shown(&input, &blocks)).await;
        let params = message::params(self.turn, &blocks, &self.endpoint, memory.as_ref());
        let waiting = memory.as_ref().and_then(Memory::waiting).map(ToOwned::to_owned);
        self.goes_on = waiting.is_some();
        self.memory = memory;
        if let Some(waiting) = waiting {
            self.task.goes_on(&waiting);
        }
        let (endpoint, trace) = (Arc::clone(&self.endpoint), self.turn.trace.as_ref());
        if endpoint.streams {
            let mut stream = connection.stream(&endpoint, Method::SendStreamingMessage, params, trace).await?;
            if let Some(outcome) = self.read(&mut stream).await? {
                return Ok(outcome);
            }
        } else if let Some(outcome) = self.take(connection.send_message(&endpoint, params, trace).await?).await? {
            return Ok(outcome);
        }
        match self.task.id() {
            Some(id) => Ok(self.follow(id.to_owned()).await?),
            None => Err(CallError::Broken("it ended before it had answered".to_owned()).into()),
        }
    }

    /// Reads the stream to the outcome. `None`: it ended before. An answer that is full is the outcome if the agent does not end it shortly
    /// after, and its task is canceled.
    async fn read(&mut self, stream: &mut EventStream<'_>) -> Result<Option<Outcome>, RunError> {
        let mut until = None;
        loop {
            let next = match until {
                None => stream.next().await,
                Some(until) => timeout_at(until, stream.next()).await.unwrap_or(Ok(None)),
            };
            match next {
                Ok(Some(event)) => {
                    if let Some(outcome) = self.take(event).await? {
                        return Ok(Some(outcome));
                    }
                    until = self.answer.is_full().then(|| until.unwrap_or_else(|| Instant::now() + REST));
                    if until.is_some_and(|until| until <= Instant::now()) {
                        return Ok(Some(self.reply("").await?));
                    }
                }
                Ok(None) | Err(_) if self.answer.is_full() => return Ok(Some(self.reply("").await?)),
                Ok(None) => return Ok(None),
                // The agent goes on with a task that it has named.
                Err(error) if error.is_passing() && self.task.id().is_some() => {
                    debug!(agent = &*self.a2a.name, ?error, "the stream of a task broke");
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Follows the task that an earlier run of the turn has begun. `None`: there is nothing to follow.
    async fn resume(&mut self, id: &str) -> Result<Option<Outcome>, AgentError> {
        match self.a2a.connection.about_task::<Task>(&self.endpoint, Method::GetTask, id).await {
            Ok(task) if matches!(task.status.state, State::Failed | State::Canceled | State::Rejected) => Ok(None),
            Ok(task) => match self.take_task(task).await? {
                Some(outcome) => Ok(Some(outcome)),
                None => self.follow(id.to_owned()).await.map(Some),
            },
            Err(CallError::Rpc(error)) if is_lost(&error) => {
                debug!(agent = &*self.a2a.name, code = error.code, "an agent does not know a task any more");
                Ok(None)
            }
            Err(error) => {
                if error.is_unanswered() {
                    self.slot.leave(self.epoch);
                    self.task.ended();
                } else {
                    // Another run would not get further: the task is canceled.
                    self.task.named(id);
                }
                Err(error.of_begun())
            }
        }
    }

    /// Follows a task without the stream in which it began: by its state, and by another stream if the agent has one.
    async fn follow(&mut self, id: String) -> Result<Outcome, AgentError> {
        let connection = &self.a2a.connection;
        let (endpoint, mut backoff, mut failures) = (Arc::clone(&self.endpoint), Backoff::default(), 0);
        let mut subscribes = endpoint.streams;
        loop {
            match connection.about_task::<Task>(&endpoint, Method::GetTask, &id).await {
                Ok(task) => {
                    failures = 0;
                    if let Some(outcome) = self.take_task(task).await? {
                        return Ok(outcome);
                    }
                    if self.answer.is_full() {
                        return self.reply("").await;
                    }
                }
                Err(error) if error.is_passing() && failures < MAX_FAILURES => failures += 1,
                Err(error) => {
                    // It is canceled, which the agent may not hear either.
                    if error.is_unanswered() {
                        self.slot.leave(self.epoch);
                    }
                    return Err(error.of_begun());
                }
            }
            if subscribes && failures == 0 {
                let is_told = self.answer.has_shown();
                match connection.stream(&endpoint, Method::SubscribeToTask, json!({ "id": id }), None).await {
                    Ok(mut stream) => {
                        if let Some(last) = self.show(&mut stream).await? {
                            return self.conclude(&id, last).await;
                        }
                        // The state tells nothing of it, and may never do so.
                        if self.answer.is_full() && !is_told {
                            return self.reply("").await;
                        }
                    }
                    Err(error) if error.is_passing() => {}
                    Err(_) => subscribes = false,
                }
            }
            sleep(backoff.pause_unreachable()).await;
        }
    }

    /// Shows what a stream says of the task. Returns the event that ends the task, if it comes before the answer is full.
    async fn show(&mut self, stream: &mut EventStream<'_>) -> Result<Option<Event>, AgentError> {
        loop {
            let event = match stream.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(None),
                Err(error) if error.is_passing() => return Ok(None),
                Err(error) => return Err(error.of_begun()),
            };
            let task = event.task.as_ref().map(|task| &task.status);
            let statuses = [task, event.status_update.as_ref().map(|update| &update.status)];
            let ends = statuses.into_iter().flatten().any(|status| status.state != State::Working);
            if ends || event.message.is_some() {
                return Ok(Some(event));
            }
            self.take(event).await?;
            // It may have repeated what was said before: the state of the task tells whether the answer is full.
            if self.answer.is_full() {
                return Ok(None);
            }
        }
    }

    /// The outcome of a task that such a stream has ended with this event. It may have repeated what was said before, so the state of the
    /// task counts; but some servers do not bring that up to date once the first stream of the task is gone.
    async fn conclude(&mut self, id: &str, last: Event) -> Result<Outcome, AgentError> {
        let task = self.a2a.connection.about_task::<Task>(&self.endpoint, Method::GetTask, id).await;
        let outcome = match task {
            Ok(task) if task.status.state != State::Working => self.take_task(task).await?,
            _ => self.take(last).await?,
        };
        outcome.ok_or_else(|| AgentError::Broken("it ended another task".to_owned()))
    }

    /// Reads an event. Returns the outcome, if it ends the run.
    async fn take(&mut self, event: Event) -> Result<Option<Outcome>, AgentError> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if let Some(message) = event.message {
            self.note("", message.context_id.as_deref().unwrap_or_default(), false).await?;
            let words = self.answer.message(Some(message));
            return Ok(Some(self.reply(&words).await?));
        }
        if let Some(task) = event.task {
            // A stream may begin with the task as it was before the message, which answers its question.
            if is_first && self.goes_on && self.endpoint.streams && task.status.state == State::InputRequired {
                self.note(&task.id, &task.context_id, false).await?;
                return Ok(None);
            }
            return self.take_task(task).await;
        }
        if let Some(update) = event.artifact_update {
            if self.note(&update.task_id, &update.context_id, false).await? {
                let append = update.append == Some(true);
                let changes = self.answer.artifact(update.artifact, append);
                self.draft(changes).await;
            }
            return Ok(None);
        }
        let Some(update) = event.status_update else { return Ok(None) };
        let waits = update.status.state == State::InputRequired;
        if self.note(&update.task_id, &update.context_id, waits).await? {
            self.status(update.status).await
        } else {
            Ok(None)
        }
    }

    async fn take_task(&mut self, task: Task) -> Result<Option<Outcome>, AgentError> {
        let waits = task.status.state == State::InputRequired;
        if !self.note(&task.id, &task.context_id, waits).await? {
            return Ok(None);
        }
        let changes = self.answer.artifacts(task.artifacts.unwrap_or_default());
        self.draft(changes).await;
        self.status(task.status).await
    }

    async fn status(&mut self, Status { state, message }: Status) -> Result<Option<Outcome>, AgentError> {
        // What it says while it works is about its progress.
        if state == State::Working {
            if let Some(title) = message.and_then(answer::title).filter(|title| self.activity.as_ref() != Some(title)) {
                if let Some(before) = self.activity.replace(title.clone()) {
                    self.events.activity(before, ActivityState::Done).await;
                }
                self.events.activity(title, ActivityState::Working).await;
            }
            return Ok(None);
        }
        let words = self.answer.message(message);
        let told = self.a2a.connection.told(&words);
        let refused = |status: &str, message: String| Err(AgentError::Refused { status: status.to_owned(), message });
        if state != State::AuthRequired {
            self.task.ended();
        }
        match state {
            State::Failed => refused("the task failed", told),
            State::Rejected => refused("the task is rejected", told),
            State::Canceled => refused("the task is canceled", told),
            State::AuthRequired => refused(
                "authorization required",
                format!("the agent needs an authorization that its operator must give: {told}"),
            ),
            State::InputRequired if is_blank(&words) && !self.answer.has_shown() => {
                Err(AgentError::Broken("the agent requires input, and does not say which".to_owned()))
            }
            State::InputRequired | State::Completed | State::Working => Ok(Some(self.reply(&words).await?)),
        }
    }

    async fn draft(&mut self, changes: Vec<DraftChange>) {
        for change in changes {
            match change {
                DraftChange::Withdraw => self.report.withdraw().await,
                DraftChange::Next { rest, gap } => {
                    self.report.text(rest).await;
                    self.report.next(gap);
                }
                DraftChange::Update(update) => self.report.update(update).await,
            }
        }
    }

    /// # Errors
    /// When there is nothing in it but files that cannot be sent.
    async fn reply(&mut self, words: &str) -> Result<Outcome, AgentError> {
        self.report.text(self.answer.end()).await;
        let answer = std::mem::take(&mut self.answer);
        if is_blank(words)
            && answer.is_empty()
            && let Some(why) = answer.unsent().next()
        {
            return Err(AgentError::Broken(format!("a file of the agent cannot be sent: {why}")));
        }
        for why in answer.unsent() {
            warn!(agent = &*self.a2a.name, turn_id = %self.turn.turn, why, "a file of an A2A agent is not sent");
        }
        let reply: Reply = answer.into_reply(words, &self.turn.place.cut_off);
        Ok(Outcome::Reply(reply))
    }

    /// Remembers the context and the task of an event. Returns `false` if the event belongs to another task.
    async fn note(&mut self, task: &str, context: &str, waits: bool) -> Result<bool, AgentError> {
        if task.len() > MAX_ID || context.len() > MAX_ID {
            return Err(AgentError::Broken(format!("an id of its task or context has more than {MAX_ID} bytes")));
        }
        match self.task.id() {
            Some(known) if !task.is_empty() && known != task => return Ok(false),
            None if !task.is_empty() => self.task.named(task),
            _ => {}
        }
        if context.is_empty() {
            return Ok(true);
        }
        let task = self.task.id().map(|id| {
            let (id, turn, messages) = (id.to_owned(), self.turn.turn.to_string(), messages(self.turn));
            TaskMemory { id, turn, messages, waits }
        });
        let memory = Some(Memory { context: context.to_owned(), task });
        if self.memory != memory {
            self.memory.clone_from(&memory);
            if let Some(memory) = memory {
                self.remember(memory).await;
            }
        }
        Ok(true)
    }

    /// Stores the context, to go on in it after a restart of the gateway. An id of an earlier one is stored no more, also if this one is
    /// not kept.
    async fn remember(&self, memory: Memory) {
        let own_session = memory.encode();
        let stored = if self.slot.keep(self.epoch, memory) { self.events.remember(own_session).await } else { Ok(()) };
        if let Err(error) = &stored {
            debug!(agent = &*self.a2a.name, error, "the agent's context of a session is not stored");
        }
        // A turn of it may have been removed while it was stored.
        if (stored.is_err() || !self.slot.is_current(self.epoch))
            && self.events.remember("").await.is_err()
            && let Err(error) = self.events.remember("").await
        {
            debug!(agent = &*self.a2a.name, error, "the agent's context of an earlier session is still stored");
        }
    }
}
