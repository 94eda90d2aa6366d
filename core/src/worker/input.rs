//! The input of a run.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rejoinder_guard::{Attachment, SignalKind};
use tracing::warn;

use crate::{
    channels::Channels,
    ledger::trigger::Run,
    model::{
        agent::{AgentFile, AgentName, AgentTurn, Deferred, HistoryLine},
        event::EventKind,
        settings::Settings,
        turn::{Handler, TurnRecord},
    },
    ports::{
        agent::{AgentError, AgentRuntime},
        channel::{ChannelAdapter, FetchError},
        clock::SharedClock,
        store::{Store, StoreError, record::RunRecord},
    },
};

/// The `end` of a run that deferred its answer, in its record.
pub(super) const DEFERRAL: &str = SignalKind::Deferral.as_str();

/// The time limit for fetching one file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Prepares runs.
pub(crate) struct Inputs {
    pub(crate) agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: SharedClock,
}

/// A run that can begin.
pub(super) struct PreparedRun {
    pub(super) runtime: Arc<dyn AgentRuntime>,
    pub(super) input: AgentTurn,
}

/// Why a run cannot begin.
pub(super) enum PrepareError {
    /// The event's content cannot be read.
    Unreadable,
    /// It counts as a run that failed.
    Failed(AgentError),
}

impl From<AgentError> for PrepareError {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl Inputs {
    pub(super) async fn prepare(&self, turn: &TurnRecord, run: &Run) -> Result<PreparedRun, PrepareError> {
        let event = &turn.event;
        if event.kind == EventKind::Unreadable {
            return Err(PrepareError::Unreadable);
        }
        let gone =
            |what: &str, name: &str| AgentError::Unreachable(format!("{what} `{name}` is not configured any more"));
        let runtime = run.handler.agent().and_then(|agent| self.agents.get(agent)).cloned();
        let runtime = runtime.ok_or_else(|| gone("agent", &run.handler.to_string()))?;
        let channel = self.channels.get(&event.conversation.channel);
        let channel = channel.ok_or_else(|| gone("channel", event.conversation.channel.as_str()))?;
        let history = self.history(turn, runtime.as_ref()).await.map_err(|error| unread("the transcript", &error))?;
        let deferred = self.deferred(turn, run).await.map_err(|error| unread("the deferral", &error))?;
        let policy = self.settings.policies.of(&event.conversation.channel, event.chat);
        let input = AgentTurn {
            turn: turn.id,
            conversation: event.conversation.clone(),
            chat: event.chat,
            surface: channel.surface(),
            session: turn.session,
            attempt: run.attempt,
            deferred,
            sender: event.sender.clone(),
            text: event.text.clone(),
            reaction: match &event.kind {
                EventKind::Reaction { emoji, .. } => Some(emoji.clone()),
                _ => None,
            },
            attachments: self.files(&event.attachments, runtime.as_ref(), channel.as_ref()).await,
            quoted: event.quoted.clone(),
            history,
            capabilities: channel.capabilities(&event.conversation),
            now: run.started_at,
            deadline: run.started_at + policy.hard_deadline,
        };
        Ok(PreparedRun { runtime, input })
    }

    /// The transcript before the turn, as many lines as the runtime wants.
    async fn history(&self, turn: &TurnRecord, runtime: &dyn AgentRuntime) -> Result<Vec<HistoryLine>, StoreError> {
        match u32::try_from(runtime.history()).unwrap_or(u32::MAX) {
            0 => Ok(Vec::new()),
            wanted if turn.has_history => self.store.transcript(turn.session, wanted).await,
            _ => Ok(Vec::new()),
        }
    }

    /// The latest deferral of the turn by the agent of `run`, if there is one.
    async fn deferred(&self, turn: &TurnRecord, run: &Run) -> Result<Option<Deferred>, StoreError> {
        if run.number == 1 || turn.obligation.deferrals() == 0 {
            return Ok(None);
        }
        // The agent that replaces one that is gone also takes over its deferrals.
        let is_gone = |handler: &Handler| handler.agent().is_none_or(|agent| !self.agents.contains_key(agent));
        let is_ours = |other: &RunRecord| other.handler == run.handler || is_gone(&other.handler);
        let runs = self.store.runs(turn.id).await?;
        let deferral = runs.into_iter().rev().find(|other| other.end.as_deref() == Some(DEFERRAL) && is_ours(other));
        Ok(deferral.and_then(|run| Some(Deferred { note: run.detail, at: run.ended_at? })))
    }

    /// The files of a turn, with the bytes of those that the runtime reads and the platform stores.
    async fn files(
        &self,
        attachments: &[Attachment],
        runtime: &dyn AgentRuntime,
        channel: &dyn ChannelAdapter,
    ) -> Vec<AgentFile> {
        let mut files = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let bytes =
                if runtime.reads(&attachment.media_type) { self.fetch(attachment, channel).await } else { None };
            files.push(AgentFile { attachment: attachment.clone(), bytes });
        }
        files
    }

    async fn fetch(&self, attachment: &Attachment, channel: &dyn ChannelAdapter) -> Option<Vec<u8>> {
        let fetched = tokio::select! {
            fetched = channel.fetch(attachment, self.settings.max_attachment) => fetched,
            () = self.clock.sleep(FETCH_TIMEOUT) => Err(FetchError::Failed("timed out".to_owned())),
        };
        match fetched {
            Ok(bytes) => Some(bytes),
            Err(FetchError::NotOurs(_)) => None,
            // The agent gets the text and the file's name nevertheless.
            Err(error) => {
                warn!(name = attachment.name, %error, "cannot fetch a file, the agent gets its name only");
                None
            }
        }
    }
}

fn unread(what: &str, error: &StoreError) -> AgentError {
    AgentError::Failed(format!("{what} cannot be read: {error}"))
}
