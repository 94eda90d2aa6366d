//! Files that an agent sends. No URL or path from an agent is opened here: the bytes are in a `data:` URL, or the person
//! opens the URL.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Why a file from an agent has no bytes to send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Its URL is not a `data:` URL.
    #[error("its URL is not a `data:` URL")]
    NotInline,
    /// There is no comma before the data.
    #[error("its URL has no data")]
    NoData,
    /// The data is percent-encoded: `;base64` is missing.
    #[error("its data is not base64")]
    NotBase64,
    /// The data is not valid base64.
    #[error("its data is not valid base64: {0}")]
    Broken(#[from] base64::DecodeError),
    /// It has more bytes than the limit.
    #[error("it is larger than {limit} bytes")]
    TooLarge {
        /// The largest allowed size, in bytes.
        limit: usize,
    },
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
}

/// Whether a URL begins with `https://` or `http://`.
#[must_use]
pub fn is_on_the_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Decodes the bytes in a base64 `data:` URL: at least one, and at most `limit`.
///
/// # Errors
/// When it is another URL, or the data is missing, invalid or too large.
pub fn inline(url: &str, limit: usize) -> Result<Vec<u8>, FileError> {
    let data = url.strip_prefix("data:").ok_or(FileError::NotInline)?;
    let (head, body) = data.split_once(',').ok_or(FileError::NoData)?;
    if !head.ends_with(";base64") {
        return Err(FileError::NotBase64);
    }
    let body = body.trim();
    // Checked before decoding, which needs memory for the bytes.
    if body.len() / 4 * 3 > limit.saturating_add(3) {
        return Err(FileError::TooLarge { limit });
    }
    let bytes = BASE64_STANDARD.decode(body)?;
    match bytes.len() {
        0 => Err(FileError::Empty),
        length if length > limit => Err(FileError::TooLarge { limit }),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("file:///etc/passwd", FileError::NotInline)]
    #[case("/etc/passwd", FileError::NotInline)]
    #[case("ftp://example.org/a", FileError::NotInline)]
    #[case("mxc://example.org/a", FileError::NotInline)]
    #[case("https://example.org/a", FileError::NotInline)]
    #[case("data:text/plain", FileError::NoData)]
    #[case("data:text/plain,abc", FileError::NotBase64)]
    #[case("data:,", FileError::NotBase64)]
    #[case("data:a/b;base64,", FileError::Empty)]
    fn nothing_is_opened_that_an_agent_names(#[case] url: &str, #[case] expected: FileError) {
        assert_eq!(inline(url, 100), Err(expected));
    }

    #[test]
    fn bytes_are_bounded() {
        assert_eq!(inline("data:text/plain;base64,aGVsbG8=", 5), Ok(b"hello".to_vec()));
        assert_eq!(inline("data:text/plain;base64,aGVsbG8=", 4), Err(FileError::TooLarge { limit: 4 }));
        let large = format!("data:a/b;base64,{}", "AAAA".repeat(100));
        assert_eq!(inline(&large, 200), Err(FileError::TooLarge { limit: 200 }));
        assert!(matches!(inline("data:a/b;base64,A", 100), Err(FileError::Broken(_))));
    }
}
