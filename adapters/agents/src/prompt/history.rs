//! Which earlier lines a model gets, and which of them are its own words. No I/O.

use std::sync::Arc;

use rejoinder_core::{HistoryLine, LineState, Speaker};

/// Whether the line is the model's own words: what it said and the person has seen, or is about to see. A person who writes
/// again at once has usually read the answer whose receipt is not there yet.
pub fn is_own(line: &HistoryLine) -> bool {
    line.speaker == Speaker::Agent && matches!(line.state, LineState::Seen | LineState::Partly | LineState::OnItsWay)
}

/// The latest lines that fit, starting with a line of a person.
pub fn fitting(history: &[Arc<HistoryLine>], most_lines: usize, most_chars: usize) -> &[Arc<HistoryLine>] {
    let mut chars = 0;
    let fitting = history
        .iter()
        .rev()
        .take(most_lines)
        .take_while(|line| {
            chars += line.text.chars().count();
            chars <= most_chars
        })
        .count();
    let fitting = &history[history.len() - fitting..];
    let first = fitting.iter().position(|line| line.speaker == Speaker::Person).unwrap_or(fitting.len());
    &fitting[first..]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::tests::{history, line};

    #[rstest]
    #[case(2, 1_000, &["c", "dd"])]
    #[case(3, 1_000, &["c", "dd"])]
    #[case(4, 1_000, &["aaa", "bbb", "c", "dd"])]
    #[case(100, 8, &["c", "dd"])]
    #[case(100, 9, &["aaa", "bbb", "c", "dd"])]
    #[case(100, 1, &[])]
    #[case(0, 1_000, &[])]
    fn the_oldest_lines_are_left_out(#[case] lines: usize, #[case] chars: usize, #[case] left: &[&str]) {
        let history = history([
            line(Speaker::Person, "aaa"),
            line(Speaker::Agent, "bbb"),
            line(Speaker::Person, "c"),
            line(Speaker::Agent, "dd"),
        ]);
        let kept: Vec<_> = fitting(&history, lines, chars).iter().map(|line| line.text.as_str()).collect();
        assert_eq!(kept, left);
    }
}
