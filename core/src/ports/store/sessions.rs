//! Sessions of conversations and their lines.

use std::sync::Arc;

use rejoinder_guard::Timestamp;

use super::{error::StoreError, turns::TurnStore};
use crate::model::{
    AnsweredTurn, ConversationId, HistoryLine, Identity, PersonId, SessionChoice, SessionId, SessionRecord, TurnId,
    TurnRecord,
};

store_trait! {
    /// Sessions, their lines, and what is chosen for them.
    pub trait SessionStore: TurnStore {
        /// The current session of a conversation, and what was chosen for it. `None` if a turn of `person` would begin a new one: it
        /// has none, or only one that belongs to somebody else.
        read fn current_session(
            conversation: ConversationId,
            person: Option<PersonId>,
        ) -> Option<(SessionId, SessionChoice)>;

        /// The session in which the conversation that a turn is [about](crate::store::NewTurn::about) continues now.
        read fn session_about(turn: TurnId) -> Option<SessionId>;

        /// The last turn of a sender that is [about](crate::store::NewTurn::about) a conversation, and when it was accepted.
        read fn last_about(conversation: ConversationId, sender: &str) -> Option<(TurnId, Timestamp)>;

        /// The sessions that can be used in a conversation: its own that have no owner, and those of `person`. The `limit` that were
        /// used last, the latest first.
        read fn usable_sessions(
            conversation: ConversationId,
            person: Option<PersonId>,
            limit: u32,
        ) -> Vec<SessionRecord>;

        /// Whether an agent's turn of a session has not ended, or still runs.
        read fn is_session_open(session: SessionId) -> bool;

        /// The last turn of a session that an agent was to answer and that is not left out, if `by` asked it (`None`: anybody):
        /// one with a line in the transcript, or one of `conversation`, whatever became of it.
        read fn last_question(
            session: SessionId,
            conversation: Option<ConversationId>,
            by: Option<&Identity>,
        ) -> Option<TurnRecord>;

        /// The last `limit` lines of a session, oldest first, without those of turns that are left out.
        read fn transcript(session: SessionId, limit: u32) -> Vec<Arc<HistoryLine>>;

        /// The turn that an agent ran before `turn` in its session, among the last 64 turns; `None` also if another agent ran that one
        /// later. Turns that are left out and those on a copy do not count. It may be `None` if all that the turn's lines show is that
        /// its answer was seen, and nobody has reacted. `session`: that of the turn, as far as it is known.
        read fn answered_before(session: SessionId, turn: TurnId, agent: &str) -> Option<AnsweredTurn>;
    }
}
