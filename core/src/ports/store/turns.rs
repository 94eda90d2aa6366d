//! Turns: their rows, what clients see of them, the line in which they wait, and when they are due.

use std::time::Duration;

use rejoinder_guard::{Obligation, Timestamp};

use super::{
    error::StoreError,
    record::{LeftRun, RunRecord, WaitingTurn},
    transition::Transitions,
};
use crate::model::{
    ChannelId, ConversationId, ConversationRef, NodeId, ThreadSummary, TurnId, TurnRecord, TurnView, Version,
};

store_trait! {
    /// Turns, their obligations and runs.
    pub trait TurnStore: Transitions {
        /// A turn with its obligation and event. If it cannot be read, the error is [`StoreError::CorruptTurn`].
        read fn turn(turn: TurnId) -> Option<TurnRecord>;

        /// A turn; `None` also if it cannot be read.
        read fn readable_turn(id: TurnId) -> Option<TurnRecord>;

        /// A turn's runs, in order.
        read fn runs(turn: TurnId) -> Vec<RunRecord>;

        /// Turns of a conversation that have not ended, owed or not, and those with a late run in flight, in the order in which
        /// they were accepted.
        read fn open_turns(conversation: ConversationId) -> Vec<TurnId>;

        /// Turns that were merged into a turn that ended without them, such as an unreadable one; at most `limit`.
        read fn merged_and_left(limit: u32) -> Vec<TurnId>;

        /// Ends an unreadable turn: `obligation`, which has ended, replaces the stored one. Its open runs end as
        /// `crashed`, its unfinished deliveries become dead, and a remark keeps `reason` and the replaced obligation.
        /// Does nothing if the turn has ended. [`StoreError::NotOwner`] while nodes of several versions live: a node of another version
        /// may be able to read it.
        write fn set_aside(turn: TurnId, obligation: Obligation, reason: &str, at: Timestamp) -> ();
    }
}

store_trait! {
    /// Turns, as clients see them.
    pub trait ViewStore: TurnStore {
        /// A turn, as clients see it.
        read fn view(turn: TurnId) -> Option<TurnView>;

        /// These turns, as clients see them, each with a version that it is at least as new as. Without those that cannot be read.
        read fn views_of(turns: &[TurnId]) -> Vec<(Version, TurnView)>;

        /// The last `limit` turns of a conversation that were accepted before `before`, oldest first. Without those that the gateway
        /// began by itself and that have ended with nothing to see.
        read fn views(conversation: &ConversationRef, before: Option<TurnId>, limit: u32) -> Vec<TurnView>;

        /// The names of the tools that the runs of turns called, as far as they are kept, each with its turn: by turns in the order in
        /// which these were accepted, and of each in the order of the calls.
        read fn used_tools(turns: &[TurnId]) -> Vec<(TurnId, String)>;

        /// The threads of a chat in which there are turns, at most `limit`, the one with the last turn first.
        read fn threads(channel: &ChannelId, chat: &str, limit: u32) -> Vec<ThreadSummary>;
    }
}

store_trait! {
    /// The turns that wait for a run, or for what put them off.
    pub trait QueueStore: TurnStore {
        /// The turn of a conversation that runs next: of those that wait, the one with the lowest
        /// [rank](WaitingTurn::rank). If it cannot be read, the error is [`StoreError::CorruptTurn`].
        read fn next_waiting(conversation: ConversationId) -> Option<TurnRecord>;

        /// The conversations with turns that wait for a run, each with its first waiting turn: for each channel and agent
        /// the `limit` conversations with the lowest [positions](WaitingTurn::position). The duration must not depend on how many
        /// conversations wait, or how many turns in each.
        read fn waiting(limit: u32) -> Vec<WaitingTurn>;

        /// As [`waiting`](Self::waiting), without the conversations whose [slot](Self::slot_of) another node than `node` has: a turn of
        /// them does not begin there. With a store that one process uses there are none.
        read fn waiting_for(node: NodeId, limit: u32) -> Vec<WaitingTurn>;

        /// The turn that has the slot of a conversation: while its run [holds it](rejoinder_guard::Obligation::holds_slot), no other one
        /// of an agent begins there, on any other node. If the turn ends before its run, its node has the slot until it
        /// [frees it](Self::free_slot), or is over. A store that one process uses has no slots: that process has them in memory.
        read fn slot_of(conversation: ConversationId) -> Option<TurnId>;

        /// Frees the slot of a conversation, if a turn still has it whose run on `node` has ended.
        write fn free_slot(conversation: ConversationId, turn: TurnId, node: NodeId) -> ();

        /// The turns of a conversation that wait for a run: at most `limit`, in the order of their
        /// [ranks](WaitingTurn::rank). Those that cannot be read are left out.
        read fn waiting_turns(conversation: ConversationId, limit: u32) -> Vec<TurnRecord>;

        /// How many turns of a conversation wait for a run, counted up to `limit`.
        read fn waiting_in(conversation: ConversationId, limit: u32) -> u32;

        /// How many turns of a [person](crate::InboundEvent::person) wait for a run, counted up to `limit`.
        read fn waiting_of(channel: &ChannelId, person: &str, limit: u32) -> u32;

        /// How many turns of a conversation are [postponed](rejoinder_guard::Obligation::is_postponed), counted up to `limit`.
        read fn postponed_in(conversation: ConversationId, limit: u32) -> u32;

        /// The conversations with [postponed](rejoinder_guard::Obligation::is_postponed) turns. Called once, at the start.
        read fn postponed() -> Vec<ConversationId>;
    }
}

store_trait! {
    /// What is due, and what nodes have left behind.
    pub trait DeadlineStore: TurnStore {
        /// Turns whose [`Obligation::wake_at`](crate::Obligation::wake_at) is at or before `now`, the most overdue first.
        read fn due(now: Timestamp, limit: u32) -> Vec<TurnId>;

        /// The earliest [`Obligation::wake_at`](crate::Obligation::wake_at).
        read fn next_wake() -> Option<Timestamp>;

        /// As [`due`](Self::due), those that one of several nodes acts on, with their times: `node` runs them, or they are of one of
        /// these channels, and no other node runs them that is not over.
        read fn due_at(node: NodeId, channels: &[ChannelId], now: Timestamp, limit: u32) -> Vec<(TurnId, Timestamp)>;

        /// Turns whose run is stored as in flight, and is not: it is of a node that is over, or of `node`, which asks, and not of a turn
        /// of `in_flight`. A command of the gateway is of the node that accepted it. In the order of their ids, after `after`.
        read fn runs_left(node: NodeId, in_flight: &[TurnId], after: Option<TurnId>, limit: u32) -> Vec<LeftRun>;

        /// Turns of these channels that may have left messages or marks behind: they have a draft or a deferral in the chat, or are of
        /// an agent and waited for their first run for at least `waited`. Only turns that ended within `span` of the last
        /// ended one of all channels are checked, at most 64 times `limit`, and of those that may have left something, the last `limit`
        /// are returned.
        read fn ended_last(channels: &[ChannelId], span: Duration, waited: Duration, limit: u32) -> Vec<TurnId>;
    }
}
