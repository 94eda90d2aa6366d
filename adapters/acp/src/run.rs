//! One run: a prompt, what the agent says and does meanwhile, and the outcome.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_agents::{
    Supervisor,
    prompt::files,
    report::{AnswerUpdate, Report},
};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, ApprovalRequest, Outcome, Reply, RunEvents, SessionId,
    SessionNotice, SessionNoticeChange, TraceHeaders, Usage,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    AcpSection,
    answer::Answer,
    connection::Prompt,
    drive::Keeper,
    event::{CallError, Event},
    feed::MOST_WAITING,
    launch::{Launch, Launcher},
    open::{Opened, Opener, refusal},
    permission::{Decision, Permissions},
    prompt,
    protocol::{Chunk, Content, NOT_FOUND, PromptEnd, RpcError, Update},
    sessions::{Owner, Sessions, Slot},
    tools::ToolCalls,
};

/// How many prompts one run may have.
const MAX_ROUNDS: usize = 5;

/// How long the end of a cancelled prompt is waited for, within the two seconds that a cancelled run has.
const CANCELLED: Duration = Duration::from_millis(1_500);

/// An agent with the Agent Client Protocol.
pub struct Acp {
    name: AgentName,
    settings: AcpSection,
    keeper: Keeper,
    sessions: Sessions,
}

impl fmt::Debug for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acp").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Acp {
    /// Starts nothing yet. [`keep_running`](Self::keep_running) must run beside its turns.
    #[must_use]
    pub fn new(name: AgentName, settings: AcpSection, supervisor: Supervisor) -> Self {
        let launcher = Launcher { settings: settings.clone(), supervisor };
        Self::with_launcher(name, settings, Box::new(launcher))
    }

    pub(crate) fn with_launcher(name: AgentName, settings: AcpSection, launcher: Box<dyn Launch>) -> Self {
        let keeper = Keeper::new(Arc::clone(&name), launcher, settings.start_timeout);
        Self { name, settings, keeper, sessions: Sessions::default() }
    }

    /// Starts the process when a turn needs it, and ends it when `stop` is cancelled.
    pub async fn keep_running(&self, stop: CancellationToken) {
        self.keeper.run(stop).await;
    }

    async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        // The turn has what was said until now: a session of it is not kept if something is removed while the process starts.
        let slot = self.sessions.of(turn.session);
        let owner = slot.owner();
        let ready = self.keeper.ready().await?;
        let opener = Opener { agent: &self.name, settings: &self.settings, ready: &ready };
        let mut place = opener.open(slot, owner, turn.session, turn.own_session.as_deref()).await?;
        let takes_pictures = ready.agent.agent_capabilities.prompt_capabilities.image;
        let mut blocks = if place.is_new { prompt::of_session(turn, &self.settings) } else { Vec::new() };
        blocks.extend(prompt::of_turn(turn, takes_pictures));
        let mut run = Run::new(self, turn, events);
        for round in 1..=MAX_ROUNDS {
            run.report.shown(prompt::shown(&self.name, self.settings.mode.as_deref(), &blocks)).await;
            let Opened { slot, owner, session, permit, is_new } = place;
            let id = Arc::clone(&session.id);
            let params = json!({ "sessionId": id, "prompt": blocks, "_meta": meta(turn) });
            let prompt =
                ready.connection.prompt(Arc::clone(&id), params, permit).map_err(|error| run.failed(&id, error))?;
            // It was told what a new session must know.
            slot.keep(&owner, session.clone());
            if is_new {
                self.remember(&id, events, &slot, &owner).await;
            }
            if let Some(request) = run.follow(prompt, &id).await? {
                self.wait_for_end(turn.session).await;
                return Ok(Outcome::Approval(request));
            }
            let came = if round < MAX_ROUNDS { events.listen().await } else { Vec::new() };
            if came.is_empty() {
                break;
            }
            blocks = prompt::of_messages(&came, turn.chat, takes_pictures);
            run.answer.interrupt();
            run.report.next_usage();
            let permit = owner.acquire().await;
            place = Opened { slot, owner, session, is_new: false, permit };
        }
        Ok(Outcome::Reply(Reply::text(run.text().await)))
    }

    /// Stores the agent's own id of a new session, to open it again after a restart of the gateway. An id of an earlier one is stored no
    /// more, also if this one is not kept.
    async fn remember(&self, id: &str, events: &RunEvents, slot: &Slot, owner: &Arc<Owner>) {
        let is_kept = || slot.known(owner).is_some();
        let stored = if is_kept() { events.remember(id).await } else { Ok(()) };
        if let Err(error) = &stored {
            debug!(agent = &*self.name, error, "the agent's own id of a session is not stored");
        }
        // A turn of it may have been removed while it was stored.
        if (stored.is_err() || !is_kept())
            && events.remember("").await.is_err()
            && let Err(error) = events.remember("").await
        {
            debug!(agent = &*self.name, error, "the agent's own id of an earlier session is still stored");
        }
    }

    /// Waits a moment until the agent has ended its work on a prompt that was cancelled.
    async fn wait_for_end(&self, session: SessionId) {
        // If it goes on, the next run waits for it, or leaves the session.
        let _ = timeout(CANCELLED, self.sessions.of(session).owner().until_idle()).await;
    }
}

