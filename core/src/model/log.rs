//! The log: what happened, in the order in which it was stored.
//!
//! An entry is written in the transaction of the change that it reports. Entries are never changed. They hold ids, names
//! and the operator's details, and never what people or agents wrote.

use std::borrow::Cow;

use rejoinder_guard::{Cause, SignalKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::ChannelId,
    ids::{ApprovalId, ConversationId, DeliveryId, PersonId, TurnId},
    target::NotReached,
    turn::Handler,
    view::FallbackView,
};

/// The position of an entry in the log: larger than that of every entry that was stored before.
pub type LogSeq = i64;

/// An entry to write.
#[derive(Clone, Debug, PartialEq)]
pub struct NewLogEntry {
    pub at: Timestamp,
    pub subject: Subject,
    pub event: LogEvent,
}

/// What an entry is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
}

impl Subject {
    /// A channel alone.
    pub fn channel(channel: &ChannelId) -> Self {
        Self { channel: Some(channel.clone()), ..Self::default() }
    }
}

/// An entry of the log, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its position in the log.
    pub seq: LogSeq,
    pub at: Timestamp,
    /// What happened: `turn.settled`.
    pub topic: String,
    #[serde(flatten)]
    pub subject: Subject,
    /// The fields of its [`LogEvent`], as JSON.
    pub data: serde_json::Value,
}

