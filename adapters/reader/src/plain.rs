//! Texts in old encodings.

use std::borrow::Cow;

use encoding_rs::{Encoding, WINDOWS_1252};

/// How far into a page its encoding may be named.
const NAMED_WITHIN: usize = 1024;

/// A text in UTF-8, in what its first bytes say, or in what most programs of Europe and America wrote before.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    decoded_from(bytes, WINDOWS_1252)
}

/// The same of a page, which may name its encoding.
pub(crate) fn decoded_page(bytes: &[u8]) -> Cow<'_, str> {
    decoded_from(bytes, named_encoding(bytes).unwrap_or(WINDOWS_1252))
}

fn decoded_from<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    if Encoding::for_bom(bytes).is_none()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    // Looks at the first bytes by itself.
    encoding.decode(bytes).0
}

fn named_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(NAMED_WITHIN)]).to_ascii_lowercase();
    let (_, name) = beginning.split_once("charset=")?;
    let name = name.trim_start_matches(['"', '\'']);
    Encoding::for_label(name.split(['"', '\'', '>', ' ', ';', '/']).next()?.as_bytes())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"Gr\xc3\xbc\xc3\x9fe", "Grüße")]
    #[case(b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe", "Grüße")]
    #[case(b"Gr\xfc\xdfe", "Grüße")]
    #[case(b"\xff\xfeG\0r\0\xfc\0", "Grü")]
    fn an_encoding_is_known_by_the_bytes(#[case] bytes: &[u8], #[case] expected: &str) {
        assert_eq!(decoded(bytes), expected);
    }

    #[test]
    fn a_page_names_its_encoding() {
        let page = b"<meta charset=\"koi8-r\"><p>\xf0\xd2\xc9\xd7\xc5\xd4";

        assert_eq!(decoded_page(page), "<meta charset=\"koi8-r\"><p>Привет");
    }
}
