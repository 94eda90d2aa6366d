//! The input of an agent's run.

use std::{borrow::Cow, fmt, iter, sync::Arc, time::Duration};

use rejoinder_guard::{ApprovalRequest, Attachment, Cause, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    approval::ApprovalState,
    capabilities::Capabilities,
    conversation::{ChannelId, ChatKind, ConversationRef},
    event::{Author, Sender},
    file_bytes::FileBytes,
    ids::{SessionId, TurnId},
    language::Language,
    run::Cost,
    trace::TraceHeaders,
    unread::Unread,
    voice::Voice,
};

/// The name of a configured agent, as in `[agents.<name>]`.
pub type AgentName = Arc<str>;

/// Who wrote a line of the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The sender of the turn.
    Person,
    /// The agent, with a reply or its own deferral.
    Agent,
    /// The gateway, in place of the agent, or an operator.
    Gateway,
}

/// Whether a line of a transcript was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// The person wrote it, or has seen it.
    #[default]
    Seen,
    /// The person wrote it, and its answer was stopped.
    Stopped,
    /// The person has seen only a part of it, which is the line's text.
    Partly,
    /// It is on its way to the person.
    OnItsWay,
    /// It did not reach the person, for this reason: the result of its last attempt (`refused`, `unknown`, …), `withdrawn`, or
    /// `not_yet` if it still waits.
    NotDelivered(String),
}

impl LineState {
    /// Whether the line is a part of what was said.
    pub const fn is_said(&self) -> bool {
        matches!(self, Self::Seen | Self::Partly | Self::Stopped)
    }
}

/// One line of a session's transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    pub speaker: Speaker,
    /// The person, in group chats. Of a line of the agent's that the sender's program tells: ourselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Who first wrote the text, if the person forwarded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Author>,
    /// The text as it was shown; Markdown if the agent or the gateway wrote it. A reaction is `[reacted with 👍]`.
    pub text: String,
    /// Whether the person said it, and it was written down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoken: bool,
    /// When the person's event was received, or the signal was claimed.
    pub at: Timestamp,
    /// Whether it was seen. What the gateway said is only a line if it was.
    #[serde(default)]
    pub state: LineState,
}

/// A file that came with a turn.
#[derive(Clone, Debug)]
pub struct AgentFile {
    /// Its name, media type and address.
    pub attachment: Attachment,
    /// Its bytes, if the runtime [`reads`](crate::AgentRuntime::reads) files of this type and size, and the platform
    /// stores the file. `None` also if it is larger than [`Settings::max_attachment`](crate::Settings::max_attachment),
    /// or the files of all turns together are too large.
    pub bytes: Option<FileBytes>,
    /// The text of a document that the runtime does not open by itself, in UTF-8, or why it has none. `None`: it is no document, or
    /// nothing reads it.
    pub text: Option<Result<FileBytes, Unread>>,
}

/// The message that a turn replies or reacts to.
#[derive(Clone, Debug)]
pub struct AgentQuote {
    pub author: Author,
    pub text: String,
    pub files: Vec<AgentFile>,
}

/// An agent's earlier deferral of the same turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deferred {
    /// The text the agent gave for the deferral; `None` if the person saw the operator's template instead.
    pub note: Option<String>,
    /// When the run that deferred ended.
    pub at: Timestamp,
    /// The time that the agent named, within its bounds. It is still to come if a person asked for the answer earlier.
    pub due: Timestamp,
}

/// How an agent may defer a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferralLimits {
    /// How many more times. A deferral beyond that is answered by the ladder.
    pub left: u32,
    /// For how long at most. A time beyond that is moved to it.
    pub longest: Duration,
}

/// Why the ladder handed a turn to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The cause whose rungs the ladder takes.
    pub cause: Cause,
    /// The text for it: the reason for silence, or a summary of the error. At most 300 characters.
    pub why: String,
    /// The latest eight runs of agents that had the turn before, oldest first.
    pub tried: Vec<TriedRun>,
}

/// A run of an agent that had the turn before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedRun {
    pub agent: AgentName,
    /// How it ended, as in [`RunEnd::end`](crate::store::RunEnd::end): `silent`, `failed`, `reply`, …
    pub end: String,
    /// What it said: the reason for silence, the text of the deferral, the action to approve or the answer. Cut after 2 KiB.
    pub said: Option<String>,
}

/// What became of an approval that the agent asked for in an earlier run of the same turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentApproval {
    /// What it asked for, [as stored](crate::as_stored).
    pub request: ApprovalRequest,
    /// The decision. What has expired counts as declined.
    pub state: ApprovalState,
    /// Who decided; `None` if nobody did in time.
    pub by: Option<String>,
    /// What they say about it.
    pub note: Option<String>,
    /// The name of the [option](ApprovalRequest::options) that they chose; `None`: a plain yes or no.
    pub chosen: Option<String>,
    /// Whether an earlier run was given the approval, and may have acted on it: it allows nothing any more.
    pub is_used: bool,
}

