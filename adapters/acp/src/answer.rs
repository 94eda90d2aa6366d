//! Assembles the answer of a run from its chunks. No I/O.
//!
//! Some agents also send words that are no answer as chunks: a warning of their model's settings, an advertisement. Where the
//! chunks of the answer have a `messageId`, those words have none, so in such a run chunks without one are notices. Other
//! agents never send ids: there every chunk counts. Which of the two a run is may show only after a notice.

use rejoinder_agents::report::{AnswerUpdate, VisibleText, cut};
use rejoinder_core::{Shim, excerpt};
use sha2::{Digest, Sha256};

/// How many messages an answer may have: each takes some memory, however short it is.
const MOST_MESSAGES: usize = 10_000;

/// How much of the notices of a run the operator gets, in bytes.
const MOST_NOTICES: usize = 500;

/// What a chunk changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// All text so far was a notice.
    pub(crate) withdraws: bool,
    /// The rest of the message before, if another one begins.
    pub(crate) ends: Option<String>,
    pub(crate) update: AnswerUpdate,
}

#[derive(Default)]
pub(crate) struct Answer {
    /// The raw texts of the agent's messages.
    messages: Vec<String>,
    /// The SHA-256 of the last one's id, which may be long.
    last: Option<[u8; 32]>,
    visible: VisibleText,
    /// Whether the next chunk without an id begins another message.
    breaks: bool,
    has_ids: bool,
    size: usize,
    /// How many messages there were at the last [mark](Self::mark), and how long the last of them was.
    marked: (usize, usize),
    /// Whether the end of it is left out.
    pub(crate) is_cut: bool,
    /// The beginning of what was a notice.
    notices: String,
}

impl Answer {
    /// Whether a person could see something of it.
    pub(crate) fn has_shown(&self) -> bool {
        self.messages.iter().any(|text| !text.trim().is_empty())
    }

    /// Whether a person sees anything of it, once its thoughts and markers are left out.
    pub(crate) fn is_visible(&self) -> bool {
        self.messages.iter().any(|text| !Shim::whole(text).is_empty())
    }

    /// How many bytes came so far.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// From here on it is asked whether the agent [says](Self::says_since_mark) anything.
    pub(crate) fn mark(&mut self) {
        self.marked = (self.messages.len(), self.messages.last().map_or(0, String::len));
    }

    /// Whether the agent said anything since the last mark, if only that it is silent on purpose. A thought says nothing.
    pub(crate) fn says_since_mark(&self) -> bool {
        let (count, length) = self.marked;
        let rest = count.checked_sub(1).and_then(|last| self.messages.get(last)?.get(length..));
        let later = self.messages.iter().skip(count).map(String::as_str);
        rest.into_iter().chain(later).any(|text| {
            let mut shim = Shim::default();
            let begins = shim.push(text);
            let (ends, silence) = shim.finish();
            silence.is_some() || [begins, ends].iter().any(|text| !text.trim().is_empty())
        })
    }

    /// Whether chunks of the answer have ids.
    pub(crate) const fn has_ids(&self) -> bool {
        self.has_ids
    }

    /// Something other than text came: text after it is another message.
    pub(crate) const fn interrupt(&mut self) {
        self.breaks = true;
    }

    /// Adds a chunk. `None`: it is a notice, or does not fit.
    pub(crate) fn push(&mut self, id: Option<&str>, whole: &str) -> Option<Step> {
        let mut step = Step::default();
        match id {
            None if self.has_ids => {
                self.note(whole);
                return None;
            }
            Some(_) if !self.has_ids => {
                self.has_ids = true;
                step.withdraws = !self.messages.is_empty();
                for notice in std::mem::take(&mut self.messages) {
                    self.note(&notice);
                    self.note("\n");
                }
                self.visible = VisibleText::default();
                (self.size, self.is_cut, self.marked) = (0, false, (0, 0));
            }
            _ => {}
        }
        if self.is_cut {
            return None;
        }
        if whole.is_empty() {
            return Some(step);
        }
        let id = id.map(|id| Sha256::digest(id).into());
        let is_other = self.messages.is_empty() || self.last != id || (id.is_none() && self.breaks);
        if is_other && self.messages.len() == MOST_MESSAGES {
            self.is_cut = true;
            return None;
        }
        let text;
        (text, self.is_cut) = cut(whole, self.size);
        self.size += text.len();
        self.breaks = false;
        if is_other {
            if !self.messages.is_empty() {
                step.ends = Some(self.visible.end());
                self.visible = VisibleText::default();
            }
            self.messages.push(String::new());
            self.last = id;
        }
        if let Some(message) = self.messages.last_mut() {
            message.push_str(text);
        }
        self.visible.push(text, &mut step.update);
        self.visible.count(&step.update);
        Some(step)
    }

    fn note(&mut self, notice: &str) {
        let left = MOST_NOTICES.saturating_sub(self.notices.len());
        self.notices.push_str(&notice[..notice.floor_char_boundary(left)]);
    }

    /// What the agent said besides the answer since this was called before, for the operator.
    pub(crate) fn take_notices(&mut self) -> Option<String> {
        let notices = std::mem::take(&mut self.notices);
        (!notices.trim().is_empty()).then(|| excerpt(&notices, MOST_NOTICES))
    }

    /// The rest of the text to show.
    pub(crate) fn end(&mut self) -> String {
        self.visible.end()
    }

