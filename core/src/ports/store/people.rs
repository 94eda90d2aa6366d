//! People and what they use.

use rejoinder_guard::Timestamp;

use super::{day_use::DayUse, error::StoreError, transition::Transitions};
use crate::model::{AgentName, ConversationId, DirectChat, Guess, Identity, Language, Pairing, PersonRecord};

store_trait! {
    /// Known people, requests to be let in, where and how people are reached, and what they have used.
    pub trait PeopleStore: Transitions {
        /// Everybody who is known, with their identities; oldest first.
        read fn people() -> Vec<PersonRecord>;

        /// The requests to be let in, also those whose time has passed; oldest first, those of one moment in the order of who asks.
        read fn pairings() -> Vec<Pairing>;

        /// The tries of codes that do not exist, as far as they are not forgotten.
        read fn guesses() -> Vec<Guess>;

        /// The languages that people chose, by channel and id.
        read fn languages() -> Vec<(Identity, Language)>;

        /// Where people who are known are reached, by channel and id.
        read fn direct_chats() -> Vec<DirectChat>;

        /// Where somebody is reached on a channel.
        read fn direct_chat(of: &Identity) -> Option<DirectChat>;

        /// What somebody has used of a day, since it is limited; see [`NewTurn::day`](crate::store::NewTurn::day). Of a day before
        /// the last one on which something was counted, by a week at most, what was used of that one: the clock may be set back.
        read fn day_use(who: &Identity, day: i64) -> DayUse;

        /// The same of an agent, since it has a budget; see [`RunEnd::agents`](crate::store::RunEnd::agents).
        read fn agent_use(agent: &AgentName, day: i64) -> DayUse;

        /// The tokens that agents used for the last thousand turns of a conversation, as far as these were accepted since a time.
        read fn tokens_since(conversation: ConversationId, since: Timestamp) -> u64;
    }
}