#[async_trait]
impl AgentRuntime for Acp {
    fn describe(&self) -> String {
        format!("acp {}", self.settings.command.first().map(String::as_str).unwrap_or_default())
    }

    fn history(&self) -> usize {
        self.settings.history_messages as usize
    }

    fn reads(&self, media_type: &str) -> Option<usize> {
        files::largest(media_type)
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    fn forgets_turns(&self) -> bool {
        false
    }

    /// A session that is deleted, or from which a turn is taken, is not used any more: the next turn begins a new one, with what is left
    /// of the transcript.
    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        match notice.change {
            SessionNoticeChange::Deleted | SessionNoticeChange::TurnRemoved(_) => self.sessions.remove(notice.session),
            SessionNoticeChange::Left => {}
        }
        Ok(())
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let ended = tokio::select! {
            biased;
            outcome = self.answer(&turn, &events) => Some(outcome),
            () = cancel.cancelled() => None,
        };
        if let Some(outcome) = ended {
            return outcome;
        }
        // The prompt, which is gone, has told the agent.
        self.wait_for_end(turn.session).await;
        Err(AgentError::Failed("the run was cancelled".to_owned()))
    }
}

/// By what the agent can recognise a turn that it gets again, and the trace that it belongs to.
fn meta(turn: &AgentTurn) -> Value {
    let mut meta = json!({ "rejoinder": { "turn": turn.turn.to_string(), "attempt": turn.attempt } });
    for (name, value) in turn.trace.iter().flat_map(TraceHeaders::pairs) {
        meta[name] = value.into();
    }
    meta
}

/// What a run has heard of the agent so far.
struct Run<'a> {
    acp: &'a Acp,
    turn: &'a AgentTurn,
    events: &'a RunEvents,
    report: Report<'a>,
    answer: Answer,
    tools: ToolCalls,
    permissions: Permissions<'a>,
}

impl<'a> Run<'a> {
    fn new(acp: &'a Acp, turn: &'a AgentTurn, events: &'a RunEvents) -> Self {
        let permissions = Permissions::new(&turn.approvals, turn.may_ask_approval);
        let (report, answer, tools) = (Report::to(events), Answer::default(), ToolCalls::default());
        Self { acp, turn, events, report, answer, tools, permissions }
    }

