//! Converts byte ranges to entities in UTF-16 units.

use std::{cmp::Reverse, ops::Range};

use teloxide::types::{MessageEntity, MessageEntityKind};

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

/// A style or link on a range of the text.
#[derive(Debug)]
pub(super) struct Mark {
    /// In bytes.
    pub(super) range: Range<usize>,
    pub(super) kind: MessageEntityKind,
}

/// Trims the text and turns marks into entities. Telegram trims the text too, and offsets that counted the removed white
/// space would be wrong. The indentation of a leading code block is kept.
pub(super) fn finish(text: &str, mut marks: Vec<Mark>) -> (String, Vec<MessageEntity>) {
    marks.retain_mut(|mark| trim(text, mark));
    let code = marks.iter().filter(|mark| is_code(&mark.kind)).map(|mark| mark.range.start).min();
    let start = (text.len() - text.trim_start().len()).min(code.unwrap_or(text.len()));
    let end = text.trim_end().len().max(start);
    for mark in &mut marks {
        mark.range = mark.range.start.max(start)..mark.range.end.min(end);
    }
    marks.retain(|mark| !mark.range.is_empty());
    marks.sort_by_key(|mark| (mark.range.start, Reverse(mark.range.end), depth(&mark.kind)));
    let mut units = Units { text, at: start, counted: 0 };
    let entities = marks
        .into_iter()
        .map(|mark| {
            let offset = units.at(mark.range.start);
            MessageEntity::new(mark.kind, offset, utf16_len(&text[mark.range]))
        })
        .collect();
    (text[start..end].to_owned(), entities)
}

/// The nesting order of kinds on the same text; 0 is outermost.
fn depth(kind: &MessageEntityKind) -> u8 {
    match kind {
        MessageEntityKind::Blockquote => 0,
        _ if is_code(kind) => 2,
        _ => 1,
    }
}

fn is_code(kind: &MessageEntityKind) -> bool {
    matches!(kind, MessageEntityKind::Pre { .. } | MessageEntityKind::Code)
}

/// Trims white space from a mark's ends; `false` if nothing is left.
fn trim(text: &str, mark: &mut Mark) -> bool {
    let inner = &text[mark.range.clone()];
    // Quotes and code keep their white space.
    if !is_code(&mark.kind) && mark.kind != MessageEntityKind::Blockquote {
        mark.range.start += inner.len() - inner.trim_start().len();
        mark.range.end -= inner.len() - inner.trim_end().len();
    }
    !inner.trim().is_empty()
}

/// Converts increasing byte offsets to UTF-16 offsets in one pass.
struct Units<'a> {
    text: &'a str,
    at: usize,
    counted: usize,
}

impl Units<'_> {
    fn at(&mut self, byte: usize) -> usize {
        self.counted += utf16_len(&self.text[self.at..byte]);
        self.at = byte;
        self.counted
    }
}
