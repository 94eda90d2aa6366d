//! The question whether late messages are still to be answered (`[queue] backlog = "ask"`).
//!
//! The messages are postponed turns, and the question is one of the gateway's own.

use std::sync::Arc;

use crate::{
    model::{ConversationId, Directed, EventKind, InboundEvent, QuestionFilter, QuestionRecord, TurnRecord},
    nodes::leases::Leases,
    ports::{QuestionStore, StoreError},
};

/// The command that asks about late messages, as the handler of its turns names it.
pub(crate) const ASKS: &str = "late_asks";

/// The state of a question about late messages.
pub(crate) enum State {
    /// This turn asks it, or is about to.
    Asked(Box<TurnRecord>),
    /// It was answered, or has expired, and the gateway has not acted on that yet.
    BeingDecided,
}

impl State {
    /// The turn that asks an open question.
    pub(crate) fn question(self) -> Option<TurnRecord> {
        match self {
            Self::Asked(turn) => Some(*turn),
            Self::BeingDecided => None,
        }
    }
}

/// The conversations with late messages that wait for an answer to it.
pub(crate) struct BacklogQuestion {
    store: Arc<dyn QuestionStore>,
    leases: Arc<Leases>,
}

impl BacklogQuestion {
    pub(crate) const fn new(store: Arc<dyn QuestionStore>, leases: Arc<Leases>) -> Self {
        Self { store, leases }
    }

    /// Whether an earlier process accepted an event, or the node that had its channel before: it may have waited because that was down.
    pub(crate) fn is_left(&self, event: &InboundEvent) -> bool {
        event.received_at < self.leases.at_work_since(&event.conversation.channel)
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

    /// The state of the question about late messages in a conversation; `None` if there is none, or it was acted on.
    pub(crate) async fn state(&self, conversation: ConversationId) -> Result<Option<State>, StoreError> {
        // Twice: the question may be asked, answered and acted on between two reads.
        for _ in 0..2 {
            let asked = self.store.questions(QuestionFilter::OpenBy(conversation, ASKS), 1).await?.pop();
            if let Some(QuestionRecord { question, .. }) = asked {
                return Ok(self.store.turn(question.turn).await?.map(|turn| State::Asked(Box::new(turn))));
            }
            for id in self.store.open_turns(conversation).await? {
                let turn = self.store.readable_turn(id).await?.filter(|turn| turn.obligation.claims() == 0);
                if let Some(turn) = turn
                    && let Some(state) = self.state_by(turn).await?
                {
                    return Ok(Some(state));
                }
            }
        }
        Ok(None)
    }

    /// The state that an open turn without a claim shows: it is the question, or an answer to it.
    async fn state_by(&self, turn: TurnRecord) -> Result<Option<State>, StoreError> {
        if turn.handler.is_command(ASKS) {
            return Ok(Some(State::Asked(Box::new(turn))));
        }
        let (EventKind::Choice { turn: asked } | EventKind::Expired { turn: asked }) = turn.event.kind else {
            return Ok(None);
        };
        let asked = self.store.readable_turn(asked).await?;
        Ok(asked.filter(|asked| asked.handler.is_command(ASKS)).map(|_| State::BeingDecided))
    }
}

/// Whether its sender can be asked about a message: not the caller of a hook, who waits for this answer and no other.
pub(crate) fn may_be_asked(event: &InboundEvent) -> bool {
    event.directed != Directed::Asked && !event.sender.kind.is_anybody()
}
