//! A formatted text, and its length as Telegram counts it.

use teloxide::types::MessageEntity;

/// A message's text and its entities: bold, code, links and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// Trimmed; empty only if the Markdown was blank.
    pub text: String,
    /// Sorted by offset, outer ones first. Offsets and lengths are in UTF-16 units.
    pub entities: Vec<MessageEntity>,
}

/// The length of `text` in UTF-16 units, as Telegram counts it.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
