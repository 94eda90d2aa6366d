//! Who reads the drafts of which turn.

use std::sync::Arc;

use dashmap::DashMap;
use rejoinder_core::TurnId;
use tokio::sync::watch;

/// The turns with readers of their drafts.
#[derive(Debug, Default)]
pub(crate) struct Drafts(DashMap<TurnId, watch::Sender<String>>);

impl Drafts {
    /// Reads the drafts of `turn`, from the next one on.
    pub(crate) fn follow(self: &Arc<Self>, turn: TurnId) -> DraftReader {
        let receiver = self.0.entry(turn).or_insert_with(|| watch::Sender::new(String::new())).subscribe();
        DraftReader { drafts: Arc::clone(self), turn, receiver: Some(receiver) }
    }

    pub(crate) fn has_readers(&self, turn: TurnId) -> bool {
        self.0.contains_key(&turn)
    }

    /// Shows a draft to its readers: the whole text so far.
    pub(crate) fn show(&self, turn: TurnId, text: &str) {
        if let Some(sender) = self.0.get(&turn) {
            sender.send_replace(text.to_owned());
        }
    }
}

/// Reads the drafts of one turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct DraftReader {
    drafts: Arc<Drafts>,
    turn: TurnId,
    /// `Some` until the reader is dropped.
    receiver: Option<watch::Receiver<String>>,
}

impl DraftReader {
    /// The latest draft, as soon as there is one that was not returned yet.
    pub(crate) async fn changed(&mut self) -> String {
        if let Some(receiver) = &mut self.receiver
            && receiver.changed().await.is_ok()
        {
            return receiver.borrow_and_update().clone();
        }
        // Not reached: the sender is kept while this reader lives.
        std::future::pending().await
    }
}

impl Drop for DraftReader {
    fn drop(&mut self) {
        // First, so that of two readers dropped at the same time one sees a count of 0.
        self.receiver = None;
        self.drafts.0.remove_if(&self.turn, |_, sender| sender.receiver_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    #[tokio::test]
    async fn only_who_follows_a_turn_reads_its_drafts_and_nothing_is_left() {
        let drafts = Arc::new(Drafts::default());
        let turn = TurnId::new(Timestamp::from_millis(1));
        drafts.show(turn, "too early");
        assert!(!drafts.has_readers(turn));
        let mut readers = [drafts.follow(turn), drafts.follow(turn)];

        assert!(drafts.has_readers(turn));
        drafts.show(turn, "a");
        drafts.show(turn, "ab");

        for reader in &mut readers {
            assert_eq!(reader.changed().await, "ab");
        }
        drop(readers);
        assert!(!drafts.has_readers(turn) && drafts.0.is_empty());
    }
}
