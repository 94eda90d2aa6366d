//! The text of a document, by its kind.

use rejoinder_core::Unread;

use crate::{kind::Kind, office, output::Output, page, pdf, plain};

pub(crate) fn text_of(kind: Kind, bytes: &[u8]) -> Result<String, Unread> {
    let mut output = Output::default();
    match kind {
        Kind::Pdf => pdf::read(bytes, &mut output)?,
        Kind::Office => office::read(bytes, &mut output)?,
        Kind::Page => page::read(bytes, &mut output),
        Kind::Table => output.push(&plain::decoded(bytes)),
    }
    output.finish()
}
