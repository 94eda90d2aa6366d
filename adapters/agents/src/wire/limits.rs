//! How much an agent may say.

/// The most bytes of an answer's text. The rest is cut off.
pub(super) const MAX_TEXT: usize = 1024 * 1024;
