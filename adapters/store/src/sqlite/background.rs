//! Requests that nobody waits for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::request::WriteRequest;

/// The most that wait. Further ones are dropped.
const MOST: usize = 1024;

/// Requests that wait until the writer is awake: to wake its thread for each of them costs more than to write it.
#[derive(Debug, Default)]
pub(super) struct Background(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<WriteRequest>,
    /// Whether the writer looks for them soon by itself.
    is_watched: bool,
}

impl Background {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Returns whether the writer must be woken.
    pub(super) fn add(&self, request: WriteRequest) -> bool {
        let mut waiting = self.waiting();
        if waiting.requests.len() < MOST {
            waiting.requests.push(request);
        }
        !std::mem::replace(&mut waiting.is_watched, true)
    }

    /// Takes those that wait. The writer must look again soon, unless it `is_idle` and there are none.
    pub(super) fn take(&self, is_idle: bool) -> Vec<WriteRequest> {
        let mut waiting = self.waiting();
        waiting.is_watched = !is_idle || !waiting.requests.is_empty();
        std::mem::take(&mut waiting.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_woken_only_if_it_does_not_look_by_itself() {
        let background = Background::default();
        let add = || background.add(WriteRequest::Scrub);

        assert_eq!([add(), add()], [true, false]);
        assert_eq!(background.take(true).len(), 2);
        assert_eq!([add(), add()], [false, false], "it looks again after what it writes");
        assert_eq!(background.take(false).len(), 2);
        assert!(background.take(true).is_empty());
        assert!(add(), "it sleeps");
    }

    #[test]
    fn what_is_too_much_is_dropped() {
        let background = Background::default();
        for _ in 0..=MOST {
            background.add(WriteRequest::Scrub);
        }
        assert_eq!(background.take(true).len(), MOST);
    }
}
