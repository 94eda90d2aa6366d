//! Requests that nobody waits for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::request::WriteRequest;

/// The most that wait. Further ones are dropped.
const MOST: usize = 1024;

/// The most that are written at once: if a transaction fails, each of its requests is written by itself.
const AT_ONCE: usize = 128;

/// Requests that wait until the writer is awake: to wake its thread for each of them costs more than to write it.
#[derive(Debug, Default)]
pub(crate) struct Background(Mutex<Waiting>);

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
    pub(crate) fn add(&self, request: WriteRequest) -> bool {
        let mut waiting = self.waiting();
        if waiting.requests.len() < MOST {
            waiting.requests.push(request);
        }
        !std::mem::replace(&mut waiting.is_watched, true)
    }

    /// Moves those that wait to the end of `requests`, and returns whether there were any. The writer must look again soon, unless it
    /// `is_idle` and there were none.
    pub(crate) fn take(&self, is_idle: bool, requests: &mut Vec<WriteRequest>) -> bool {
        let mut waiting = self.waiting();
        let has_some = !waiting.requests.is_empty();
        waiting.is_watched = !is_idle || has_some;
        let number = waiting.requests.len().min(AT_ONCE);
        requests.extend(waiting.requests.drain(..number));
        has_some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_woken_only_if_it_does_not_look_by_itself() {
        let background = Background::default();
        let add = || background.add(WriteRequest::Scrub);

        let take = |is_idle| {
            let mut taken = Vec::new();
            assert_eq!(background.take(is_idle, &mut taken), !taken.is_empty());
            taken.len()
        };

        assert_eq!([add(), add()], [true, false]);
        assert_eq!(take(true), 2);
        assert_eq!([add(), add()], [false, false], "it looks again after what it writes");
        assert_eq!(take(false), 2);
        assert_eq!(take(true), 0);
        assert!(add(), "it sleeps");
    }

    #[test]
    fn what_is_too_much_is_dropped() {
        let background = Background::default();
        for _ in 0..=MOST {
            background.add(WriteRequest::Scrub);
        }
        let mut taken = Vec::new();
        while background.take(true, &mut taken) {}
        assert_eq!(taken.len(), MOST);
    }
}
