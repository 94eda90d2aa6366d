//! `data:` URLs (RFC 2397): files that a caller sent in the body. No I/O.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;
use rejoinder_core::{Attachment, FetchError};

/// The media type of a `data:` URL without one.
const DEFAULT_MEDIA_TYPE: &str = "text/plain";

/// Puts a file into a URL.
#[must_use]
pub fn of(media_type: &str, content: &[u8]) -> String {
    format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(content))
}

/// A `data:` URL without data, or with data that is not Base64 although it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The file in a URL; `None` if it is not a `data:` URL.
#[must_use]
pub fn content(url: &str) -> Option<Result<Vec<u8>, Malformed>> {
    let (header, data) = split(url)?;
    let Some(data) = data else { return Some(Err(Malformed)) };
    // Files are large, and Base64 seldom has anything to decode here: then it is not copied.
    let bytes: Cow<'_, [u8]> = percent_decode_str(data).into();
    Some(match header.rsplit_once(';') {
        Some((_, last)) if last.trim().eq_ignore_ascii_case("base64") => {
            BASE64_STANDARD.decode(bytes).map_err(|_| Malformed)
        }
        _ => Ok(bytes.into_owned()),
    })
}

/// The bytes of a file that a caller sent in the body: at most `limit`.
///
/// # Errors
/// When it is larger, its URL is malformed, or it is somewhere else: an address that a caller names is never fetched.
pub fn fetch(attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
    let content = content(&attachment.url).ok_or_else(|| FetchError::NotOurs(attachment.name.clone()))?;
    let bytes = content.map_err(|Malformed| FetchError::Failed("its data: URL is malformed".to_owned()))?;
    if bytes.len() > limit { Err(FetchError::TooLarge { limit }) } else { Ok(bytes) }
}

/// The media type that a `data:` URL gives, without its parameters; `None` if it is not a `data:` URL.
#[must_use]
pub fn media_type(url: &str) -> Option<&str> {
    let (header, _) = split(url)?;
    let essence = header.split(';').next().unwrap_or_default().trim();
    Some(if essence.is_empty() { DEFAULT_MEDIA_TYPE } else { essence })
}

/// What stands before the comma, and after it.
fn split(url: &str) -> Option<(&str, Option<&str>)> {
    let (_, rest) = url.split_once(':').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("data"))?;
    Some(rest.split_once(',').map_or((rest, None), |(header, data)| (header, Some(data))))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://a.example/data:,x", None)]
    #[case("data:text/plain;base64,SGkh", Some(Ok("Hi!")))]
    #[case("DATA:;BASE64,SGkh", Some(Ok("Hi!")))]
    #[case("data:text/plain;base64,SGk%3D", Some(Ok("Hi")))]
    #[case("data:,a%20b", Some(Ok("a b")))]
    #[case("data:text/plain;charset=utf-8,", Some(Ok("")))]
    #[case("data:text/plain;base64,S", Some(Err(Malformed)))]
    #[case("data:text/plain", Some(Err(Malformed)))]
    fn a_file_is_read_from_its_url(#[case] url: &str, #[case] expected: Option<Result<&str, Malformed>>) {
        assert_eq!(content(url), expected.map(|content| content.map(|content| content.as_bytes().to_vec())));
    }

    #[test]
    fn a_file_comes_out_of_its_url_as_it_went_in() {
        let file: Vec<u8> = (0..=255).collect();
        let url = of("image/png", &file);

        assert_eq!((media_type(&url), content(&url)), (Some("image/png"), Some(Ok(file))));
        assert_eq!(media_type("data:,x"), Some("text/plain"));
    }
}
