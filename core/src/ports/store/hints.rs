//! Hints: what one node tells the others at once, instead of having them find it out by looking.
//!
//! A hint may be lost, repeated or late, and says only where to look: rows decide. A store that admits one process has none.

use super::{error::StoreError, transition::Noun, turns::TurnStore};
use crate::model::{AgentName, ChannelId, ConversationId, ConversationRef, DeliveryId, TurnId, Version};

/// What may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// A turn, as clients of this channel see it.
    Turn(ChannelId, TurnId),
    /// A conversation has deliveries to send.
    Lane(ChannelId, ConversationId),
    /// An operator has this delivery tried now, although it may have arrived.
    Asked(ChannelId, ConversationId, DeliveryId),
    /// An operator has what waits for the channel tried now.
    Tried(ChannelId),
    /// A turn of this conversation waits for a run of this agent.
    Waiting(AgentName, ConversationId),
    /// Rows that are decided on together.
    Noun(Noun),
    /// Questions or approvals were asked or closed.
    Questions,
    /// A channel was paused or resumed.
    Paused(ChannelId),
    /// A turn was accepted, in whose conversation silence may have an agent begin to talk.
    Said(TurnId),
    /// A turn with a run in flight, which another node has decided on.
    Run(TurnId),
    /// What a run [says so far](HintStore::put_draft).
    Draft(TurnId),
    /// A turn of this channel may have left a mark, a draft or a deferral in its chat.
    Leftovers(ChannelId, TurnId),
    /// A turn of this channel awaits the words of its voice note.
    Words(ChannelId, TurnId),
    /// A turn became a dead letter, and may be answered elsewhere.
    DeadLetter(TurnId),
    /// The log.
    Log,
    /// Anything: hints may have been lost.
    All,
}

/// What a run of any node says so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunText {
    pub turn: TurnId,
    pub conversation: ConversationRef,
    /// The run's number within the turn.
    pub run: u32,
    /// Empty while it only works.
    pub text: String,
}

store_trait! {
    /// What nodes look at to follow each other, beside hints.
    pub trait HintStore: TurnStore {
        /// Those of the turns that were changed since these versions, or are not there. The duration must not depend on how many turns
        /// there are.
        read fn changed_turns(turns: &[(TurnId, Version)]) -> Vec<TurnId>;

        /// Keeps what a run says so far, for nodes that show it: in place of an earlier text of it or of an earlier run; `None`: it
        /// works, and an earlier text stays. It need not outlive a crash, or ten minutes.
        write fn put_draft(turn: TurnId, run: u32, text: Option<&str>) -> ();

        /// Removes what a run has said, if that is kept.
        write fn remove_draft(turn: TurnId, run: u32) -> ();

        /// Removes what was not changed for ten minutes: its node is over.
        write fn remove_old_drafts() -> ();

        /// The turns of these channels of which [that](Self::put_draft) is kept, and was changed within the last ten seconds, at least.
        read fn drafts_on(channels: &[ChannelId]) -> Vec<TurnId>;

        /// What runs of these turns say so far, in the order of the turns' ids. Without turns that are not there.
        read fn drafts(turns: &[TurnId]) -> Vec<RunText>;
    }
}