/// What became of a question that the agent asked the person in the middle of a run of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonAnswer {
    /// The question, [as stored](crate::as_stored).
    pub question: ApprovalRequest,
    /// The choice, or the person's words. `None`: they have not answered in time.
    pub answer: Option<String>,
}

impl PersonAnswer {
    /// The answer, as it is decided.
    pub(crate) fn of(AgentApproval { request, state, note, .. }: AgentApproval) -> Self {
        Self { question: request, answer: note.filter(|_| state == ApprovalState::Approved) }
    }
}

/// A person's reaction to an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// One line of at most 32 characters without hidden ones. An emoji, or its name between colons; on some platforms people may
    /// choose any text.
    pub emoji: String,
    /// The person, in group chats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Author>,
}

/// What became of the agent's last answer in the session, if it is not simply that the person has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastAnswer {
    /// The person has seen it, and people reacted to it.
    Seen(Vec<Reaction>),
    /// The person has not seen it, for the reason of [`LineState::NotDelivered`].
    NotDelivered(String),
    /// The person has seen only a part of it; people may have reacted to that.
    Partly(Vec<Reaction>),
    /// The person got this text of the gateway in its place. At most 300 characters.
    Replaced(String),
    /// The person stopped it.
    Stopped,
}

/// Where a person gets the agent's answers, for the agent's instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A chat. Its name follows "on": `Telegram`, `a web chat page`.
    Chat(Cow<'static, str>),
    /// A voice assistant, which reads answers aloud.
    Voice,
}

impl Surface {
    /// A chat named after the platform of `channel`.
    pub fn of(channel: &ChannelId) -> Self {
        Self::Chat(channel.platform().to_owned().into())
    }
}

/// A message of a person.
#[derive(Clone, Debug)]
pub struct AgentMessage {
    /// The person who wrote it.
    pub sender: Sender,
    pub text: String,
    /// Who first wrote the text and the files, if the sender forwarded them.
    pub forwarded: Option<Author>,
    /// Files that came with it.
    pub attachments: Vec<AgentFile>,
    /// Set if it was spoken. The recording is not among the files if its words are the text and the agent does not read recordings.
    pub voice: Option<Voice>,
    /// The message that it replies or reacts to.
    pub quoted: Option<AgentQuote>,
    /// The emoji, if it is a reaction to the agent's message in `quoted` instead of a text. Runtimes tell that of the turn's own message.
    pub reaction: Option<String>,
}

/// What is known about the [person](AgentMessage::sender) who asks, and what they want of the answer.
#[derive(Clone, Debug, Default)]
pub struct AgentPerson {
    /// Their language, if it is known.
    pub language: Option<Language>,
    /// Instructions of the program that speaks for the person. They are not the operator's: any user of the channel may
    /// give them.
    pub instructions: Option<String>,
    /// The age recipient to whose key the answer must be [sealed](rejoinder_guard::Reply::sealed). Only a runtime that
    /// [can](crate::AgentRuntime::seals) gets such a turn.
    pub seal_to: Option<Arc<str>>,
}

/// Where a turn is asked and answered.
#[derive(Clone, Debug)]
pub struct AgentPlace {
    pub conversation: ConversationRef,
    /// Whether the chat is direct or a group.
    pub chat: ChatKind,
    /// Where the person gets the answer.
    pub surface: Surface,
    /// The agent's memory key.
    pub session: SessionId,
    /// The agent's own id of the session, as an earlier run has [stored](crate::RunEvents::remember) it.
    pub own_session: Option<String>,
    /// The model that was chosen for the session, if not the agent's own.
    pub model: Option<Arc<str>>,
    /// What the platform can do in this conversation.
    pub capabilities: Capabilities,
    /// The text for the end of an answer that is too long to be kept whole.
    pub cut_off: String,
}

/// What an agent has left of its budget of the day when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetLeft {
    /// Tokens of both kinds, if they are bounded.
    pub tokens: Option<u64>,
    /// Money, if it is bounded.
    pub cost: Option<Cost>,
}

