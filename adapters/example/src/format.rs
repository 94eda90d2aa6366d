//! Splitting. Pure. The chat shows Markdown as it is.

use rejoinder_core::{Delivery, split_markdown};

/// The longest message, in characters.
pub(crate) const MAX_CHARS: usize = 1_000;

/// The room for a label, in characters.
const LABEL: usize = 100;

pub(crate) fn parts(text: &str) -> Vec<String> {
    split_markdown(text, MAX_CHARS - LABEL, |part| part.chars().count())
}

/// The text with the delivery's label, if it may be a second copy.
pub(crate) fn labelled(delivery: &Delivery, text: &str) -> String {
    delivery.label().map_or_else(|| text.to_owned(), |label| format!("{label} {text}"))
}
