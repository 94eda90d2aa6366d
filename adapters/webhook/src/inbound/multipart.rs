//! `multipart/form-data` bodies (RFC 7578), which Apple Shortcuts and browsers send for forms.

use axum::http::StatusCode;
use rejoinder_kit::{Problem, quoted::parameter};

use super::message::{HookMessage, not_utf8};

/// Reads a form with the same fields as the JSON body. `attachments` may appear several times, each with one URL. A part
/// with a file name is a file, whatever its field is called.
/// Fails when the form is malformed, or has a field that is not UTF-8, is repeated or exceeds the limits.
pub(super) fn read(content: &[u8], boundary: &str) -> Result<HookMessage, Problem> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut rest = match content.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => split(content, &delimiter).ok_or_else(broken)?.1,
    };
    let mut message = HookMessage::default();
    while !rest.starts_with(b"--") {
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let part = rest[padding..].strip_prefix(b"\r\n").ok_or_else(broken)?;
        let (part, after) = split(part, &delimiter).ok_or_else(broken)?;
        let (headers, value) = split(part, b"\r\n\r\n").ok_or_else(broken)?;
        add_part(&mut message, headers, value)?;
        rest = after;
    }
    Ok(message)
}

/// Splits at the first `delimiter`. The bytes of a delimiter are compared at most twice, because it can only begin at a
/// carriage return.
fn split<'a>(content: &'a [u8], delimiter: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = content.windows(delimiter.len()).position(|window| window == delimiter)?;
    Some((&content[..at], &content[at + delimiter.len()..]))
}

fn add_part(message: &mut HookMessage, headers: &[u8], value: &[u8]) -> Result<(), Problem> {
    let headers = utf8(headers)?;
    let header = |wanted: &str| {
        let mut headers = headers.split("\r\n").filter_map(|line| line.split_once(':'));
        headers.find_map(|(name, value)| name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim()))
    };
    let disposition = header("content-disposition").ok_or_else(broken)?;
    let name = parameter(disposition, "name").ok_or_else(broken)?;
    match parameter(disposition, "filename").filter(|_| name != "message") {
        // A field of a browser's form in which no file was chosen.
        Some("") if value.is_empty() => Ok(()),
        Some(file) => message.add_file(file, header("content-type"), value),
        None => message.add_field(name, utf8(value)?.to_owned()),
    }
}

fn utf8(text: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(text).map_err(|_| not_utf8("a field of the form is not UTF-8"))
}

fn broken() -> Problem {
    let detail = "the body is not multipart/form-data with the boundary that its Content-Type names";
    Problem::new(StatusCode::BAD_REQUEST, "not-a-form", "Bad request: the body is not a form", detail)
}
