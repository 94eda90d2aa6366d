//! Sends the answer of a dead letter to its person on another channel.

use std::sync::Arc;

use rejoinder_guard::{Event, Expectation, Reply};

use super::Operations;
use crate::{
    events::TurnEvents,
    ledger::trigger::{OperatorStep, Trigger},
    model::{ChatKind, InboundEvent, TurnId, TurnRecord},
    notices::sent_elsewhere,
    operator::error::OperationError,
    ports::{Remark, StoreError},
};

impl Operations {
    /// Sends the answer of a dead letter to its sender in the direct chat in which they are reached on another channel, as one
    /// message that says where it belongs. Does nothing if there is no such answer or chat, or it was tried before.
    pub(crate) async fn send_elsewhere(&self, id: TurnId) -> Result<(), OperationError> {
        let Some(turn) = self.store.turn(id).await?.filter(is_agents_answer) else { return Ok(()) };
        // Of the people of a group, only the one whose turn it is may read it elsewhere.
        let is_for_others = turn.event.chat == ChatKind::Group && !turn.obligation.merged_turns().is_empty();
        let chat = self.people.chat_elsewhere(&turn.event, &self.channels);
        let Some(chat) = chat.filter(|_| !is_for_others) else { return Ok(()) };
        let (Some(conversation), Some(claim)) =
            (self.conversations.conversation(&chat.conversation).await?, turn.obligation.undelivered_claim())
        else {
            return Ok(());
        };
        let Some(answer) = self.undelivered(id, claim).await? else { return Ok(()) };
        let text = sent_elsewhere(&turn.event, &chat, &answer.text, &self.people, &self.settings.get());
        let said = Some(answer.text.clone());
        let reply = Reply { text, ..answer };
        let remark = Remark {
            turn: id,
            at: self.clock.now(),
            kind: "elsewhere".to_owned(),
            detail: format!("to {}", chat.conversation),
        };
        let deliveries = self.store.deliveries(id).await?;
        let event = InboundEvent { conversation: chat.conversation, message_id: None, ..(*turn.event).clone() };
        let elsewhere = Some(TurnRecord { conversation, event: Arc::new(event), ..turn.clone() });
        let trigger =
            Trigger::Operator(Box::new(OperatorStep { operation: None, remark, deliveries, elsewhere, said }));
        let mut inputs = [TurnEvents { turn, events: vec![Event::SentElsewhere { reply }] }];
        let stored = self.ledger.try_to_decide(&mut inputs, &trigger).await?;
        stored.map(drop).ok_or_else(|| StoreError::Failed("the turn changed at the same moment".to_owned()).into())
    }
}

/// Whether a turn is a dead letter with an answer of an agent's to somebody who asked, which may go elsewhere. A sealed answer may not:
/// what is stored for others is no answer.
fn is_agents_answer(turn: &TurnRecord) -> bool {
    let was_asked = turn.event.sender.kind.is_person() && turn.obligation.expectation() == Expectation::Answer;
    was_asked && turn.event.seal_to.is_none() && !turn.handler.is_gateway() && turn.obligation.may_go_elsewhere()
}
