//! A transition: the changes that the store writes in one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_guard::{Attachment, Obligation, Timestamp};
use serde_json::Value;

use super::{
    agreements::Configuration,
    day_use::DayUse,
    error::StoreError,
    nodes::{Fence, LeaseName},
    record::{Pause, Remark},
};
use crate::model::{
    Action, AgentName, AgentSessionChange, ApprovalChange, AskedQuestion, AuditEntry, BUDGET_SOON, BUDGET_USED, Budget,
    ChannelId, ConversationId, ConversationRef, Cost, DeliveryId, DeliveryRecord, DeliveryState, ErrorMark, Handler,
    HistoryLine, Label, LineLevel, LogLine, NewLogEntry, NodeId, PeopleChange, PersonId, QueueMode, RunContent,
    ScheduleChange, SessionChange, SessionId, SignInChange, Subject, TokenChange, TurnFile, TurnId, TurnSeq, Usage,
    Used, Version, VisitorChange, VoiceMode,
};

/// What changes everything but events, limits of platforms, lines and expired rows: transitions.
#[async_trait]
pub trait Transitions: Send + Sync + 'static {
    /// Applies a transition in one transaction. Neither a conflict nor a lost lease is an error.
    ///
    /// # Errors
    /// If so, nothing was changed, unless it is [`StoreError::Unknown`].
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError>;

    /// The version of a noun. Read before its rows, it makes a decision on them fail if they are changed meanwhile.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn version(&self, noun: Noun) -> Result<Version, StoreError>;
}

/// Changes that the store writes in one transaction, all or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transition {
    /// The lease under which this is done: it is applied only while the node still has this grant of it, and no other node is granted
    /// the lease before it is stored. `None`: any node may do it, or there is no other one.
    pub fence: Option<(LeaseName, Fence)>,
    /// Changed obligations; the transition is applied only if every one is at its expected version.
    pub turns: Vec<TurnChange>,
    /// What else it was decided on: it is applied only if nothing of it was changed since.
    pub seen: Vec<Seen>,
    /// The configuration of these people and schedules. The transition is applied only if it is the latest one, or its number is the next
    /// after the latest: then it becomes the latest. A store that admits one process ignores it.
    pub configuration: Option<Configuration>,
    /// New deliveries, in the order in which they are to be sent.
    pub deliveries: Vec<NewDelivery>,
    /// A conversation, and its address: the transition is applied only if it is at this address, and nothing of it is pending or
    /// being sent. Then the first of these deliveries can be sent at once.
    pub empty_lane: Option<(ConversationId, ConversationRef)>,
    /// Files that rows of turns refer to from now on. They are stored before these rows.
    pub files: Vec<TurnFile>,
    /// Questions that these deliveries ask: in place of earlier ones of their turns.
    pub questions: Vec<AskedQuestion>,
    /// Questions that nobody needs to answer any more, by the turns that they answered: as if they had expired, and nobody is told.
    pub closed_questions: Vec<ClosedQuestion>,
    /// Claims whose pending deliveries are withdrawn.
    pub withdrawn: Vec<Withdrawal>,
    pub delivery_changes: Vec<DeliveryChange>,
    /// A delivery that is due from this time on, if it waits for a later one.
    pub due_now: Option<(DeliveryId, Timestamp)>,
    pub attempts_started: Vec<AttemptStart>,
    pub attempts_ended: Vec<AttemptEnd>,
    /// Runs that start. With its turn, one of an agent takes the [slot](super::turns::QueueStore::slot_of) of the conversation.
    pub runs_started: Vec<RunStart>,
    /// With its turn, one of an agent frees the slot.
    pub runs_ended: Vec<RunEnd>,
    /// Who does runs outside of this process.
    pub holders: Vec<RunHolder>,
    /// Lines for the transcript. Whether the line of a claim was seen follows from the deliveries of the claim.
    pub transcript: Vec<TranscriptLine>,
    /// What changes of earlier lines with the deliveries of this transition, for what a store keeps in memory.
    pub lines: Vec<LineChange>,
    /// Changes of sessions, in order.
    pub sessions: Vec<SessionChange>,
    /// What agents keep and were told of sessions, in order.
    pub agent_sessions: Vec<AgentSessionChange>,
    /// What something other than a run used of a day, and when.
    pub used: Option<(AgentUse, Timestamp)>,
    /// Remarks for `explain`.
    pub remarks: Vec<Remark>,
    /// Remarks that others than the core cause.
    pub bounded_remarks: Vec<BoundedRemark>,
    pub log: Vec<NewLogEntry>,
    /// What an operator did, which is also written to the log.
    pub operation: Option<Operation>,
    pub token: Option<TokenChange>,
    /// An error of the gateway's own log, by its id, and what an operator says of it.
    pub error: Option<(i64, ErrorMark)>,
    /// Changes of the sessions of the operator's page, in order.
    pub sign_ins: Vec<SignInChange>,
    /// Changes of what people sign in to a chat page with, in order.
    pub visitors: Vec<VisitorChange>,
    /// Changes of approvals, in order.
    pub approvals: Vec<ApprovalChange>,
    /// Changes of schedules, in order.
    pub schedules: Vec<ScheduleChange>,
    /// Changes of who is known, in order.
    pub people: Vec<PeopleChange>,
    /// What happens to messages of a conversation that come while a turn runs; `None`: as it is configured.
    pub queue: Option<(ConversationId, Option<QueueMode>)>,
    /// Which answers are spoken in a conversation; `None`: as it is configured.
    pub voice: Option<(ConversationId, Option<VoiceMode>)>,
    /// A channel that an operator pauses, or resumes (`None`): applied only if that changes something.
    pub pause: Option<(ChannelId, Option<Pause>)>,
}

