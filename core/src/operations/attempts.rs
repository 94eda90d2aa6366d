//! What waits to be sent is tried now.

use rejoinder_guard::{ObligationState, Timestamp};
use uuid::Uuid;

use super::{Operations, remark};
use crate::{
    events::subjects::subject_of_delivery,
    model::{
        ChannelId, ConversationRef, DeliveryId, DeliveryRecord, DeliveryState, LogEvent, NewLogEntry, Subject, TurnId,
    },
    operator::{
        actor::{Actor, operation},
        error::OperationError,
    },
    ports::{Hint, Remark, StoreError, Transition},
};

impl Operations {
    /// Has a delivery that waits tried now, without the rest of its pause. One that may have arrived has a label.
    pub async fn try_delivery(&self, id: DeliveryId, by: Actor) -> Result<(), OperationError> {
        let delivery = self.store.delivery(id).await?.filter(|one| by.may(&one.conversation.channel));
        let delivery = delivery.ok_or(OperationError::Unknown("there is no delivery with this id"))?;
        self.try_now(delivery, "try", id.as_uuid(), &by).await
    }

    /// Has what waits for a channel tried now.
    pub async fn try_channel(&self, channel: ChannelId, by: Actor) -> Result<(), OperationError> {
        if self.channels.get(&channel).is_none() || !by.may(&channel) {
            return Err(OperationError::Unknown("there is no channel with this name"));
        }
        self.require_not_paused(&channel)?;
        self.require_over(self.caller.gate.account_blocked_until(&channel), "what waits is sent then")?;
        self.record(&by, "try", &channel, Subject::channel(&channel)).await?;
        self.caller.health.try_now(&channel);
        self.ledger.executor.hints.tell_holder(&channel, || Hint::Tried(channel.clone()));
        Ok(())
    }

    /// The delivery that waits with this id, or the first one of the turn with this id; `None` if none waits.
    pub(super) async fn waiting(&self, id: Uuid, by: &Actor) -> Result<Option<DeliveryRecord>, StoreError> {
        let waits = |one: &DeliveryRecord| {
            matches!(one.state, DeliveryState::Pending | DeliveryState::Sending) && by.may(&one.conversation.channel)
        };
        if let Some(delivery) = self.store.delivery(DeliveryId::from(id)).await? {
            return Ok(Some(delivery).filter(waits));
        }
        let Some(turn) = self.store.readable_turn(TurnId::from(id)).await? else { return Ok(None) };
        if matches!(turn.obligation.state(), ObligationState::Undeliverable { .. }) {
            return Ok(None);
        }
        let deliveries = self.store.deliveries(turn.id).await?;
        Ok(deliveries.into_iter().find(|one| !one.is_copy && !one.is_draft() && waits(one)))
    }

    pub(super) async fn try_now(
        &self,
        delivery: DeliveryRecord,
        action: &'static str,
        target: Uuid,
        by: &Actor,
    ) -> Result<(), OperationError> {
        let channel = &delivery.conversation.channel;
        self.require_channel(&delivery.conversation, by)?;
        self.require_not_paused(channel)?;
        let why = match delivery.state {
            DeliveryState::Pending if delivery.is_quiet() => "it waits for the end of its person's quiet hours",
            DeliveryState::Pending if delivery.next_attempt_at <= self.clock.now() => "it is on its way",
            DeliveryState::Pending => "",
            DeliveryState::Sending => "it is being sent now",
            DeliveryState::Held => "its turn is held: resume it",
            DeliveryState::Delivered => "it was delivered",
            DeliveryState::Withdrawn => "it was withdrawn: nobody waits for it any more",
            DeliveryState::Refused | DeliveryState::Dead => "it is a dead letter: retry that",
        };
        if !why.is_empty() {
            return Err(OperationError::Unfit(why.to_owned()));
        }
        self.require_unblocked(&delivery.conversation, "it is sent then")?;
        let (at, subject) = (self.clock.now(), subject_of_delivery(&delivery));
        // Another node sends it, and may not hear of it.
        let hints = &self.ledger.executor.hints;
        let due_now = hints.is_sent_elsewhere(channel).then_some((delivery.id, at));
        let event = LogEvent::DeliveryRetried { delivery_id: delivery.id };
        let transition = Transition {
            due_now,
            remarks: vec![Remark { turn: delivery.turn, at, kind: "try".to_owned(), detail: remark(by, None) }],
            log: vec![NewLogEntry { at, subject: subject.clone(), event }],
            operation: Some(operation(by, action, target, subject, at)),
            ..Transition::default()
        };
        self.store.commit(transition).await?;
        self.caller.health.allow(channel);
        self.lanes.ask(channel, delivery.conversation_id, delivery.id);
        hints.tell_holder(channel, || Hint::Asked(channel.clone(), delivery.conversation_id, delivery.id));
        Ok(())
    }

    /// Refuses what the platform's own limit would keep waiting.
    pub(super) fn require_unblocked(&self, to: &ConversationRef, then: &'static str) -> Result<(), OperationError> {
        self.require_over(self.caller.gate.limited_until(to), then)
    }

    fn require_over(&self, limit: Option<Timestamp>, then: &'static str) -> Result<(), OperationError> {
        match limit {
            Some(until) => Err(OperationError::Blocked { retry_after: until.since(self.clock.now()), then }),
            None => Ok(()),
        }
    }

    fn require_not_paused(&self, channel: &ChannelId) -> Result<(), OperationError> {
        match self.caller.gate.paused(channel) {
            Some(pause) => Err(OperationError::Unfit(format!("{channel} is paused by {}: resume it", pause.by))),
            None => Ok(()),
        }
    }
}
