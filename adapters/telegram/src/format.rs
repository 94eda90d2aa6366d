//! Converts Markdown to a text with entities, which is what Telegram shows.
//!
//! Telegram has no tables, headings, lists or rules, so these become monospace, bold and characters. Everything else
//! that it lacks (raw HTML, footnotes, links with unknown schemes) is written out as text, so nothing is dropped. The
//! rules for entities: <https://core.telegram.org/bots/api#formatting-options>.

mod entities;
#[cfg(test)]
mod tests;
mod writer;

use rejoinder_core::{read_markdown, split_markdown};

pub use self::entities::{Formatted, utf16_len};
use self::writer::Writer;

/// The longest text of a message, without mark-up, in UTF-16 units
/// (<https://core.telegram.org/bots/api#sendmessage>).
pub const MESSAGE_UNITS: usize = 4096;

/// The space that every part reserves for a label before it, in UTF-16 units.
pub const LABEL_UNITS: usize = 96;

/// The longest text of one part, in UTF-16 units.
pub const PART_UNITS: usize = MESSAGE_UNITS - LABEL_UNITS;

/// The longest caption of a file, without mark-up, in UTF-16 units (<https://core.telegram.org/bots/api#sendphoto>).
pub const CAPTION_UNITS: usize = 1024;

#[must_use]
pub fn format(markdown: &str) -> Formatted {
    let mut writer = Writer::default();
    for event in read_markdown(markdown) {
        writer.event(event);
    }
    let formatted = writer.finish();
    if formatted.text.is_empty() {
        // Telegram rejects an empty message, so Markdown that renders to nothing is sent as it is.
        return Formatted { text: markdown.trim().to_owned(), entities: Vec::new() };
    }
    formatted
}

/// The text of [`format()`] without entities.
#[must_use]
pub fn plain(markdown: &str) -> String {
    format(markdown).text
}

/// Whether a text fits into a caption, with a label before it.
#[must_use]
pub fn fits_caption(markdown: &str) -> bool {
    utf16_len(&format(markdown).text) <= CAPTION_UNITS - LABEL_UNITS
}

/// Formats a caption: its beginning if it is too long.
#[must_use]
pub fn caption(markdown: &str) -> Formatted {
    let mut parts = split_markdown(markdown, CAPTION_UNITS, |part| utf16_len(&format(part).text));
    format(&parts.swap_remove(0))
}

/// Splits Markdown into parts that measure at most [`PART_UNITS`] each when formatted.
///
/// Omits a part that would show nothing, unless it is the only one.
#[must_use]
pub fn parts(markdown: &str) -> Vec<String> {
    let mut parts = split_markdown(markdown, PART_UNITS, |part| utf16_len(&format(part).text));
    if parts.len() > 1 {
        parts.retain(|part| !format(part).text.is_empty());
    }
    parts
}