impl Transition {
    /// Whether it holds no change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it changes a schedule, and not only what became of its times.
    pub fn changes_schedules(&self) -> bool {
        self.schedules.iter().any(|change| !matches!(change, ScheduleChange::Ran(_)))
    }
}

/// Rows that are decided on together. Each noun has a version, which counts the changes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Noun {
    /// Who is known, who asks to be let in, and where and how people are reached.
    People,
    /// The schedules, without what became of their times.
    Schedules,
    /// The sessions that began in a conversation or are used in it, as far as people change them.
    SessionsIn(ConversationId),
    /// The sessions of a person, as far as people change them.
    SessionsOf(PersonId),
    /// The tokens, and the sessions of the operator's page with the links to it.
    Tokens,
}

/// The version of a noun that a decision was made on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub noun: Noun,
    /// Its version, read before its rows were.
    pub version: Version,
}

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub at: Timestamp,
    pub entry: AuditEntry,
    pub subject: Subject,
    /// The answer that a repeated request gets.
    pub answer: Option<IdempotentAnswer>,
}

/// The answer to a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentAnswer {
    /// Who sent the request: keys of different operators do not collide.
    pub by: String,
    /// The key that the request came with.
    pub key: String,
    /// A digest of what was asked.
    pub request: Vec<u8>,
    pub status: u16,
    pub body: String,
}

/// A change of one turn's obligation.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnChange {
    /// The turn whose obligation changes.
    pub turn: TurnId,
    /// The version that the decision was made on; the change increments it.
    pub expected: Version,
    /// The obligation's new state.
    pub obligation: Obligation,
    /// When the guard decided; the turn's end if the new state is final.
    pub at: Timestamp,
}

/// The result of committing a transition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    #[default]
    Done,
    /// A turn or a noun was not at its expected version, another configuration was the latest, a channel was paused or resumed already,
    /// a link was used before, or a lane was not empty: nothing was changed. Read again and decide again. Or a run was to start in a
    /// conversation in which another turn runs, on another node.
    Conflict,
    /// The node does not have the [lease](Transition::fence) any more: nothing was changed. A store whose leases are there for good
    /// never says so.
    NotOwner,
}

impl Commit {
    /// Whether the transition was applied; `false` after a conflict.
    ///
    /// # Errors
    /// [`StoreError::NotOwner`].
    pub const fn is_done(self) -> Result<bool, StoreError> {
        match self {
            Self::Done => Ok(true),
            Self::Conflict => Ok(false),
            Self::NotOwner => Err(StoreError::NotOwner),
        }
    }
}

/// A delivery to insert at the end of its conversation's lane. Only the outbox makes one, from signals and drafts
/// that the guard cleared.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    record: DeliveryRecord,
}

impl NewDelivery {
    pub(crate) const fn new(record: DeliveryRecord) -> Self {
        Self { record }
    }

    /// Has it stored as being sent: its first attempt begins with its claim.
    pub(crate) const fn begin(&mut self) {
        self.record.state = DeliveryState::Sending;
        self.record.attempts = 1;
    }

    /// The row to insert.
    pub const fn record(&self) -> &DeliveryRecord {
        &self.record
    }

    /// The files that it sends.
    pub(crate) fn files_mut(&mut self) -> &mut [Attachment] {
        self.record.action.files_mut()
    }
}

/// Withdraws the pending and held deliveries of a claim, attempted before or not. Those being sent or delivered do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The turn whose claim it is.
    pub turn: TurnId,
    pub claim: u32,
    /// The reason, for the operator; stored as the deliveries' error.
    pub reason: String,
}

/// Closes a question if it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedQuestion {
    pub turn: TurnId,
    pub at: Timestamp,
}

/// The new values of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryChange {
    pub id: DeliveryId,
    pub state: DeliveryState,
    /// The number of attempts that count.
    pub attempts: u32,
    pub next_attempt_at: Timestamp,
    pub label: Option<Label>,
    pub parked: bool,
    /// The number of attempts that may each have shown it.
    pub copies: u32,
    /// When it may be sent again, at the earliest.
    pub resend_from: Option<Timestamp>,
    /// A new action in place of the stored one; `None` keeps it.
    pub action: Option<Action>,
    /// The platform's message ids.
    pub message_ids: Vec<String>,
    /// The last error, for the operator.
    pub error: Option<String>,
    /// When the operator last had it sent again.
    pub retried_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
}

