//! Markdown to what Telegram shows: a text and the entities over it.
//!
//! Telegram has no tables, headings, lists or rules, so these become monospace, bold and characters.
//! What has no form here at all (raw HTML, footnotes, links of unknown schemes) is written out: nothing
//! an agent said is dropped. The rules for entities are those of
//! <https://core.telegram.org/bots/api#formatting-options>.

mod entities;
#[cfg(test)]
mod tests;
mod writer;

use rejoinder_core::{read_markdown, split_markdown};
use teloxide::types::MessageEntity;

use self::writer::Writer;

/// What a message's text may measure after its entities are taken out, in UTF-16 units
/// (<https://core.telegram.org/bots/api#sendmessage>).
pub const MESSAGE_UNITS: usize = 4096;

/// What is kept free in every part for a label that is put before it, in UTF-16 units.
pub const LABEL_UNITS: usize = 96;

/// What the text of one part may measure, in UTF-16 units.
pub const PART_UNITS: usize = MESSAGE_UNITS - LABEL_UNITS;

/// A message's text, and what is bold, code, a link, … in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// Without white space around it; empty only if the Markdown was blank.
    pub text: String,
    /// In the order of their offsets, outer ones first; offsets and lengths in UTF-16 units.
    pub entities: Vec<MessageEntity>,
}

/// Renders Markdown.
#[must_use]
pub fn format(markdown: &str) -> Formatted {
    let mut writer = Writer::default();
    for event in read_markdown(markdown) {
        writer.event(event);
    }
    let formatted = writer.finish();
    if formatted.text.is_empty() {
        // Telegram takes no empty message.
        return Formatted { text: markdown.trim().to_owned(), entities: Vec::new() };
    }
    formatted
}

/// The text of [`format()`] alone, for a second try after "can't parse entities".
#[must_use]
pub fn plain(markdown: &str) -> String {
    format(markdown).text
}

/// Splits Markdown into parts of at most [`PART_UNITS`] each once formatted.
///
/// A part that would show nothing is left out, unless it is the only one.
#[must_use]
pub fn parts(markdown: &str) -> Vec<String> {
    let mut parts = split_markdown(markdown, PART_UNITS, |part| utf16_len(&format(part).text));
    if parts.len() > 1 {
        parts.retain(|part| !format(part).text.is_empty());
    }
    parts
}

/// The length of `text` in UTF-16 units, in which Telegram counts.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
