//! What happens together or not at all.

use rejoinder_guard::{Obligation, Timestamp};

use crate::{
    model::{
        agent::{Line, Usage},
        delivery::Action,
        ids::{ConversationId, DeliveryId, OwnerId, SessionId, TurnId},
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::{Handler, Version},
    },
    ports::store::record::AuditEntry,
};

/// Things that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transition {
    /// The obligations that change; the transition happens only if every one is at its expected version.
    pub turns: Vec<TurnChange>,
    /// New deliveries, in order.
    pub deliveries: Vec<NewDelivery>,
    /// Claims whose unsent deliveries are suppressed.
    pub withdrawn: Vec<Withdrawal>,
    /// Deliveries that change.
    pub delivery_changes: Vec<DeliveryChange>,
    /// Attempts that begin.
    pub attempts_started: Vec<AttemptStart>,
    /// Attempts that ended.
    pub attempts_ended: Vec<AttemptEnd>,
    /// Runs that start.
    pub runs_started: Vec<RunStart>,
    /// Runs that ended.
    pub runs_ended: Vec<RunEnd>,
    /// Lines for the transcript; a turn has one line per speaker, the last one written counts.
    pub transcript: Vec<TranscriptLine>,
    /// New current sessions.
    pub sessions: Vec<NewSession>,
    /// Remarks for `explain`.
    pub audit: Vec<AuditEntry>,
}

impl Transition {
    /// Whether nothing happens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A change of what is owed for one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnChange {
    /// The turn.
    pub turn: TurnId,
    /// The version the decision was made on; afterwards it is one more.
    pub expected: Version,
    /// What is owed from now on.
    pub obligation: Obligation,
    /// When it was decided.
    pub at: Timestamp,
}

/// Whether a transition happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It did.
    Done,
    /// A turn was not at its expected version: nothing was changed. Read it again and decide anew.
    Conflict,
}

/// A delivery to insert, in the order of its conversation. Only the outbox makes one, from what the
/// guard cleared.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    record: DeliveryRecord,
}

impl NewDelivery {
    pub(crate) const fn new(record: DeliveryRecord) -> Self {
        Self { record }
    }

    /// What to insert.
    #[must_use]
    pub const fn record(&self) -> &DeliveryRecord {
        &self.record
    }
}

/// Suppresses what waits of a claim, tried in vain or not. What is on its way, or has arrived, stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The turn.
    pub turn: TurnId,
    /// Its claim.
    pub claim: u32,
    /// Why, for the operator.
    pub reason: String,
}

/// The new values of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryChange {
    /// Which.
    pub id: DeliveryId,
    /// Where it stands from now on.
    pub state: DeliveryState,
    /// How many attempts count.
    pub attempts: u32,
    /// When it is tried next.
    pub next_attempt_at: Timestamp,
    /// Whether it is sent with a label.
    pub labelled: bool,
    /// What to do instead of what was stored, when that cannot be done any more.
    pub action: Option<Action>,
    /// The platform's ids.
    pub message_ids: Vec<String>,
    /// The last error.
    pub error: Option<String>,
    /// When it was acknowledged.
    pub delivered_at: Option<Timestamp>,
}

impl DeliveryChange {
    /// The delivery as it is: the base of a change.
    #[must_use]
    pub fn of(delivery: &DeliveryRecord) -> Self {
        Self {
            id: delivery.id,
            state: delivery.state,
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            labelled: delivery.labelled,
            action: None,
            message_ids: delivery.message_ids.clone(),
            error: delivery.error.clone(),
            delivered_at: delivery.delivered_at,
        }
    }
}

/// An attempt that is about to send its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which attempt, counted from 1; unique within the delivery.
    pub number: u32,
    /// The process that makes it.
    pub owner: OwnerId,
    /// When.
    pub at: Timestamp,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Which attempt.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// `delivered`, or the error's name.
    pub result: String,
    /// What the platform said.
    pub detail: Option<String>,
}

/// A run that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStart {
    /// The turn.
    pub turn: TurnId,
    /// Which run of the turn, counted from 1 over all agents.
    pub number: u32,
    /// Who answers.
    pub handler: Handler,
    /// The process that it runs in.
    pub owner: OwnerId,
    /// When.
    pub at: Timestamp,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The turn.
    pub turn: TurnId,
    /// Which run of the turn.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// `reply`, `reaction`, `deferral`, `silent`, `failed`, `stopped`, `crashed`.
    pub end: String,
    /// More, for the operator.
    pub detail: Option<String>,
    /// What was consumed.
    pub usage: Option<Usage>,
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    /// The session it belongs to.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The line.
    pub line: Line,
}

/// A conversation's new current session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The conversation.
    pub conversation: ConversationId,
    /// Since when.
    pub at: Timestamp,
}