impl DeliveryChange {
    /// A change that keeps everything as `delivery` has it, to build others on.
    pub fn of(delivery: &DeliveryRecord) -> Self {
        Self {
            id: delivery.id,
            state: delivery.state,
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            label: delivery.label,
            parked: delivery.parked,
            copies: delivery.copies,
            resend_from: delivery.resend_from,
            action: None,
            message_ids: delivery.message_ids.clone(),
            error: delivery.error.clone(),
            retried_at: delivery.retried_at,
            delivered_at: delivery.delivered_at,
        }
    }
}

/// An attempt that begins; stored before its first byte is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    pub delivery: DeliveryId,
    /// The attempt's number, counted from 1; unique within the delivery.
    pub number: u32,
    pub node: NodeId,
    pub at: Timestamp,
}

/// The end of an attempt, which has none: otherwise the transition fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    pub delivery: DeliveryId,
    /// The attempt's number within the delivery.
    pub number: u32,
    pub at: Timestamp,
    /// `delivered`, or [`DeliveryError::as_str`](crate::DeliveryError::as_str).
    pub result: String,
    /// The message id from the receipt, or the error text.
    pub detail: Option<String>,
}

/// A run that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStart {
    pub turn: TurnId,
    /// The run's number within the turn, counted from 1 over all agents.
    pub number: u32,
    /// The agent or the command that runs.
    pub handler: Handler,
    pub node: NodeId,
    pub at: Timestamp,
}

/// Who does a run outside of this process, as its runtime wrote it down: in place of an earlier note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHolder {
    pub turn: TurnId,
    /// The run's number within the turn.
    pub number: u32,
    /// Empty: nobody any more.
    pub holder: String,
}

/// A remark of which there may be many. It is left out if its turn is not there, or has enough of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedRemark {
    pub remark: Remark,
    /// How many of this kind a turn has at most.
    pub most: u32,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub turn: TurnId,
    /// The run's number within the turn.
    pub number: u32,
    pub at: Timestamp,
    /// `reply`, `reaction`, `deferral`, `approval`, `silent`, `failed`, `unreadable`, `unheard`, `budget`, `stopped`, `crashed` or
    /// `interrupted`.
    pub end: String,
    /// The error, the reason for silence, the text of the deferral or the action to approve, for the operator.
    pub detail: Option<String>,
    /// The tokens that the runtime reported.
    pub usage: Option<Usage>,
    /// What they cost, if the agent, or the member that used them, has a price.
    pub cost: Option<Cost>,
    /// What counts for the person of its turn, if what they use of a day is limited.
    pub used: Used,
    /// What counts for agents with a budget: the one that ran, and its members.
    pub agents: Vec<AgentUse>,
    /// The member that answered in the agent's place, or was the last to fail.
    pub member: Option<AgentName>,
    /// What the model was shown and what it did; `None` if the runtime reported neither.
    pub content: Option<Arc<RunContent>>,
}

impl RunEnd {
    /// The end of a run of which nothing else is known.
    #[must_use]
    pub fn new(turn: TurnId, number: u32, at: Timestamp, end: String, detail: Option<String>) -> Self {
        let (usage, cost, member, content) = (None, None, None, None);
        Self { turn, number, at, end, detail, usage, cost, used: Used::default(), agents: Vec::new(), member, content }
    }
}

/// What a run used of the day of an agent with a budget, or something else of a day of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentUse {
    pub agent: AgentName,
    /// The day on which it counts: days since 1970-01-01.
    pub day: i64,
    pub used: Used,
    pub budget: Budget,
}

impl AgentUse {
    /// The line for operators, if most of the budget, or all of it, was used with this. `before` and `after` are what the agent has
    /// used of the day without and with it. The store adds the line in the same transaction, so that it is told once.
    pub fn news(&self, before: DayUse, after: DayUse, at: Timestamp) -> Option<LogLine> {
        let percent = |used: DayUse| self.budget.percent(used.tokens, used.micros);
        let (earlier, now) = (percent(before), percent(after));
        let message = if earlier < 100 && now >= 100 {
            BUDGET_USED
        } else if earlier < Budget::MOST && now >= Budget::MOST {
            BUDGET_SOON
        } else {
            return None;
        };
        let what = format!("{}, {now} %", self.agent);
        let fields = [("agent", Value::from(&*self.agent)), ("what", what.into()), ("tokens", after.tokens.into())];
        Some(LogLine {
            at,
            level: LineLevel::Error,
            target: module_path!().to_owned(),
            message: message.to_owned(),
            channel: None,
            turn_id: None,
            fields: fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
        })
    }
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    pub session: SessionId,
    pub turn: TurnId,
    /// The turn's position in the order of acceptance, which is that of the lines.
    pub seq: TurnSeq,
    /// The claim that it is said with; 0 for what the person wrote. A turn has one line per claim.
    pub claim: u32,
    /// The speaker, the text and the time.
    pub line: HistoryLine,
}

/// A change of the lines of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// The person has seen all of this claim.
    Seen {
        session: SessionId,
        turn: TurnId,
        claim: u32,
    },
    Other {
        session: SessionId,
    },
}
