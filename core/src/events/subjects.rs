//! Which turn, conversation and channel an entry of the log is about.

use crate::model::{DeliveryRecord, Subject, TurnRecord};

pub(crate) fn subject_of(turn: &TurnRecord) -> Subject {
    Subject {
        turn_id: Some(turn.id),
        conversation_id: Some(turn.conversation),
        channel: Some(turn.event.conversation.channel.clone()),
    }
}

pub(crate) fn subject_of_delivery(delivery: &DeliveryRecord) -> Subject {
    Subject {
        turn_id: Some(delivery.turn),
        conversation_id: Some(delivery.conversation_id),
        channel: Some(delivery.conversation.channel.clone()),
    }
}
