//! Late messages that wait until somebody says whether they are still to be answered (`[queue] backlog = "ask"`).
//!
//! The messages are postponed turns, and the question is one of the gateway's own. Memory holds the conversations with such
//! turns and nothing else, so that an event of any other conversation waits for no look at the store.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rejoinder_guard::Timestamp;

use crate::{
    model::{
        event::{Directed, InboundEvent},
        ids::ConversationId,
        question::{QuestionFilter, QuestionRecord},
        turn::TurnRecord,
    },
    ports::store::{error::StoreError, questions::QuestionStore, turns::QueueStore},
};

/// The command that asks about late messages, as the handler of its turns names it.
pub(crate) const ASKS: &str = "late_asks";

/// The late messages about which somebody is asked.
pub(crate) struct BacklogQuestion {
    store: Arc<dyn QuestionStore>,
    /// The conversations with postponed turns. It may also hold some that have none any more.
    postponed: Mutex<HashSet<ConversationId>>,
    /// When this process began to accept messages.
    started_at: Timestamp,
}

impl BacklogQuestion {
    /// Reads which conversations have postponed turns.
    pub(crate) async fn load(
        queue: &dyn QueueStore,
        store: Arc<dyn QuestionStore>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let postponed = queue.postponed().await?.into_iter().collect();
        Ok(Self { store, postponed: Mutex::new(postponed), started_at: now })
    }

    /// Whether an earlier process accepted an event: it may have waited because the gateway was down.
    pub(crate) fn is_left(&self, event: &InboundEvent) -> bool {
        event.received_at < self.started_at
    }

    /// The conversations with postponed turns.
    pub(crate) fn conversations(&self) -> Vec<ConversationId> {
        self.known().iter().copied().collect()
    }

    pub(crate) fn is_in(&self, conversation: ConversationId) -> bool {
        self.known().contains(&conversation)
    }

    /// Notes a turn that is about to be stored as postponed, or was.
    pub(crate) fn note(&self, conversation: ConversationId) {
        self.known().insert(conversation);
    }

    /// The postponed turns of a conversation, oldest first.
    pub(crate) async fn postponed(&self, conversation: ConversationId) -> Result<Vec<TurnRecord>, StoreError> {
        let mut postponed = Vec::new();
        if !self.is_in(conversation) {
            return Ok(postponed);
        }
        for id in self.store.open_turns(conversation).await? {
            let turn = self.store.readable_turn(id).await?;
            postponed.extend(turn.filter(|turn| turn.obligation.is_postponed()));
        }
        Ok(postponed)
    }

    /// The turn whose question about late messages is open in a conversation, or about to be asked.
    pub(crate) async fn question(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        let asked = self.store.questions(QuestionFilter::OpenBy(conversation, ASKS), 1).await?.pop();
        if let Some(QuestionRecord { question, .. }) = asked {
            return self.store.turn(question.turn).await;
        }
        for id in self.store.open_turns(conversation).await? {
            let turn = self.store.readable_turn(id).await?;
            let asks = turn.filter(|turn| turn.handler.is_command(ASKS) && turn.obligation.claims() == 0);
            if asks.is_some() {
                return Ok(asks);
            }
        }
        Ok(None)
    }

    /// Forgets a conversation without postponed turns.
    pub(crate) fn forget(&self, conversation: ConversationId) {
        self.known().remove(&conversation);
    }

    fn known(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.postponed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether its sender can be asked about a message: not the caller of a hook, who waits for this answer and no other.
pub(crate) fn may_be_asked(event: &InboundEvent) -> bool {
    event.directed != Directed::Asked && !event.sender.kind.is_anybody()
}
