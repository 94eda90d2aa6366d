//! Turns a request's body into a [`CheckedMessage`], which becomes an event. No I/O.
//!
//! To accept another media type, add a variant to [`Media`], its case in [`Media::of`], and its reader.

use axum::http::StatusCode;
use rejoinder_core::FileLimits;
use rejoinder_kit::{Problem, quoted::parameter};

pub(crate) use self::message::{CheckedMessage, Context, Key, unprocessable};
use self::message::{is_of, not_utf8, text};

mod form;
mod json;
mod message;
mod multipart;

/// Reads a body according to its `Content-Type`. Without one, a body that starts with `{` is JSON, any other is text.
/// The error names what is wrong, and where.
pub(crate) fn read(content_type: Option<&str>, body: &[u8], limits: FileLimits) -> Result<CheckedMessage, Problem> {
    let media = Media::of(content_type)?;
    // The content of files is stored with the attachments only.
    match &media {
        Some(Media::Multipart { boundary }) => {
            let message = multipart::read(body, boundary)?;
            let raw = if message.has_files { "" } else { utf8(body)? };
            return message.checked(raw, limits);
        }
        Some(Media::File { name, media_type }) => return message::file(name, media_type, body)?.checked("", limits),
        _ => {}
    }
    let body = utf8(body)?;
    // Windows tools often write a byte order mark.
    let content = body.strip_prefix('\u{feff}').unwrap_or(body);
    let message = match media {
        Some(Media::Json) => json::read(content)?,
        Some(Media::Form) => form::read(content)?,
        None if content.trim_start().starts_with('{') => json::read(content)?,
        Some(Media::Text | Media::Multipart { .. } | Media::File { .. }) | None => text(content),
    };
    if media == Some(Media::Form) {
        return message.checked(&form::without_files(content), limits);
    }
    message.checked(body, limits)
}

/// Whether a body of this type may have files that are not written as text.
pub(crate) fn has_files(content_type: Option<&str>) -> bool {
    matches!(Media::of(content_type), Ok(Some(Media::Multipart { .. } | Media::File { .. })))
}

/// Reads any body, whatever its fields: a text is a JSON string, and a form an object.
/// Fails when it is not what its `Content-Type` says.
pub(crate) fn read_any(content_type: Option<&str>, body: &str) -> Result<serde_json::Value, Problem> {
    let content = body.strip_prefix('\u{feff}').unwrap_or(body);
    match Media::of(content_type)? {
        Some(Media::Json) => json::read_any(content),
        None if content.trim_start().starts_with(['{', '[']) => json::read_any(content),
        Some(Media::Form) => form::read_any(content),
        Some(Media::Multipart { .. } | Media::File { .. }) => {
            Err(unsupported("this hook is for events: it reads no files and no multipart/form-data"))
        }
        Some(Media::Text) | None => Ok(text(content).text.into()),
    }
}

/// A body as text.
pub(crate) fn utf8(body: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(body)
        .map_err(|error| not_utf8(format!("the body is not UTF-8 at byte {}", error.valid_up_to() + 1)))
}

/// The accepted media types.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Media {
    Json,
    Text,
    Form,
    Multipart {
        boundary: String,
    },
    /// A recording or a picture, and what it is called.
    File {
        name: &'static str,
        media_type: String,
    },
}

impl Media {
    /// Reads `Content-Type`; `None` if it is missing or empty.
    pub(crate) fn of(content_type: Option<&str>) -> Result<Option<Self>, Problem> {
        let Some(value) = content_type.map(str::trim).filter(|value| !value.is_empty()) else { return Ok(None) };
        let essence = value.split_once(';').map_or(value, |(essence, _)| essence).trim();
        if let Some(charset) = parameter(value, "charset")
            && !["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
        {
            return Err(unsupported("the charset must be utf-8"));
        }
        if essence.eq_ignore_ascii_case("application/json") || ends_with_ignore_case(essence, "+json") {
            Ok(Some(Self::Json))
        } else if essence.eq_ignore_ascii_case("text/plain") {
            Ok(Some(Self::Text))
        } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            Ok(Some(Self::Form))
        } else if essence.eq_ignore_ascii_case("multipart/form-data") {
            let boundary = rejoinder_kit::multipart::boundary(value);
            let boundary = boundary.ok_or_else(|| unsupported("multipart/form-data must name its boundary"))?;
            Ok(Some(Self::Multipart { boundary: boundary.to_owned() }))
        } else if let Some(name) = file_name(essence) {
            Ok(Some(Self::File { name, media_type: essence.to_ascii_lowercase() }))
        } else {
            Err(unsupported(
                "the body must be application/json, text/plain, application/x-www-form-urlencoded, multipart/form-data, a \
                 recording (audio/…) or a picture (image/…)",
            ))
        }
    }
}

/// What a body of this type is called if it is a file.
fn file_name(essence: &str) -> Option<&'static str> {
    let names = [("audio", "recording"), ("image", "picture")];
    names.into_iter().find(|(kind, _)| is_of(essence, kind)).map(|(_, name)| name)
}

fn ends_with_ignore_case(text: &str, end: &str) -> bool {
    text.len().checked_sub(end.len()).and_then(|at| text.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

fn unsupported(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type", detail)
}

#[cfg(test)]
mod tests;