    /// The whole text, with markers and thoughts if it is one message.
    pub(crate) fn into_text(self) -> String {
        let mut texts = self.messages;
        if texts.len() == 1 {
            return texts.remove(0);
        }
        // Each has its own markers and thoughts at its ends.
        let visible = texts.iter().map(|text| Shim::whole(text)).filter(|text| !text.is_empty());
        visible.collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use rejoinder_agents::report::MAX_ANSWER;

    use super::*;

    /// The answer, what a person saw of it at the end, and how many notices there were.
    fn read(chunks: &[(Option<&str>, &str)]) -> (String, String, usize) {
        let (mut answer, mut seen) = (Answer::default(), String::new());
        for (id, text) in chunks {
            let Some(step) = answer.push(*id, text) else { continue };
            if step.withdraws {
                seen.clear();
            }
            if let Some(rest) = step.ends {
                seen.push_str(&rest);
                seen.push('|');
            }
            seen.push_str(&step.update.show);
        }
        seen.push_str(&answer.end());
        let notices = answer.notices.lines().count();
        (answer.into_text(), seen, notices)
    }

    #[rstest]
    #[case::no_ids(&[(None, "Hello, "), (None, "Ada.")], ("Hello, Ada.", "Hello, Ada.", 0))]
    #[case::all_ids(&[(Some("a"), "Hello, "), (Some("a"), "Ada.")], ("Hello, Ada.", "Hello, Ada.", 0))]
    #[case::a_notice_before(&[(None, "Warning: no metadata."), (Some("a"), "Hello.")], ("Hello.", "Hello.", 1))]
    #[case::a_notice_after(&[(Some("a"), "Hello."), (None, "**Warning:** changing auto mode")], ("Hello.", "Hello.", 1))]
    #[case::a_notice_between(&[(Some("a"), "Hel"), (None, "Psst."), (Some("a"), "lo.")], ("Hello.", "Hello.", 1))]
    #[case::two_messages(&[(Some("a"), "I look."), (Some("b"), "Done.")], ("I look.\n\nDone.", "I look.|Done.", 0))]
    #[case::thoughts(&[(Some("a"), "<think>hm</think>Yes."), (Some("b"), "NO_REPLY")], ("Yes.", "Yes.|", 0))]
    #[case::nothing(&[], ("", "", 0))]
    fn an_answer_is_the_chunks_that_are_one(
        #[case] chunks: &[(Option<&str>, &str)],
        #[case] (text, seen, notices): (&str, &str, usize),
    ) {
        assert_eq!(read(chunks), (text.to_owned(), seen.to_owned(), notices));
    }

    #[test]
    fn the_beginning_of_the_notices_is_kept() {
        let mut answer = Answer::default();
        assert_eq!(answer.take_notices(), None);
        let chunks = [(None, "Warning: old.".to_owned()), (Some("a"), "Hello.".to_owned()), (None, "ä".repeat(600))];
        for (id, text) in chunks {
            answer.push(id, &text);
        }

        let notices = answer.take_notices().expect("notices");
        assert!(notices.starts_with("Warning: old. ää"), "{notices}");
        assert!((400..=MOST_NOTICES).contains(&notices.len()), "{}", notices.len());
        assert_eq!(answer.take_notices(), None);
    }

    #[rstest]
    #[case::nothing(&[], false)]
    #[case::blank(&[(Some("a"), " \n")], false)]
    #[case::thought(&[(Some("a"), "<think>hm"), (Some("a"), "</think>")], false)]
    #[case::thought_of_another(&[(Some("b"), "<think>hm</think>")], false)]
    #[case::word(&[(Some("a"), "No")], true)]
    #[case::word_of_another(&[(Some("b"), "<think>hm</think>No.")], true)]
    #[case::silence(&[(Some("b"), "NO_REPLY")], true)]
    #[case::notice(&[(None, "Warning")], false)]
    fn a_thought_says_nothing(#[case] chunks: &[(Option<&str>, &str)], #[case] says: bool) {
        let mut answer = Answer::default();
        answer.push(Some("a"), "I do it now.");
        answer.mark();

        for (id, text) in chunks {
            answer.push(*id, text);
        }

        assert_eq!(answer.says_since_mark(), says);
    }

    #[test]
    fn what_comes_after_a_notice_that_was_marked_is_said() {
        let mut answer = Answer::default();
        answer.push(None, "Warning: old.");
        answer.mark();
        assert!(!answer.says_since_mark());

        answer.push(Some("a"), "No.");

        assert!(answer.says_since_mark());
    }

    #[test]
    fn text_after_a_tool_is_another_message_also_without_ids() {
        let mut answer = Answer::default();
        answer.push(None, "I look.");
        answer.interrupt();
        answer.push(None, "Done.");

        assert_eq!(answer.into_text(), "I look.\n\nDone.");
    }

    #[test]
    fn an_answer_has_so_many_messages_at_most() {
        let mut answer = Answer::default();
        for number in 0..2 * MOST_MESSAGES {
            answer.push(Some(&number.to_string()), "");
            answer.push(Some(&number.to_string()), "x");
        }

        assert!(answer.is_cut);
        assert_eq!((answer.messages.len(), answer.size), (MOST_MESSAGES, MOST_MESSAGES));
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut answer = Answer::default();
        for _ in 0..3 {
            answer.push(None, &"ä".repeat(MAX_ANSWER / 4 + 1));
        }

        assert!(answer.is_cut);
        assert_eq!(answer.into_text().len(), MAX_ANSWER);
    }
}
