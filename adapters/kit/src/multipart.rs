//! `multipart/form-data` bodies (RFC 7578), which browsers and Apple Shortcuts send for forms. No I/O.

use axum::http::StatusCode;

use crate::{Problem, quoted::parameter};

/// The longest boundary, in bytes (RFC 2046, section 5.1.1).
const MAX_BOUNDARY: usize = 70;

/// A field of a form, or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The name of the field.
    pub name: &'a str,
    /// Set if it is a file. Empty if no file was chosen.
    pub file_name: Option<&'a str>,
    /// Its `Content-Type`.
    pub content_type: Option<&'a str>,
    /// Its bytes.
    pub content: &'a [u8],
}

impl<'a> Part<'a> {
    /// The value of a field.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&'a str, Problem> {
        utf8(self.content)
    }

    /// Its media type without parameters, which may contain a comma. `application/octet-stream` if it names none.
    #[must_use]
    pub fn media_type(&self) -> &'a str {
        let essence = self.content_type.and_then(|given| given.split(';').next()).map(str::trim);
        essence.filter(|essence| !essence.is_empty()).unwrap_or("application/octet-stream")
    }
}

/// The boundary in the `Content-Type` of a form; `None` if there is none that is valid.
#[must_use]
pub fn boundary(content_type: &str) -> Option<&str> {
    parameter(content_type, "boundary").filter(|boundary| (1..=MAX_BOUNDARY).contains(&boundary.len()))
}

/// Reads a form, and shows `see` each of its parts.
///
/// # Errors
/// When the form is malformed, or `see` refuses a part.
pub fn read<'a>(
    content: &'a [u8],
    boundary: &str,
    mut see: impl FnMut(Part<'a>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let mut rest = match content.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => split(content, &delimiter).ok_or_else(broken)?.1,
    };
    while !rest.starts_with(b"--") {
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let part = rest[padding..].strip_prefix(b"\r\n").ok_or_else(broken)?;
        let (part, after) = split(part, &delimiter).ok_or_else(broken)?;
        let (headers, value) = split(part, b"\r\n\r\n").ok_or_else(broken)?;
        see(part_of(headers, value)?)?;
        rest = after;
    }
    Ok(())
}

/// Splits at the first `delimiter`. The bytes of a delimiter are compared at most twice, because it can only begin at a
/// carriage return.
fn split<'a>(content: &'a [u8], delimiter: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = content.windows(delimiter.len()).position(|window| window == delimiter)?;
    Some((&content[..at], &content[at + delimiter.len()..]))
}

fn part_of<'a>(headers: &'a [u8], content: &'a [u8]) -> Result<Part<'a>, Problem> {
    let headers = utf8(headers)?;
    let header = |wanted: &str| {
        let mut headers = headers.split("\r\n").filter_map(|line| line.split_once(':'));
        headers.find_map(|(name, value)| name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim()))
    };
    let disposition = header("content-disposition").ok_or_else(broken)?;
    let name = parameter(disposition, "name").ok_or_else(broken)?;
    Ok(Part { name, file_name: parameter(disposition, "filename"), content_type: header("content-type"), content })
}

fn utf8(text: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(text).map_err(|_| {
        let detail = "a field of the form is not UTF-8";
        Problem::new(StatusCode::BAD_REQUEST, "not-utf-8", "Bad request: the body is not UTF-8", detail)
    })
}

fn broken() -> Problem {
    let detail = "the body is not multipart/form-data with the boundary that its Content-Type names";
    Problem::new(StatusCode::BAD_REQUEST, "not-a-form", "Bad request: the body is not a form", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_form_are_read_in_their_order() {
        let form = "--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\
                    \r\n--\r\n--x--\r\n";
        let mut parts = Vec::new();

        read(form.as_bytes(), "x", |part| {
            parts.push(part);
            Ok(())
        })
        .expect("a form");

        let text = Part { name: "text", file_name: None, content_type: None, content: b"hi" };
        let content = b"\r\n--";
        let file = Part { name: "file", file_name: Some("a.png"), content_type: Some("image/png"), content };
        assert_eq!(parts, [text, file]);
    }
}
