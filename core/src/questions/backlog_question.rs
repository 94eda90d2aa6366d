//! The question whether late messages are still to be answered (`[queue] backlog = "ask"`).
//!
//! The messages are postponed turns, and the question is one of the gateway's own.

use std::sync::Arc;

use rejoinder_guard::Timestamp;

use crate::{
    model::{ConversationId, Directed, InboundEvent, QuestionFilter, QuestionRecord, TurnRecord},
    ports::{QuestionStore, StoreError},
};

/// The command that asks about late messages, as the handler of its turns names it.
pub(crate) const ASKS: &str = "late_asks";

/// The conversations with late messages that wait for an answer to it.
pub(crate) struct BacklogQuestion {
    store: Arc<dyn QuestionStore>,
    /// When this process began to accept messages.
    started_at: Timestamp,
}

impl BacklogQuestion {
    pub(crate) const fn new(store: Arc<dyn QuestionStore>, now: Timestamp) -> Self {
        Self { store, started_at: now }
    }

    /// Whether an earlier process accepted an event: it may have waited because the gateway was down.
    pub(crate) fn is_left(&self, event: &InboundEvent) -> bool {
        event.received_at < self.started_at
    }

    /// The postponed turns of a conversation, oldest first.
    pub(crate) async fn postponed(&self, conversation: ConversationId) -> Result<Vec<TurnRecord>, StoreError> {
        let mut postponed = Vec::new();
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
}

/// Whether its sender can be asked about a message: not the caller of a hook, who waits for this answer and no other.
pub(crate) fn may_be_asked(event: &InboundEvent) -> bool {
    event.directed != Directed::Asked && !event.sender.kind.is_anybody()
}
