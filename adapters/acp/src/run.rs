//! One run: a prompt, or more, and the outcome.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_agents::{SessionTokens, Supervisor, Takes, prompt::blocks, sessions::Sessions};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, RunEvents, SessionNotice, SessionNoticeChange,
    TraceHeaders,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    AcpSection,
    drive::Keeper,
    event::CallError,
    follow::{Followed, Run, is_lost_session},
    launch::{Launch, Launcher},
    open::{Opened, Opener, refusal},
    prompt::Prompt,
    protocol::PromptPart,
    run_cost::RunCost,
    sessions::{Owner, Slot},
};

/// The method that deletes a session: <https://agentclientprotocol.com/protocol/v1/session-delete>.
const DELETE: &str = "session/delete";

/// How long the agent may take to delete a session that another one has replaced.
const DELETED: Duration = Duration::from_secs(10);

/// How many prompts one run may have.
const MAX_ROUNDS: usize = 5;

/// How long the end of a cancelled prompt is waited for, within the two seconds that a cancelled run has.
const CANCELLED: Duration = Duration::from_millis(1_500);

/// An agent with the Agent Client Protocol.
pub struct Acp {
    name: AgentName,
    settings: AcpSection,
    keeper: Keeper,
    sessions: Sessions<Slot>,
    tokens: Option<Arc<dyn SessionTokens>>,
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
        let keeper = Keeper::new(Arc::clone(&name), launcher, settings.start_timeout, settings.mcp);
        Self { name, settings, keeper, sessions: Sessions::default(), tokens: None }
    }

    /// The same for an agent that is told in its sessions where it calls the tools of its runs, each of which has
    /// [some](rejoinder_core::AgentRights::tools).
    #[must_use]
    pub fn with_tools(self, tokens: Arc<dyn SessionTokens>) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Starts the process when a turn needs it, and ends it when `stop` is cancelled.
    pub async fn keep_running(&self, stop: CancellationToken) {
        self.keeper.run(stop).await;
    }

    async fn answer(&self, mut turn: AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        // The turn has what was said until now: a session of it is not kept if something is removed while the process starts.
        let slot = self.sessions.of(turn.place.session);
        let owner = slot.owner();
        let ready = self.keeper.ready().await?;
        let access = turn.rights.tools.take();
        let tools = access.as_ref().zip(self.tokens.as_ref());
        let opener = Opener { agent: &self.name, settings: &self.settings, ready: &ready, tools };
        let mut place = opener.open(slot, owner, turn.place.session, turn.place.own_session.as_deref()).await?;
        let takes = Takes::from(ready.agent.agent_capabilities.prompt_capabilities);
        let AcpSection { system_prompt, history_messages, mode, .. } = &self.settings;
        let mut prompt =
            if place.is_new { blocks::of_session(&turn, system_prompt, *history_messages) } else { Vec::new() };
        prompt.extend(blocks::of_turn(&turn, takes));
        // It may wait for days.
        turn.drop_files();
        let settings = json!({ "agent": &*self.name, "mode": mode });
        let cost = RunCost::of(&ready.connection, &place.session.id);
        let mut run = Run::new(&self.name, &self.settings, Arc::clone(&place.slot), cost, &turn, events);
        // Whether it is; and the answer before a prompt that says nothing else.
        let (mut is_told_of_no, mut stands) = (false, None);
        for round in 1..=MAX_ROUNDS {
            run.report.shown(blocks::shown(&settings, &prompt)).await;
            let Opened { slot, owner, session, permit, is_new } = place;
            let id = Arc::clone(&session.id);
            let parts: Vec<_> = prompt.iter().map(PromptPart::from).collect();
            let params = json!({ "sessionId": id, "prompt": parts, "_meta": meta(&turn) });
            prompt.clear();
            if let (Some(token), Some(access)) = (&session.tools, &access) {
                token.lend(access);
            }
            let followed = match Prompt::send(Arc::clone(&ready.connection), Arc::clone(&id), params, permit) {
                Ok(sent) => {
                    // It was told what a new session must know.
                    slot.keep(&owner, session.clone());
                    if is_new {
                        self.remember(&id, events, &slot, &owner).await;
                    }
                    run.follow(sent, &id, &owner).await
                }
                Err(error) => Err(run.failed(&id, error)),
            };
            match followed {
                Ok(Followed::Ended) => {}
                Ok(Followed::Full) => {
                    wait_for_end(&owner).await;
                    break;
                }
                // It was a favour: what stands is the answer, unless it was going on.
                Err(error) if stands.is_some() && stands == run.answered() => {
                    let (agent, why) = (&*self.name, error.summary());
                    warn!(agent, turn_id = %turn.turn, why, "an ACP agent that was told of a no has failed after its answer");
                    break;
                }
                Err(error) => return Err(error),
                Ok(Followed::NeedsApproval(request)) => {
                    wait_for_end(&owner).await;
                    return Ok(Outcome::Approval(request));
                }
            }
            // Of a session that is not used any more they begin another run.
            let listens = round < MAX_ROUNDS && slot.known(&owner).is_some();
            let came = if listens { events.listen().await } else { Vec::new() };
            let refused = run.take_refused().filter(|_| listens && !is_told_of_no);
            if came.is_empty() && refused.is_none() {
                break;
            }
            is_told_of_no |= refused.is_some();
            stands = if came.is_empty() { run.answered() } else { None };
            prompt = blocks::of_messages(&came, turn.place.chat, takes);
            prompt.extend(refused.as_deref().map(after_no));
            run.answer.interrupt();
            run.report.next_usage();
            let permit = owner.acquire().await;
            place = Opened { slot, owner, session, is_new: false, permit };
        }
        Ok(Outcome::Reply(run.reply().await))
    }

    /// Deletes a session of the agent that nobody will use any more, once the last prompt of its `owner` has ended.
    async fn delete(&self, id: &str, owner: &Owner) -> Result<(), AgentError> {
        owner.until_idle().await;
        let ready = self.keeper.ready().await?;
        if ready.agent.agent_capabilities.session_capabilities.delete.as_ref().is_none_or(Value::is_null) {
            return Ok(());
        }
        if ready.connection.feed(id).is_some() {
            return Err(AgentError::Failed("it works on a prompt in the session still".to_owned()));
        }
        let deleted = ready.connection.call::<IgnoredAny>(DELETE, json!({ "sessionId": id })).await;
        match deleted {
            Ok(_) => Ok(()),
            Err(CallError::Refused(error)) if is_lost_session(&error) => Ok(()),
            Err(CallError::Refused(error)) => Err(refusal(DELETE, &error)),
            Err(CallError::Closed(why)) => Err(AgentError::Broken(format!("its process has ended: {why}"))),
            Err(CallError::Invalid(why)) => Err(AgentError::Broken(format!("its response cannot be read: {why}"))),
        }
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
}

