//! The titles of sessions that came outside of a prompt. No I/O.
//!
//! Some agents take longer for a title than for an answer, and send it once: the next prompt of the session reports it.

use std::{collections::HashMap, sync::Arc};

/// Of how many sessions a title is kept. Then all are forgotten.
const MOST: usize = 1_000;

/// How many characters of a title are kept.
const MAX_TITLE: usize = 500;

#[derive(Default)]
pub(crate) struct LateTitles(HashMap<Arc<str>, String>);

impl LateTitles {
    /// Keeps the latest title of a session.
    pub(crate) fn keep(&mut self, session: &Arc<str>, title: &str) {
        if self.0.len() >= MOST && !self.0.contains_key(session) {
            self.0.clear();
        }
        self.0.insert(Arc::clone(session), title.chars().take(MAX_TITLE).collect());
    }

    pub(crate) fn take(&mut self, session: &str) -> Option<String> {
        self.0.remove(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_bounded() {
        let mut titles = LateTitles::default();
        for number in 0..=MOST {
            titles.keep(&number.to_string().into(), &"ä".repeat(10 * MAX_TITLE));
        }

        assert_eq!(titles.0.len(), 1);
        let last = MOST.to_string();
        assert_eq!(titles.take(&last).map(|title| title.chars().count()), Some(MAX_TITLE));
        assert_eq!(titles.take(&last), None);
    }
}
