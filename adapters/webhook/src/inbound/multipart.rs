//! `multipart/form-data` bodies (RFC 7578), which Apple Shortcuts sends for forms. Files are refused: a message
//! holds the URLs of files.

use axum::http::StatusCode;

use super::{HookMessage, Problem, invalid};
use crate::quoted::parameter;

/// Reads a form with the same fields as the JSON body. `attachments` may appear several times, each with one URL.
///
/// # Errors
/// When the form is malformed, contains a file, or has a field that is repeated or exceeds the limits.
pub(super) fn read(content: &str, boundary: &str) -> Result<HookMessage, Problem> {
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = match content.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => content.split_once(&delimiter).ok_or_else(broken)?.1,
    };
    let mut message = HookMessage::default();
    while !rest.starts_with("--") {
        let part = rest.trim_start_matches([' ', '\t']).strip_prefix("\r\n").ok_or_else(broken)?;
        let (part, after) = part.split_once(&delimiter).ok_or_else(broken)?;
        let (headers, value) = part.split_once("\r\n\r\n").ok_or_else(broken)?;
        add_part(&mut message, headers, value)?;
        rest = after;
    }
    Ok(message)
}

fn add_part(message: &mut HookMessage, headers: &str, value: &str) -> Result<(), Problem> {
    let disposition = headers
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find_map(|(name, value)| name.trim().eq_ignore_ascii_case("content-disposition").then_some(value));
    let disposition = disposition.ok_or_else(broken)?;
    let name = parameter(disposition, "name").ok_or_else(broken)?;
    if parameter(disposition, "filename").is_some() && name != "message" {
        return Err(invalid("is a file: send files as URLs in `attachments`", name));
    }
    message.add_field(name, value.to_owned())
}

fn broken() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "not-a-form",
        "The body is not a form",
        "the body is not multipart/form-data with the boundary that its Content-Type names",
    )
}