/// Waits a moment until the agent has ended its work on a prompt that was cancelled.
async fn wait_for_end(owner: &Owner) {
    // If it goes on, the next run waits for it, or leaves the session.
    let _ = timeout(CANCELLED, owner.until_idle()).await;
}

#[async_trait]
impl AgentRuntime for Acp {
    fn describe(&self) -> String {
        format!("acp {}", self.settings.command.first().map(String::as_str).unwrap_or_default())
    }

    fn history(&self) -> usize {
        self.settings.history_messages as usize
    }

    /// Of sounds and documents, those that its latest process takes; none before the first one.
    fn reads(&self, media_type: &str) -> Option<usize> {
        self.keeper.capabilities().map_or(Takes::PICTURES, Takes::from).largest(media_type)
    }

    fn hears(&self, media_type: &str) -> bool {
        self.keeper.capabilities().map_or(Takes::PICTURES, Takes::from).has_sound(media_type)
    }

    fn keeps_sessions(&self) -> bool {
        true
    }

    fn forgets_turns(&self) -> bool {
        false
    }

    /// A session that is deleted, or from which a turn is taken, is not used any more: the next turn begins a new one, with what is left
    /// of the transcript. The agent deletes it, if it can. If it fails to, a session that goes on is no worse for it: it has another one
    /// there already.
    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        let slot = self.sessions.of(notice.session);
        let (id, change) = (notice.own_session.as_deref().filter(|id| !id.is_empty()), notice.change);
        if change.turn().is_some() && id.is_some_and(|id| !slot.give_up(id)) {
            return Ok(());
        }
        let owner = slot.owner();
        self.sessions.changed(&notice);
        match (id, change) {
            (None, _) | (_, SessionNoticeChange::Left) => Ok(()),
            (Some(id), SessionNoticeChange::Deleted) => self.delete(id, &owner).await,
            (Some(id), SessionNoticeChange::TurnRemoved(_)) => {
                let deleted = timeout(DELETED, self.delete(id, &owner)).await;
                let late = |_| Err(AgentError::Stalled(format!("nothing for {DELETED:?}")));
                if let Err(error) = deleted.unwrap_or_else(late) {
                    let (agent, error) = (&*self.name, error.summary());
                    warn!(
                        agent,
                        error,
                        "an ACP agent keeps a session from which a turn was removed, and which is not used any more"
                    );
                }
                Ok(())
            }
        }
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let session = turn.place.session;
        let ended = tokio::select! {
            biased;
            outcome = self.answer(turn, &events) => Some(outcome),
            () = cancel.cancelled() => None,
        };
        if let Some(outcome) = ended {
            return outcome;
        }
        // The prompt, which is gone, has told the agent.
        wait_for_end(&self.sessions.of(session).owner()).await;
        Err(AgentError::Failed("the run was cancelled".to_owned()))
    }
}

/// What an agent is told that has stopped at a no without a word, as some do: the person is owed an answer.
fn after_no(action: &str) -> blocks::Block {
    blocks::Block::Text(format!(
        "This was not allowed, and was not done: {action}\nTell the person so in a few words, or answer without it."
    ))
}

/// By what the agent can recognise a turn that it gets again, and the trace that it belongs to.
fn meta(turn: &AgentTurn) -> Value {
    let mut meta = json!({ "rejoinder": { "turn": turn.turn.to_string(), "attempt": turn.attempt } });
    for (name, value) in turn.trace.iter().flat_map(TraceHeaders::pairs) {
        meta[name] = value.into();
    }
    meta
}
