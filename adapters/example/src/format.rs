//! Markdown → text of one line each, and splitting. Pure. The chat shows text as it is, so Markdown stays Markdown.

use rejoinder_core::{Delivery, split_markdown};

/// The most characters of a message.
pub(crate) const MAX_CHARS: usize = 1_000;

pub(crate) fn parts(text: &str) -> Vec<String> {
    split_markdown(text, MAX_CHARS, |part| part.chars().count())
}

/// What is shown of a delivery's text: a possible second copy says so first.
pub(crate) fn labelled(delivery: &Delivery, text: &str) -> String {
    delivery.label().map_or_else(|| text.to_owned(), |label| format!("{label} {text}"))
}