/// What an agent may do in a run.
#[derive(Clone, Debug)]
pub struct AgentRights {
    /// How it may end this run with [`Outcome::Defer`](rejoinder_guard::Outcome::Defer).
    pub may_defer: DeferralLimits,
    /// Whether the agent may end a run with [`Outcome::Approval`](rejoinder_guard::Outcome::Approval): there is somebody, or a
    /// rule, to decide it.
    pub may_ask_approval: bool,
    /// Whether the agent may [ask the person](crate::RunEvents::ask_person) something in the middle of a run.
    pub may_ask_person: bool,
    /// Whether the agent may schedule something in this conversation with [`RunEvents::schedule`](crate::RunEvents::schedule).
    pub may_schedule: bool,
    /// What the agent has left of its budget of the day; `None` if it has no budget. Other runs may use it at the same time.
    pub budget: Option<BudgetLeft>,
    /// The members of this agent that have used their budget of the day: they are not to be asked.
    pub spent: Vec<AgentName>,
    /// Where the agent calls the tools of the run itself; `None` if it does not.
    pub tools: Option<ToolAccess>,
}

/// What happened before a run: in the session, and in earlier runs of the turn.
#[derive(Clone, Debug, Default)]
pub struct AgentPast {
    /// The lines before this turn, oldest first; at most [`AgentRuntime::history`](crate::AgentRuntime::history). A program
    /// that speaks for the person may have told them, in place of the transcript. After a deferral they include this turn's own question
    /// and deferral.
    pub history: Vec<Arc<HistoryLine>>,
    /// What became of the agent's answer to the turn that it had before this one in the session; `None` if it was seen without a
    /// reaction or is on its way, or if there is none. Known of a
    /// runtime that gets [history](crate::AgentRuntime::history) or [keeps sessions](crate::AgentRuntime::keeps_sessions).
    pub last_answer: Option<LastAnswer>,
    /// Who did the run before this one, as it was [stored](crate::RunEvents::hand_out), if that run ended with the process of the gateway.
    pub holder: Option<String>,
    /// Set if this agent deferred the turn before: the answer is due now.
    pub deferred: Option<Deferred>,
    /// Set if the ladder handed the turn to this agent: other agents had it before.
    pub handoff: Option<Handoff>,
    /// The approvals that this agent asked for in earlier runs of the turn, oldest first. Each is given to one run: see
    /// [`AgentApproval::is_used`].
    pub approvals: Vec<AgentApproval>,
    /// What became of the [questions](crate::RunEvents::ask_person) that this agent asked the person in earlier runs of the turn, oldest first.
    pub answers: Vec<PersonAnswer>,
}

/// A turn, as it is given to an agent.
#[derive(Clone, Debug)]
pub struct AgentTurn {
    /// The turn's id: the same for every run, so that a runtime can recognise it.
    pub turn: TurnId,
    /// How many runs of the turn this agent has had, including this one.
    pub attempt: u32,
    pub person: AgentPerson,
    pub message: AgentMessage,
    /// The messages that came after it and are answered together with it, oldest first.
    pub more: Vec<AgentMessage>,
    pub place: AgentPlace,
    pub rights: AgentRights,
    pub past: AgentPast,
    /// When the run started.
    pub now: Timestamp,
    /// When the gateway stops the run.
    pub deadline: Timestamp,
    /// The trace that the run belongs to, for the agent's own; `None` if none is recorded.
    pub trace: Option<TraceHeaders>,
}

/// Where an agent calls the tools of its run itself, over the Model Context Protocol. It holds as long as the run.
#[derive(Clone)]
pub struct ToolAccess {
    /// The URL of the server.
    pub url: Arc<str>,
    pub tokens: Arc<dyn ToolTokens>,
}

/// The tokens with which the tools of a run are called, one after the other.
pub trait ToolTokens: Send + Sync {
    /// The bearer token that holds now: a secret.
    fn token(&self) -> Arc<str>;

    /// Voids the token, and what was chosen with it, and makes another one: from now on another worker has the run.
    fn begin_again(&self);
}

impl PartialEq for ToolAccess {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && Arc::ptr_eq(&self.tokens, &other.tokens)
    }
}

impl Eq for ToolAccess {}

impl fmt::Debug for ToolAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolAccess").field("url", &self.url).finish_non_exhaustive()
    }
}

impl AgentTurn {
    /// Marks its approvals as used: another agent, which may have acted on them, had the turn.
    pub fn use_up_approvals(&mut self) {
        for approval in &mut self.past.approvals {
            approval.is_used |= approval.state == ApprovalState::Approved;
        }
    }

    /// Its messages, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &AgentMessage> {
        iter::once(&self.message).chain(&self.more)
    }

    /// Drops the bytes and the texts of its files, which count until then.
    pub fn drop_files(&mut self) {
        for file in self.files_mut() {
            (file.bytes, file.text) = (None, None);
        }
    }

    /// The files of its messages, and of what they quote.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut AgentFile> {
        iter::once(&mut self.message).chain(&mut self.more).flat_map(|AgentMessage { attachments, quoted, .. }| {
            attachments.iter_mut().chain(quoted.iter_mut().flat_map(|quoted| &mut quoted.files))
        })
    }
}
