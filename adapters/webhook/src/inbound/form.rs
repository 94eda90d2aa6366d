//! `application/x-www-form-urlencoded` bodies.

use std::{borrow::Cow, str::Utf8Error};

use percent_encoding::percent_decode_str;
use rejoinder_kit::Problem;

use super::message::{self, HookMessage, is_field, not_utf8};

/// Reads a form with the same fields as the JSON body. `attachments` may appear several times, each with one URL. A body that
/// is no form at all is the message, because `curl -d` calls every body a form.
/// Fails when a field is not UTF-8, is repeated or exceeds the limits, or when no field is for us.
pub(super) fn read(content: &str) -> Result<HookMessage, Problem> {
    if !is_json(content)
        && !has_field_of_ours(content)
        && let Some(text) = bare_text(content)?
    {
        return Ok(message::text(&text));
    }
    let mut message = HookMessage::default();
    for (name, value) in fields(content) {
        message.add_field(&decoded(name)?, decoded(value)?)?;
    }
    if message.text.is_none() && message.command.is_none() && message.attachments.is_none() && !content.is_empty() {
        let detail = if is_json(content) {
            "the form has no field `message`; if the body is JSON, send it with `Content-Type: application/json`"
        } else {
            "the form has no field `message`; send `message=` and the text, or the text alone with \
             `Content-Type: text/plain`"
        };
        return Err(message::empty(detail));
    }
    Ok(message)
}

/// Reads a form with any fields, or a text. Of a field that appears twice, the last counts. `curl -d '{…}'` sends JSON as a form
/// unless its Content-Type is set.
pub(super) fn read_any(content: &str) -> Result<serde_json::Value, Problem> {
    if is_json(content) {
        return super::json::read_any(content);
    }
    if !content.contains('=')
        && let Some(text) = bare_text(content)?
    {
        return Ok(message::text(&text).text.into());
    }
    let fields = fields(content).map(|(name, value)| Ok((decoded(name)?, decoded(value)?.into())));
    fields.collect::<Result<serde_json::Map<_, _>, _>>().map(Into::into)
}

/// The form without the content of files, which is stored with the attachments only.
pub(super) fn without_files(content: &str) -> String {
    let is_file = |field: &str| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        decoded(name).is_ok_and(|name| name == "attachments")
            && decoded(value).is_ok_and(|url| url.starts_with("data:"))
    };
    content.split('&').filter(|field| !is_file(field)).collect::<Vec<_>>().join("&")
}

/// The names and values, still encoded.
fn fields(content: &str) -> impl Iterator<Item = (&str, &str)> {
    let fields = content.split('&').filter(|field| !field.is_empty());
    fields.map(|field| field.split_once('=').unwrap_or((field, "")))
}

fn is_json(content: &str) -> bool {
    content.trim_start().starts_with('{')
}

fn has_field_of_ours(content: &str) -> bool {
    content.contains('=')
        && content.split('&').any(|field| field.split_once('=').is_some_and(|(name, _)| is_field(name)))
}

/// The body as a text if it is no form: it has no `=`, or a character that a form would encode.
fn bare_text(content: &str) -> Result<Option<String>, Problem> {
    let is_encoded = content.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"*-._~%+&=".contains(&byte));
    Ok(match (is_encoded, content.contains('=')) {
        _ if content.trim().is_empty() => None,
        (true, true) => None,
        // `curl --data-urlencode` encodes a text without a name.
        (true, false) => Some(utf8(percent_decode_str(content).decode_utf8())?),
        (false, _) => Some(content.to_owned()),
    })
}

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    utf8(percent_decode_str(&spaced).decode_utf8())
}

fn utf8(decoded: Result<Cow<'_, str>, Utf8Error>) -> Result<String, Problem> {
    Ok(decoded.map_err(|_| not_utf8("a field of the form is not UTF-8"))?.into_owned())
}