/// What happened. A variant's fields are the entry's data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LogEvent {
    /// `turn.accepted`: an event opened a turn.
    TurnAccepted {
        /// The agent or the command that it is for.
        #[serde(flatten)]
        handler: Handler,
        owed: bool,
    },
    /// `turn.started`: a run began.
    TurnStarted {
        /// The agent or the command that runs.
        #[serde(flatten)]
        handler: Handler,
        /// The run's number within the turn.
        run: u32,
    },
    /// `turn.claimed`: the guard cleared a signal.
    TurnClaimed {
        /// The claim's number.
        claim: u32,
        signal: SignalKind,
        /// The rung of the ladder, if it is a fallback.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<FallbackView>,
    },
    /// `turn.merged`: another turn answers for it from now on.
    TurnMerged {
        /// That turn's id.
        into: String,
    },
    /// `turn.deferred`: the platform acknowledged a deferral.
    TurnDeferred {
        /// When the answer is due, in RFC 3339.
        due: String,
        /// How long the person waited for this signal, in milliseconds.
        waited_ms: u64,
        /// Whether a deferral was shown before.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
    },
    /// `turn.settled`: nothing is owed any more.
    TurnSettled {
        /// `reply`, `reaction`, `silence`, `cancelled` or `merged`.
        signal: &'static str,
        /// The rung of the ladder, if it answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback: Option<FallbackView>,
        /// How long the person waited for the answer, in milliseconds, if one was owed.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
        /// Whether a deferral was shown before.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
    },
    /// `turn.undeliverable`: the turn became a dead letter. The turn says why: that may be what an agent wrote.
    TurnUndeliverable {
        /// Why the ladder was climbed, if it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    /// `turn.held`: the operator holds it.
    TurnHeld,
    /// `turn.resumed`: the operator resumed it.
    TurnResumed,
    /// `delivery.attempted`: an attempt is about to send its first byte.
    DeliveryAttempted {
        delivery_id: DeliveryId,
        /// The attempt's number.
        attempt: u32,
    },
    /// `delivery.delivered`: the platform acknowledged it.
    DeliveryDelivered {
        delivery_id: DeliveryId,
        /// The attempt's number.
        attempt: u32,
        /// The platform's ids of the messages.
        message_ids: Vec<String>,
    },
    /// `delivery.failed`: an attempt failed; another one may follow.
    DeliveryFailed {
        delivery_id: DeliveryId,
        /// The attempt's number.
        attempt: u32,
        /// The error's name.
        result: String,
        /// The platform's words.
        error: Option<String>,
    },
    /// `delivery.parked`: it gets nowhere, and what comes after it does not wait for it.
    DeliveryParked { delivery_id: DeliveryId },
    /// `delivery.dead`: it is kept for the operator.
    DeliveryDead { delivery_id: DeliveryId },
    /// `delivery.retried`: the operator has it sent again.
    DeliveryRetried { delivery_id: DeliveryId },
    /// `delivery.discarded`: the operator gave it up.
    DeliveryDiscarded { delivery_id: DeliveryId },
    /// `question.picked`: a person picked a choice of the question that answered the turn.
    QuestionPicked,
    /// `question.expired`: nobody did so in time.
    QuestionExpired,
    /// `approval.asked`: an agent asks for an approval.
    ApprovalAsked { approval_id: ApprovalId },
    /// `approval.decided`: it was decided, or is not waited for any more.
    ApprovalDecided {
        /// The approval; none if nobody decided it: the turn says which.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval_id: Option<ApprovalId>,
        /// `approved`, `declined`, `expired` or `dropped`.
        decision: &'static str,
    },
    /// `channel.up`: the channel receives events and can send.
    ChannelUp,
    /// `channel.down`: it does not.
    ChannelDown { problem: String },
    /// `agent.up`: a run of the agent succeeded after others had failed.
    AgentUp { agent: String },
    /// `agent.down`: several runs in a row failed.
    AgentDown {
        agent: String,
        /// The latest error, without what the agent said.
        error: String,
    },
    /// `store.down`: the store could not write from then on. Logged once it can again.
    StoreDown { problem: String },
    /// `store.up`: it can write again.
    StoreUp,
    /// `alert.raised`: people were told that something is wrong, or that there is more of it.
    AlertRaised {
        /// The kind of problem, as in `[alerts]`.
        kind: String,
        /// The channel or agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        text: String,
        /// How many turns or deliveries it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// `alert.cleared`: people were told that it is over.
    AlertCleared {
        /// As in `AlertRaised`.
        kind: String,
        /// As in `AlertRaised`.
        #[serde(skip_serializing_if = "Option::is_none")]
        about: Option<String>,
    },
    /// `alert.digest`: the digest of the alerts was sent.
    AlertDigest,
    /// `person.asked`: somebody who is not known was given a code to be let in with.
    PersonAsked {
        /// Who: `CHANNEL/ID`.
        identity: String,
    },
    /// `agents.interrupted`: another agent and ours answered each other without end; the other one is not heard for a while.
    AgentsInterrupted {
        /// The other agent: `CHANNEL/ID`.
        identity: String,
        conversation: String,
        /// Until when, in RFC 3339.
        until: String,
    },
    /// `schedule.ran`: a schedule's time has come.
    ScheduleRan {
        schedule: String,
        /// The time, in RFC 3339.
        due: String,
        /// Why nothing was begun.
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        not_reached: Vec<NotReached>,
    },
    /// `schedule.missed`: times of a schedule passed while the gateway was down, and are not made up for one by one.
    ScheduleMissed { schedule: String, times: usize },
    /// `schedule.paused`: a schedule failed too often in a row, and begins nothing until an operator resumes it.
    SchedulePaused { schedule: String, why: String },
    /// `digest.pressed`: somebody pressed a button below what a digest listed.
    DigestPressed {
        /// The button: `answer`, `snooze` or `drop`.
        button: &'static str,
        person: PersonId,
        /// Until when it is left out of their digests, in RFC 3339.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// `operator.…`: an operator did something.
    Operator(AuditEntry),
}

impl LogEvent {
    /// The topic, under which entries are followed: a kind of subject, a dot, and what happened.
    pub fn topic(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::TurnAccepted { .. } => "turn.accepted",
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnClaimed { .. } => "turn.claimed",
            Self::TurnMerged { .. } => "turn.merged",
            Self::TurnDeferred { .. } => "turn.deferred",
            Self::TurnSettled { .. } => "turn.settled",
            Self::TurnUndeliverable { .. } => "turn.undeliverable",
            Self::TurnHeld => "turn.held",
            Self::TurnResumed => "turn.resumed",
            Self::DeliveryAttempted { .. } => "delivery.attempted",
            Self::DeliveryDelivered { .. } => "delivery.delivered",
            Self::DeliveryFailed { .. } => "delivery.failed",
            Self::DeliveryParked { .. } => "delivery.parked",
            Self::DeliveryDead { .. } => "delivery.dead",
            Self::DeliveryRetried { .. } => "delivery.retried",
            Self::DeliveryDiscarded { .. } => "delivery.discarded",
            Self::QuestionPicked => "question.picked",
            Self::QuestionExpired => "question.expired",
            Self::ApprovalAsked { .. } => "approval.asked",
            Self::ApprovalDecided { .. } => "approval.decided",
            Self::ChannelUp => "channel.up",
            Self::ChannelDown { .. } => "channel.down",
            Self::AgentUp { .. } => "agent.up",
            Self::AgentDown { .. } => "agent.down",
            Self::StoreDown { .. } => "store.down",
            Self::StoreUp => "store.up",
            Self::AlertRaised { .. } => "alert.raised",
            Self::AlertCleared { .. } => "alert.cleared",
            Self::AlertDigest => "alert.digest",
            Self::PersonAsked { .. } => "person.asked",
            Self::AgentsInterrupted { .. } => "agents.interrupted",
            Self::ScheduleRan { .. } => "schedule.ran",
            Self::ScheduleMissed { .. } => "schedule.missed",
            Self::SchedulePaused { .. } => "schedule.paused",
            Self::DigestPressed { .. } => "digest.pressed",
            Self::Operator(entry) => return Cow::Owned(format!("operator.{}", entry.action)),
        })
    }
}

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The name of the operator's token.
    pub by: String,
    /// What was done: `retry`, `redirect`, `discard`, `cancel`, `hold`, `resume`, …
    pub action: String,
    /// The id of what it was done to.
    pub target: String,
    /// Why, in the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<NotReached>,
}

/// Which entries of the log are read.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only entries after this position.
    pub after: LogSeq,
    /// Only these topics, or all if there are none. `turn.*` stands for every topic that begins with `turn.`.
    pub topics: Vec<String>,
    /// Only entries about these channels; `None` for all, and for what is about no channel.
    pub channels: Option<Vec<ChannelId>>,
    /// Only entries before this position.
    pub before: Option<LogSeq>,
    pub newest_first: bool,
    /// The maximum number of entries.
    pub limit: u32,
}
