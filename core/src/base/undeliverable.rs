//! Queues turns that became dead letters and may be answered elsewhere.

use tokio::sync::mpsc;

use crate::model::TurnId;

/// The sending end of the queue.
pub(crate) struct Undeliverable(mpsc::UnboundedSender<TurnId>);

impl Undeliverable {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<TurnId>) {
        let (turns, undeliverable) = mpsc::unbounded_channel();
        (Self(turns), undeliverable)
    }

    pub(crate) fn send_elsewhere(&self, turn: TurnId) {
        // Sending fails only after the gateway has ended: the next start finds the turn.
        let _ = self.0.send(turn);
    }
}
