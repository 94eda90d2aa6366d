//! What an agent does in a run, as its drafts show it.

use crate::{
    base::words::escaped,
    model::{Activity, ActivityState, name},
};

/// How many activities that have not ended are known at once.
const MOST: usize = 16;

/// How many characters of a title are shown.
const MOST_SHOWN: usize = 80;

/// The titles of the activities that have not ended, the latest last.
#[derive(Default)]
pub(super) struct Activities(Vec<String>);

impl Activities {
    pub(super) fn update(&mut self, Activity { title, state }: &Activity) {
        let title = name::clean(title, MOST_SHOWN);
        self.0.retain(|other| *other != title);
        if *state == ActivityState::Working && !title.is_empty() {
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push(title);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The line for the latest, as Markdown.
    pub(super) fn line(&self) -> Option<String> {
        self.0.last().map(|title| format!("… {}", escaped(title)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(reports: &[(&str, ActivityState)]) -> Option<String> {
        let mut activities = Activities::default();
        for (title, state) in reports {
            activities.update(&Activity { title: (*title).to_owned(), state: *state });
        }
        assert!(activities.0.len() <= MOST);
        activities.line()
    }

    #[test]
    fn the_latest_that_has_not_ended_is_shown() {
        use ActivityState::{Done, Failed, Working};

        assert_eq!(reported(&[("reads", Working), ("writes", Working)]).as_deref(), Some("… writes"));
        assert_eq!(
            reported(&[("reads", Working), ("writes", Working), ("writes", Failed)]).as_deref(),
            Some("… reads")
        );
        assert_eq!(reported(&[("reads", Working), ("reads", Done)]), None);
        assert_eq!(reported(&[(" \n", Working)]), None);
        let many: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(|title| (title.as_str(), Working)).collect();
        assert_eq!(reported(&many).as_deref(), Some("… 99"));
    }

    #[test]
    fn a_title_is_one_short_line_of_plain_text() {
        let line = |title: &str| reported(&[(title, ActivityState::Working)]).expect("a line");

        assert_eq!(line("reads\n\u{202e}*all*\u{200b} [x](http://x)"), "… reads \\*all\\* \\[x\\](http://x)");
        assert_eq!(line(&"ä".repeat(1000)).chars().count(), 82);
    }
}
