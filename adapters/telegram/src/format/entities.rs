//! Ranges of bytes to entities in UTF-16 units.

use std::{cmp::Reverse, ops::Range};

use teloxide::types::{MessageEntity, MessageEntityKind};

/// What is special about a range of the text.
#[derive(Debug)]
pub(super) struct Mark {
    /// In bytes.
    pub(super) range: Range<usize>,
    pub(super) kind: MessageEntityKind,
}

/// Trims the text and turns marks into entities. Telegram strips white space around a text itself, so
/// offsets that counted it would be wrong; indentation that a leading code block starts with stays.
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
            MessageEntity::new(mark.kind, offset, super::utf16_len(&text[mark.range]))
        })
        .collect();
    (text[start..end].to_owned(), entities)
}

/// Which of several kinds over the same text is the outer one.
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

/// Takes the white space off a mark's ends; false if nothing is left.
fn trim(text: &str, mark: &mut Mark) -> bool {
    let inner = &text[mark.range.clone()];
    // A quote is as long as what is in it, and code is as it was written.
    if !is_code(&mark.kind) && mark.kind != MessageEntityKind::Blockquote {
        mark.range.start += inner.len() - inner.trim_start().len();
        mark.range.end -= inner.len() - inner.trim_end().len();
    }
    !inner.trim().is_empty()
}

/// Counts forward through the text once.
struct Units<'a> {
    text: &'a str,
    at: usize,
    counted: usize,
}

impl Units<'_> {
    fn at(&mut self, byte: usize) -> usize {
        self.counted += super::utf16_len(&self.text[self.at..byte]);
        self.at = byte;
        self.counted
    }
}
