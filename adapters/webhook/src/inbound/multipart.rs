//! `multipart/form-data` bodies, which Apple Shortcuts and browsers send for forms.

use rejoinder_kit::{Problem, multipart};

use super::message::HookMessage;

/// Reads a form with the same fields as the JSON body. `attachments` may appear several times, each with one URL. A part
/// with a file name is a file, whatever its field is called.
/// Fails when the form is malformed, or has a field that is not UTF-8, is repeated or exceeds the limits.
pub(super) fn read(content: &[u8], boundary: &str) -> Result<HookMessage, Problem> {
    let mut message = HookMessage::default();
    multipart::read(content, boundary, |part| match part.file_name.filter(|_| part.name != "message") {
        // A field of a browser's form in which no file was chosen.
        Some("") if part.content.is_empty() => Ok(()),
        Some(file) => message.add_file(file, part.media_type(), part.content),
        None => message.add_field(part.name, part.text()?.to_owned()),
    })?;
    Ok(message)
}
