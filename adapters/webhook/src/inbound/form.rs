//! `application/x-www-form-urlencoded` bodies.

use axum::http::StatusCode;
use percent_encoding::percent_decode_str;

use super::{HookMessage, Problem, not_utf8};

/// Reads a form with the same fields as the JSON body. `attachments` may appear several times, each with one URL.
///
/// # Errors
/// When a field is not UTF-8, is repeated or exceeds the limits, or when the body looks like JSON.
pub(super) fn read(content: &str) -> Result<HookMessage, Problem> {
    let mut message = HookMessage::default();
    for field in content.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        message.add_field(&decoded(name)?, decoded(value)?)?;
    }
    // `curl -d '{…}'` sends JSON as a form unless its Content-Type is set.
    if message.text.is_none() && content.trim_start().starts_with('{') {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "empty-message",
            "Unprocessable entity: the message is empty",
            "the form has no field `message`; if the body is JSON, send it with `Content-Type: application/json`",
        )
        .about("message"));
    }
    Ok(message)
}

/// Reads a form with any fields. Of a field that appears twice, the last counts. `curl -d '{…}'` sends JSON as a form unless its
/// Content-Type is set.
///
/// # Errors
/// When a field is not UTF-8.
pub(super) fn read_any(content: &str) -> Result<serde_json::Value, Problem> {
    if content.trim_start().starts_with('{') {
        return super::json::read_any(content);
    }
    let fields = content.split('&').filter(|field| !field.is_empty()).map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        Ok((decoded(name)?, decoded(value)?.into()))
    });
    fields.collect::<Result<serde_json::Map<_, _>, _>>().map(Into::into)
}

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let text = percent_decode_str(&spaced).decode_utf8();
    Ok(text.map_err(|_| not_utf8("a field of the form is not UTF-8"))?.into_owned())
}
