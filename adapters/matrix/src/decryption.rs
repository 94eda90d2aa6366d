//! Tracks how many of the latest encrypted events could be decrypted.

use std::collections::VecDeque;

use parking_lot::Mutex;
const WINDOW: usize = 50;

const MIN_EVENTS: usize = 10;

/// For each of the latest encrypted events, whether it could be decrypted.
#[derive(Debug, Default)]
pub(crate) struct Decryption(Mutex<VecDeque<bool>>);

impl Decryption {
    pub(crate) fn note(&self, was_read: bool) {
        let mut latest = self.0.lock();
        if latest.len() == WINDOW {
            latest.pop_front();
        }
        latest.push_back(was_read);
    }

    /// The key of an event arrived later. Corrects the oldest event that could not be read.
    pub(crate) fn note_late(&self) {
        if let Some(was_read) = self.0.lock().iter_mut().find(|was_read| !**was_read) {
            *was_read = true;
        }
    }

    /// A health problem, if more than half of the events cannot be read.
    pub(crate) fn problem(&self) -> Option<String> {
        let latest = self.0.lock();
        let (count, unread) = (latest.len(), latest.iter().filter(|was_read| !**was_read).count());
        (count >= MIN_EVENTS && unread * 2 > count)
            .then(|| format!("{unread} of the last {count} encrypted events could not be read: their keys are missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_can_read_little_says_so() {
        let decryption = Decryption::default();

        for _ in 0..9 {
            decryption.note(false);
        }
        assert_eq!(decryption.problem(), None, "too few for a verdict");
        decryption.note(true);
        assert_eq!(
            decryption.problem().as_deref(),
            Some("9 of the last 10 encrypted events could not be read: their keys are missing")
        );
        for _ in 0..4 {
            decryption.note_late();
        }
        assert_eq!(decryption.problem(), None, "only half of them");
    }
}