    /// Follows the agent's work on a prompt to its end, or until somebody must approve something.
    async fn follow(&mut self, mut prompt: Prompt, session: &str) -> Result<Option<ApprovalRequest>, AgentError> {
        let patience = self.acp.settings.idle_timeout;
        loop {
            let event = timeout(patience, prompt.next()).await;
            match event.map_err(|_| AgentError::Stalled(format!("nothing came for {patience:?} (`idle_timeout`)")))? {
                Event::Update(Update::AgentMessageChunk(chunk)) => self.chunk(chunk).await,
                Event::Update(Update::ToolCall(call) | Update::ChangedToolCall(call)) => {
                    self.answer.interrupt();
                    if let Some(ended) = self.tools.update(call) {
                        self.events.tool(ended).await;
                    }
                }
                Event::Update(Update::Other) => {}
                Event::Permission(id, request) => {
                    let call = self.tools.known(&request.tool_call);
                    match self.permissions.decide(&call, &request.options) {
                        Decision::Choose(option) => prompt.permit(&id, option.as_deref()),
                        Decision::Ask(request) => {
                            prompt.permit(&id, None);
                            return Ok(Some(request));
                        }
                    }
                }
                Event::Lost => {
                    return Err(AgentError::Broken(
                        "a message of the agent cannot be read: its answer is not whole".to_owned(),
                    ));
                }
                Event::Overflowed => {
                    return Err(AgentError::Broken(format!(
                        "the agent sends faster than its answer is taken: more than {MOST_WAITING} bytes wait"
                    )));
                }
                Event::Ended(Ok(end)) => return self.ended(&prompt, end).await.map(|()| None),
                Event::Ended(Err(error)) => return Err(self.failed(session, error)),
            }
        }
    }

    async fn chunk(&mut self, chunk: Chunk) {
        let Content::Text { text } = chunk.content else { return };
        let has_shown = self.answer.has_shown();
        let Some(step) = self.answer.push(chunk.message_id.as_deref(), &text) else { return };
        if step.withdraws {
            self.report.withdraw().await;
        }
        if let Some(rest) = step.ends {
            self.report.text(rest).await;
            self.report.next(has_shown);
        }
        self.report.update(step.update).await;
    }

    async fn ended(&mut self, prompt: &Prompt, end: PromptEnd) -> Result<(), AgentError> {
        if let Some(usage) = end.usage {
            let (input_tokens, output_tokens) = usage.sums();
            let usage = Usage { input_tokens, output_tokens };
            self.report.update(AnswerUpdate { usage: Some(usage), ..AnswerUpdate::default() }).await;
        }
        match end.stop_reason.as_str() {
            "end_turn" => Ok(()),
            "max_tokens" if self.answer.has_shown() => {
                self.answer.is_cut = true;
                Ok(())
            }
            "max_tokens" => Err(AgentError::Broken("the answer was cut off before any text (max_tokens)".to_owned())),
            "refusal" => {
                let message = "the agent's model refuses to answer".to_owned();
                Err(AgentError::Refused { status: "refusal".to_owned(), message })
            }
            _ => Err(AgentError::Failed(format!("it stopped before the end: {}", prompt.told(end.stop_reason)))),
        }
    }

    /// The error that ends the run.
    fn failed(&self, session: &str, error: CallError) -> AgentError {
        let after = if self.answer.has_shown() { " in the middle of its answer" } else { "" };
        match error {
            CallError::Closed(reason) => AgentError::Broken(format!("its process has ended{after}: {reason}")),
            CallError::Invalid(error) => AgentError::Broken(format!("the end of its answer cannot be read: {error}")),
            CallError::Refused(error) => {
                if is_lost_session(&error) {
                    self.acp.sessions.of(self.turn.session).forget(session);
                }
                refusal("session/prompt", &error)
            }
        }
    }

    /// The whole answer.
    async fn text(mut self) -> String {
        self.report.text(self.answer.end()).await;
        if self.answer.notices > 0 {
            let (agent, notices) = (&*self.acp.name, self.answer.notices);
            debug!(agent, turn_id = %self.turn.turn, notices, "chunks without an id are no part of the answer");
        }
        let is_cut = self.answer.is_cut;
        let mut text = self.answer.into_text();
        if is_cut {
            let notice = format!("\n\n{}", self.turn.cut_off);
            text.push_str(&notice);
            self.report.text(notice).await;
        }
        text
    }
}

/// Whether the agent does not know the session any more.
fn is_lost_session(error: &RpcError) -> bool {
    error.code == NOT_FOUND || error.message.to_ascii_lowercase().contains("session not found")
}
