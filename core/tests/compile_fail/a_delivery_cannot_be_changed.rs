//! What was let out is sent as it is, and where it was meant to go.

use rejoinder_core::{Action, ConversationRef, Delivery};

fn redirect(mut delivery: Delivery, elsewhere: ConversationRef) -> Delivery {
    delivery.conversation = elsewhere;
    delivery.action = Action::Typing { on: false };
    delivery
}

fn main() {}
