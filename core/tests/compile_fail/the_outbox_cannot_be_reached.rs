//! There is no second way out.

use rejoinder_core::{ConversationRef, Engine, outbox};

fn send(engine: &Engine, conversation: &ConversationRef) {
    engine.core.open_lane(conversation);
}

fn main() {}
