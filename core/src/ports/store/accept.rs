//! Accepting: events, the turns they open, and the cursor that covers them.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use rejoinder_guard::{Obligation, Timestamp};

use super::{
    channels::ChannelStore,
    error::StoreError,
    nodes::{Fence, LeaseName},
    state::StoreState,
    transition::{RunStart, Transition},
};
use crate::model::{
    ChannelId, ConversationId, EventId, Handler, InboundEvent, NewFile, SessionId, SessionUse, TurnId, TurnSeq,
};

/// Events on their way in, and when a caller read an answer.
#[async_trait]
pub trait InboxStore: ChannelStore + StoreState {
    /// Accepts events in order, and stores what is beside them, in one transaction. The results are in
    /// the order of the events.
    ///
    /// # Errors
    /// If so, nothing was accepted, unless it is [`StoreError::Unknown`]. It is [`StoreError::NotOwner`] if what is beside them has a
    /// [lease](Beside::fence) that the node does not have any more.
    async fn accept(&self, events: Vec<NewEvent>, beside: Option<Beside<Stored>>) -> Result<Vec<Stored>, StoreError>;

    /// Checks that the store can write, by writing a row.
    ///
    /// # Errors
    /// When it cannot write.
    async fn probe(&self) -> Result<(), StoreError>;

    /// Records, once, that a turn's row was written to its reader. Neither waited for nor retried: a failure is
    /// ignored.
    fn mark_fetched(&self, turn: TurnId, at: Timestamp);
}

/// An event to accept, with the turn it opens.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The id of the event's row.
    pub id: EventId,
    /// The event, with its key: channel, external id and revision.
    pub event: Arc<InboundEvent>,
    /// The turn it opens. An edit opens it only if the turn that it would change waits for its run. Of an event that opens
    /// no turn and changes none, only the key and the payload (`raw`) are stored.
    pub turn: Option<NewTurn>,
    /// Whether the store only looks for an earlier event with the same key, and stores nothing.
    pub only_if_known: bool,
    /// The files that the event refers to: stored with it, if it opens or changes a turn.
    pub files: Vec<NewFile>,
}

/// A turn to open.
#[derive(Clone, Debug)]
pub struct NewTurn {
    pub id: TurnId,
    /// The agent or the command that answers it.
    pub handler: Handler,
    /// The name of the rule of routing that holds for it.
    pub rule: Option<Arc<str>>,
    /// The model that was chosen for its agent, if not the agent's own.
    pub model: Option<Arc<str>>,
    /// Why what was chosen for its session does not hold for it: a remark for `explain`.
    pub remark: Option<String>,
    /// The turns that it puts before the agent again: from now on they are left out of what agents are shown.
    pub repeats: Option<Repeated>,
    /// The guard's state, stored at version 1.
    pub obligation: Obligation,
    /// The run that starts in the same transaction, if its conversation is free. One of an agent takes the conversation's
    /// [slot](super::turns::QueueStore::slot_of).
    pub run: Option<RunStart>,
    /// The id of a new conversation; ignored if its address already has one.
    pub conversation: ConversationId,
    /// The conversation whose history its agent gets, if not its own.
    pub about: Option<ConversationId>,
    pub session: SessionUse,
    /// The day on which it counts, if what its sender uses of a day is limited: days since 1970-01-01.
    pub day: Option<i64>,
}

/// Turns whose question is put before the agent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    pub session: SessionId,
    /// Their ids: several if they were answered together.
    pub turns: Vec<TurnId>,
}

/// The result of accepting an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    Turn {
        /// The turn's position in the order of acceptance.
        seq: TurnSeq,
        /// The turn's conversation, new or existing.
        conversation: ConversationId,
        /// The conversation's current session, which may have begun with it.
        session: SessionId,
        /// Whether the session has a transcript.
        has_history: bool,
    },
    /// It changed a turn that waits for its run, or for what put it off; see [`Amends`](crate::Amends).
    Amended { turn: TurnId },
    /// It is new and opened no turn.
    Kept,
    /// It was only looked for, and is not known: nothing was stored.
    Unknown,
    /// A turn with a run was to begin in a conversation in which another turn runs, on another node, or an earlier one waits. Nothing of
    /// the request was stored: it is so for all its events. A turn without a run can be stored.
    Busy,
    /// It picks from a question that was answered before; it opened no turn.
    Picked {
        /// The choice that was picked first.
        choice: String,
    },
    /// It picks from a question that has expired; it opened no turn.
    Expired,
    /// An event with the same key was accepted before; nothing was changed.
    Duplicate {
        /// The turn that the earlier event opened or amended.
        turn: Option<TurnId>,
        /// What the earlier event said; `None` if only its key is stored.
        message: Option<EarlierMessage>,
    },
}

/// What an earlier event with the same key said, so that a caller can detect a reused key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierMessage {
    /// The text, as it was written.
    pub text: String,
    /// The platform's id of the sender.
    pub sender: String,
    /// To which key its answer is to be sealed.
    pub seal_to: Option<String>,
}

/// What is stored with accepted events, in their transaction; `T` is what becomes of each.
#[derive(Clone, Debug)]
pub enum Beside<T> {
    /// The new position of the cursor that covers them.
    Cursor(CursorMove),
    /// The operation that began them, and what it changes beside turns. It has no [fence](Transition::fence): locks of the events come
    /// before it.
    Operation(TransitionOf<[T]>),
    /// Nothing. They are accepted only while the node has this lease.
    Lease((LeaseName, Fence)),
}

impl<T> Beside<T> {
    /// The lease under which the events are accepted, if there is one.
    pub const fn fence(&self) -> Option<&(LeaseName, Fence)> {
        match self {
            Self::Cursor(CursorMove { fence, .. }) => fence.as_ref(),
            Self::Operation(_) => None,
            Self::Lease(fence) => Some(fence),
        }
    }
}

/// The transition that follows from a `T`. It changes no obligation, and neither sends nor says anything.
pub struct TransitionOf<T: ?Sized>(Arc<dyn Fn(&T) -> Transition + Send + Sync>);

impl<T: ?Sized> TransitionOf<T> {
    /// What `follows` returns.
    pub fn new(follows: impl Fn(&T) -> Transition + Send + Sync + 'static) -> Self {
        Self(Arc::new(follows))
    }

    /// The transition that follows from this one.
    pub fn of(&self, what: &T) -> Transition {
        (self.0)(what)
    }
}

impl<T: ?Sized> Clone for TransitionOf<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> fmt::Debug for TransitionOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TransitionOf").finish_non_exhaustive()
    }
}

/// A new position of a channel's cursor; written with the events that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorMove {
    pub channel: ChannelId,
    /// The name of the cursor: `updates`, or a room's id.
    pub name: String,
    /// The new position, in the adapter's own format.
    pub position: String,
    /// The lease under which the channel receives; see [`Transition::fence`].
    pub fence: Option<(LeaseName, Fence)>,
}
