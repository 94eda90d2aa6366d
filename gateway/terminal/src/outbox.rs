//! What was said and is not accepted yet. It is sent one after the other, and again after a lost connection.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::frames::ClientFrame;

/// The pause before a frame is sent again that could not be stored.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What a person says: a message, or a choice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Say {
    Text(String),
    /// Picks a choice, by its index, of a turn's answer.
    Choice {
        turn: String,
        choice: usize,
    },
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<(String, Say)>,
    /// Whether the first one was sent on this connection.
    is_sent: bool,
    /// Not before this time is the first one sent.
    not_before: Option<Instant>,
}

impl Outbox {
    pub(crate) fn push(&mut self, id: String, say: Say) {
        self.waiting.push_back((id, say));
    }

    /// The next frame to send. Then it counts as sent.
    pub(crate) fn next(&mut self, now: Instant) -> Option<String> {
        if self.is_sent || self.not_before.is_some_and(|time| now < time) {
            return None;
        }
        let (id, say) = self.waiting.front()?;
        let frame = match say {
            Say::Text(text) => ClientFrame::Message { id, text },
            Say::Choice { turn, choice } => ClientFrame::Choose { id, turn_id: turn, choice: *choice },
        };
        let text = frame.to_text();
        (self.is_sent, self.not_before) = (true, None);
        Some(text)
    }

    /// When to look for the next frame again, if only time keeps it back.
    pub(crate) fn wakes(&self) -> Option<Instant> {
        self.not_before.filter(|_| !self.is_sent && !self.waiting.is_empty())
    }

    /// The gateway has taken `id`, or never will.
    pub(crate) fn remove(&mut self, id: &str) {
        if self.waiting.front().is_some_and(|(first, _)| first == id) {
            self.waiting.pop_front();
            self.is_sent = false;
        }
    }

    /// The gateway could not take `id` now.
    pub(crate) fn retry(&mut self, id: &str, now: Instant) {
        if self.waiting.front().is_some_and(|(first, _)| first == id) {
            (self.is_sent, self.not_before) = (false, Some(now + RETRY_AFTER));
        }
    }

    /// There is a new connection: messages that were not accepted are sent again.
    pub(crate) fn reconnected(&mut self) {
        (self.is_sent, self.not_before) = (false, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(frame: Option<String>) -> Option<String> {
        let frame: serde_json::Value = serde_json::from_str(&frame?).unwrap();
        frame["id"].as_str().map(str::to_owned)
    }

    fn outbox() -> Outbox {
        let mut outbox = Outbox::default();
        outbox.push("first".into(), Say::Text("one".into()));
        outbox.push("second".into(), Say::Choice { turn: "t1".into(), choice: 1 });
        outbox
    }

    #[test]
    fn the_next_is_sent_once_the_first_is_accepted() {
        let (mut outbox, now) = (outbox(), Instant::now());

        assert_eq!(id_of(outbox.next(now)).as_deref(), Some("first"));
        assert_eq!(outbox.next(now), None);
        outbox.remove("something else");
        assert_eq!(outbox.next(now), None);
        outbox.remove("first");
        assert_eq!(id_of(outbox.next(now)).as_deref(), Some("second"));
    }

    #[test]
    fn a_new_connection_sends_again_what_was_not_accepted() {
        let (mut outbox, now) = (outbox(), Instant::now());
        outbox.next(now);

        outbox.reconnected();

        assert_eq!(id_of(outbox.next(now)).as_deref(), Some("first"));
    }

    #[test]
    fn what_could_not_be_stored_is_sent_again_a_little_later() {
        let (mut outbox, now) = (outbox(), Instant::now());
        outbox.next(now);

        outbox.retry("first", now);

        assert_eq!((outbox.next(now), outbox.wakes()), (None, Some(now + RETRY_AFTER)));
        assert_eq!(id_of(outbox.next(now + RETRY_AFTER)).as_deref(), Some("first"));
    }
}
