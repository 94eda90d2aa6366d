//! The sessions that agents with a memory of their own keep, and what they are owed to be told of them.

use rejoinder_guard::Timestamp;

use super::{error::StoreError, transition::Transitions};
use crate::model::{AgentName, AgentNotice, AgentSession, SessionId};

store_trait! {
    /// The sessions that agents keep. What happens to one of them is owed to its agents with the change itself: a
    /// [`Transition`](super::transition::Transition) that ends or deletes it or leaves out a turn of it, an event that begins a new
    /// one in its place, and a [removal](super::housekeeping::HousekeepingStore::remove).
    pub trait AgentSessionStore: Transitions {
        /// A session as an agent keeps it; `None` if the agent has had no turn of it.
        read fn agent_session(agent: &AgentName, session: SessionId) -> Option<AgentSession>;

        /// What agents are to be told until `until`: at most `limit` notices of each agent, those that are due first before others.
        /// Not that the session of one turn is deleted, while that turn is open or a run of it goes on.
        read fn agent_notices(until: Timestamp, limit: u32) -> Vec<AgentNotice>;

        /// When, after `after`, the next agent is to be told something. What waits for the end of a turn is looked at again after an hour.
        read fn next_agent_notice(after: Timestamp) -> Option<Timestamp>;
    }
}
