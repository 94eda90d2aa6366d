//! Turns, as clients of hooks and of the chat page see them.

use rejoinder_guard::{Attachment, Cause, Obligation, ObligationState, Rung, Settlement, SignalKind, Timestamp, Via};
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::AgentName,
    conversation::ConversationRef,
    delivery::Action,
    event::SenderKind,
    ids::TurnId,
    stored_delivery::DeliveryRecord,
    turn::{Handler, TurnSeq},
};

/// A turn, as clients of hooks and of the chat page see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnView {
    pub turn_id: TurnId,
    /// Its position in the order of acceptance.
    pub seq: TurnSeq,
    pub conversation: ConversationRef,
    pub at: Timestamp,
    /// The person's message; empty if the gateway began the turn by itself.
    pub text: String,
    /// Files that came with the message.
    pub attachments: Vec<Attachment>,
    /// Whether it is answered, deferred or has ended otherwise.
    pub status: TurnStatus,
    /// The latest signal: the deferral until the answer comes, then the answer.
    pub shown: Option<Shown>,
    /// The choice that was picked first, if it was answered with a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<String>,
    /// The turn that answers for it, if it was merged into another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<TurnId>,
    /// The turn in whose place it was asked: the same question, or it in other words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<TurnId>,
}

impl TurnView {
    /// The turn that answers for a turn with this obligation, if there is one.
    pub fn merged_into(obligation: &Obligation) -> Option<TurnId> {
        match obligation.state() {
            ObligationState::Merged { into } | ObligationState::Settled(Settlement::Merged { into }) => {
                into.parse().ok()
            }
            _ => None,
        }
    }

    /// What a turn's sender said, as it is shown to them: nothing if the gateway began the turn by itself. A prompt's text is for
    /// the agent, and that of a message is its answer.
    pub fn said(sender: SenderKind, text: String, attachments: Vec<Attachment>) -> (String, Vec<Attachment>) {
        if sender == SenderKind::Operator { (String::new(), Vec::new()) } else { (text, attachments) }
    }

    /// What the person was told when the turn was given up. A deferral that was shown before is no longer true.
    pub fn farewell(&self) -> Option<&Shown> {
        let is_given_up = self.status == TurnStatus::Cancelled;
        self.shown.as_ref().filter(|shown| is_given_up && shown.signal != SignalKind::Deferral)
    }

    /// The view of a turn for which `other` answers: with the status and the signal of that one.
    #[must_use]
    pub fn answered_by(self, other: Self) -> Self {
        Self { status: other.status, shown: other.shown, picked: other.picked, ..self }
    }
}

/// The status of a turn, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Accepted; no signal was shown yet.
    Accepted,
    /// A deferral was shown, or could not be; the answer is a debt.
    Deferred,
    /// Settled by a signal, its own or that of the turn it was merged into.
    Answered,
    /// Nothing was owed and nothing was sent.
    Silent,
    /// Cancelled by the person or given up by the operator.
    Cancelled,
    /// No rung could be delivered: a dead letter.
    Undeliverable,
}

impl TurnStatus {
    /// The status of a turn with this obligation.
    pub fn of(obligation: &Obligation) -> Self {
        match obligation.state() {
            // The signal after a deferral is still in flight: the person sees the deferral.
            ObligationState::Claimed(_) if obligation.due().is_some() => Self::Deferred,
            ObligationState::Deferred => Self::Deferred,
            ObligationState::Open | ObligationState::Merged { .. } | ObligationState::Claimed(_) => Self::Accepted,
            ObligationState::Settled(
                Settlement::Cancelled { .. } | Settlement::Signal { via: Via::GivenUp { .. }, .. },
            ) => Self::Cancelled,
            ObligationState::Settled(Settlement::Signal { .. } | Settlement::Merged { .. }) => Self::Answered,
            ObligationState::Settled(Settlement::Silence { .. }) => Self::Silent,
            ObligationState::Undeliverable { .. } => Self::Undeliverable,
        }
    }

    /// Whether the status will not change any more.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::Deferred)
    }
}

/// A signal, as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub signal: SignalKind,
    /// The agent that said it; `None`: the gateway, with the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The text, Markdown; for a reaction, the emoji.
    pub text: String,
    /// Files of the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Choices of a guided question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The answer as an armoured age file, for the asker in place of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// The cause and the rung, if the ladder answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<FallbackView>,
    /// When the agent promised the answer for, if it is the agent's deferral. `None` once the agent works on it again. The
    /// gateway's own deferral promises no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// When the signal was claimed.
    pub at: Timestamp,
}

impl Shown {
    /// The signal that `parts` carry: all parts of one claim, in order. `agent` is the agent that has the turn, and `due`
    /// when the debt is due; both are left out of what the gateway itself says. `None` if there are no parts.
    pub fn of(parts: &[DeliveryRecord], agent: Option<&AgentName>, due: Option<Timestamp>) -> Option<Self> {
        let first = parts.first()?;
        let is_agents = agent.is_some() && !first.via.is_gateways();
        let agent = match &first.via {
            Via::Fallback { rung: Rung::Handoff(other), .. } => Some(AgentName::from(other.as_str())),
            _ => agent.cloned(),
        };
        let mut shown = Self {
            signal: first.signal,
            agent: agent.filter(|_| is_agents),
            text: String::new(),
            attachments: Vec::new(),
            choices: Vec::new(),
            sealed: None,
            fallback: FallbackView::of(&first.via),
            due: due.filter(|_| is_agents && first.signal == SignalKind::Deferral),
            at: first.created_at,
        };
        for part in parts {
            match &part.action {
                Action::Send { content, .. } | Action::Edit { content, .. } => {
                    shown.text.push_str(&content.text);
                    shown.attachments.extend_from_slice(&content.attachments);
                    shown.choices.extend_from_slice(&content.choices);
                    shown.sealed = shown.sealed.or_else(|| content.sealed.clone());
                }
                Action::React { emoji, .. } => shown.text.push_str(emoji),
                Action::Draft { .. } | Action::Typing { .. } | Action::Mark { .. } | Action::Delete { .. } => {}
            }
        }
        Some(shown)
    }
}

/// The agent that has a turn: the one that the ladder handed it to, else the one that it was routed to. `None` for a
/// command.
pub fn agent_of(handler: &Handler, obligation: &Obligation) -> Option<AgentName> {
    let routed = handler.agent()?;
    Some(obligation.handoff().map_or_else(|| routed.clone(), AgentName::from))
}

/// The rung that answered, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackView {
    /// Why the agent gave no answer.
    pub cause: Cause,
    /// The rung that answered: `say:silent`, `handoff:orchestrator`, …
    pub rung: String,
}

impl FallbackView {
    /// The rung that produced a signal, if one did.
    pub fn of(via: &Via) -> Option<Self> {
        match via {
            Via::Fallback { cause, rung } => Some(Self { cause: *cause, rung: rung.to_string() }),
            _ => None,
        }
    }
}
