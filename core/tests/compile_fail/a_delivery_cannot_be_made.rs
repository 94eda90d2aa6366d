//! An adapter receives deliveries and cannot make them.

use rejoinder_core::{Action, ConversationRef, Delivery, DeliveryId, TurnId};

fn forge(id: DeliveryId, turn: TurnId, conversation: ConversationRef) -> Delivery {
    Delivery {
        id,
        conversation,
        turn,
        part: 1,
        parts: 1,
        via: None,
        signal: None,
        action: Action::Typing { on: true },
        attempt: 1,
        is_overtaken: false,
        label: None,
    }
}

fn main() {}
