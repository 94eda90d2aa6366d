//! `application/x-www-form-urlencoded` bodies.

use axum::http::StatusCode;

use super::{Message, Problem, form_urlencoded, not_utf8};

/// Reads a form with the fields of the JSON body; `attachments` may stand in it several times, each an
/// address.
///
/// # Errors
/// When it is no form of ours.
pub(super) fn read(content: &str) -> Result<Message, Problem> {
    let mut message = Message::default();
    for (name, value) in form_urlencoded::parse(content.as_bytes()) {
        // Bytes that are not UTF-8 come out as this character.
        if value.contains('\u{fffd}') && !content.to_ascii_uppercase().contains("%EF%BF%BD") {
            return Err(not_utf8("a field of the form is not UTF-8"));
        }
        message.take(&name, value.into_owned())?;
    }
    // What `curl -d '{…}'` sends when nobody tells it otherwise.
    if message.text.is_none() && content.trim_start().starts_with('{') {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "empty-message",
            "The message is empty",
            "the form has no field `message`; it looks like JSON, which is sent with `Content-Type: application/json`",
        )
        .about("message"));
    }
    Ok(message)
}
