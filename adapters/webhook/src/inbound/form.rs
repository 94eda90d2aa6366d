//! `application/x-www-form-urlencoded` bodies.

use axum::http::StatusCode;
use percent_encoding::percent_decode_str;

use super::{Message, Problem, not_utf8};

/// Reads a form with the fields of the JSON body; `attachments` may stand in it several times, each an
/// address.
///
/// # Errors
/// When it is no form of ours.
pub(super) fn read(content: &str) -> Result<Message, Problem> {
    let mut message = Message::default();
    for field in content.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        message.take(&decoded(name)?, decoded(value)?)?;
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

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let text = percent_decode_str(&spaced).decode_utf8();
    Ok(text.map_err(|_| not_utf8("a field of the form is not UTF-8"))?.into_owned())
}
