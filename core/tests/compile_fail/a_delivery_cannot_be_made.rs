//! An adapter is given deliveries; it makes none.

use rejoinder_core::{Action, ConversationRef, Delivery, DeliveryId};

fn forge(id: DeliveryId, conversation: ConversationRef) -> Delivery {
    Delivery {
        id,
        conversation,
        turn: None,
        part: 1,
        parts: 1,
        via: None,
        signal: None,
        action: Action::Typing { on: true },
        attempt: 1,
        label: None,
    }
}

fn main() {}
