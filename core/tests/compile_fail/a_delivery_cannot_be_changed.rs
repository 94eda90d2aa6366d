//! An adapter cannot change a delivery's action or its address.

use rejoinder_core::{Action, ConversationRef, Delivery};

fn redirect(mut delivery: Delivery, elsewhere: ConversationRef) -> Delivery {
    delivery.conversation = elsewhere;
    delivery.action = Action::Typing { on: false };
    delivery
}

fn main() {}
