//! What is accepted: events, the turns they become, and the cursor that covers them.

use std::sync::Arc;

use rejoinder_guard::Obligation;

use crate::{
    model::{
        conversation::ChannelId,
        event::InboundEvent,
        ids::{ConversationId, EventId, SessionId, TurnId},
        turn::Handler,
    },
    ports::store::transition::RunStart,
};

/// An event to accept, with what follows from it.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// The event.
    pub event: Arc<InboundEvent>,
    /// The turn it becomes; `None` for what is kept and given to nobody.
    pub turn: Option<NewTurn>,
}

/// A turn to open.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// Its id.
    pub id: TurnId,
    /// Who answers it.
    pub handler: Handler,
    /// What is owed; stored at version 1.
    pub obligation: Obligation,
    /// The run that starts with it, when its conversation is free.
    pub run: Option<RunStart>,
    /// The id its conversation gets, if nothing was said there before.
    pub conversation: ConversationId,
    /// The id its conversation's first session gets, if it is new.
    pub session: SessionId,
}

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is a new turn.
    Turn {
        /// Its conversation, new or known.
        conversation: ConversationId,
        /// The conversation's current session.
        session: SessionId,
        /// Whether the session has a transcript.
        has_history: bool,
    },
    /// It changed a turn that waits; see [`Amends`](crate::Amends).
    Amended {
        /// The turn.
        turn: TurnId,
    },
    /// It is new, and no turn.
    Kept,
    /// It picks from a question that was answered before: it is kept.
    Picked {
        /// The words that were picked first.
        choice: String,
    },
    /// It was accepted before; nothing was changed.
    Duplicate {
        /// The turn it became then.
        turn: Option<TurnId>,
        /// The text it had then, so that a key that is used for something else is noticed.
        text: String,
        /// The platform's id of who sent it then, for the same reason.
        sender: String,
    },
}

/// How far a channel has read its platform; written with the events that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorMove {
    /// The channel.
    pub channel: ChannelId,
    /// Which of the channel's cursors: `updates`, or a room's id.
    pub name: String,
    /// Where it stands from now on.
    pub position: String,
}
