//! Prepares the files of a turn for a model: pictures, texts, and the rest by name. No I/O.

use std::fmt::Write as _;

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::AgentFile;

/// The media types of pictures that servers accept.
const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Media types that are text, besides `text/…`.
const TEXTS: [&str; 11] = [
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/sql",
    "application/toml",
    "application/x-httpd-php",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

/// How many pictures a model gets.
const MAX_PICTURES: usize = 10;

/// How many bytes the pictures may have in total.
const MAX_PICTURE_BYTES: usize = 32 << 20;

/// The largest text file that is read, in bytes. Enough for [`MAX_TEXT`] in any script.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// How many characters of text files a model gets in total.
const MAX_TEXT: usize = 40_000;

/// How many files are named.
const MAX_FILES: usize = 20;

/// How many characters of a name are kept. Strangers choose names.
const MAX_NAME: usize = 100;

/// A media type without its parameters, in lower case.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether models can look at files of this type.
pub(super) fn is_picture(media_type: &str) -> bool {
    PICTURES.contains(&essence(media_type).as_str())
}

/// Whether files of this type can be read as text.
fn is_text(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence.starts_with("text/") || TEXTS.contains(&essence.as_str())
}

/// The size of the largest file of this type that is read, in bytes; `None` if a model cannot read such files.
pub(super) fn largest(media_type: &str) -> Option<usize> {
    if is_text(media_type) { Some(MAX_TEXT_BYTES) } else { is_picture(media_type).then_some(MAX_PICTURE_BYTES) }
}

/// The pictures among the files, as `data:` URLs.
pub(super) fn pictures(files: &[AgentFile]) -> Vec<String> {
    let mut bytes_left = MAX_PICTURE_BYTES;
    let pictures = files.iter().filter(|file| is_picture(&file.attachment.media_type));
    pictures
        .filter_map(|file| {
            let bytes = file.bytes.as_ref().filter(|bytes| !bytes.is_empty())?;
            bytes_left = bytes_left.checked_sub(bytes.len())?;
            Some(format!("data:{};base64,{}", essence(&file.attachment.media_type), BASE64_STANDARD.encode(bytes)))
        })
        .take(MAX_PICTURES)
        .collect()
}

/// Appends the names of the files and the content of text files. URLs are omitted, because strangers choose them.
pub(super) fn describe(files: &[AgentFile], text: &mut String) {
    let mut chars_left = MAX_TEXT;
    for (number, file) in files.iter().take(MAX_FILES).enumerate() {
        text.push_str(if number == 0 && !text.is_empty() { "\n\n" } else { "\n" });
        text.push_str("[attached: ");
        text.push_str(&clean(&file.attachment.name));
        text.push_str(", ");
        text.push_str(&clean(&file.attachment.media_type));
        text.push(']');
        let read = file.bytes.as_deref().filter(|_| is_text(&file.attachment.media_type));
        if let Some(read) = read.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            quote(read.trim_start_matches('\u{feff}'), &mut chars_left, text);
        }
    }
    if let Some(more) = files.len().checked_sub(MAX_FILES).filter(|more| *more > 0) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[attached: {more} more]");
    }
}

/// Appends a text between fences that its content cannot close.
fn quote(read: &str, chars_left: &mut usize, text: &mut String) {
    let end = read.char_indices().nth(*chars_left).map_or(read.len(), |(end, _)| end);
    let given = &read[..end];
    *chars_left -= given.chars().count();
    let longest = given.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    text.push('\n');
    text.push_str(&fence);
    text.push('\n');
    text.push_str(given);
    if !given.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&fence);
    if end < read.len() {
        text.push_str("\n[the rest of this file is left out]");
    }
}

/// A name in one line, shortened.
pub(super) fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Attachment;
    use rstest::rstest;

    use super::*;

    fn file(name: &str, media_type: &str, bytes: Option<&[u8]>) -> AgentFile {
        let attachment =
            Attachment { name: name.into(), media_type: media_type.into(), url: "http://10.0.0.1/secret".into() };
        AgentFile { attachment, bytes: bytes.map(<[u8]>::to_vec) }
    }

    fn described(files: &[AgentFile]) -> String {
        let mut text = String::new();
        describe(files, &mut text);
        text.trim_start().to_owned()
    }

    #[rstest]
    #[case("image/png", true, false)]
    #[case("IMAGE/JPEG; q=1", true, false)]
    #[case("image/svg+xml", false, false)]
    #[case("image/tiff", false, false)]
    #[case("text/plain; charset=utf-8", false, true)]
    #[case("text/x-rust", false, true)]
    #[case("application/json", false, true)]
    #[case("application/pdf", false, false)]
    #[case("", false, false)]
    fn a_file_is_looked_at_or_read_by_its_media_type(
        #[case] media_type: &str,
        #[case] picture: bool,
        #[case] text: bool,
    ) {
        assert_eq!((is_picture(media_type), is_text(media_type)), (picture, text));
    }

    #[test]
    fn a_text_is_read_up_to_256_kib_and_a_picture_up_to_32_mib() {
        assert_eq!(largest("text/plain; charset=utf-8"), Some(256 << 10));
        assert_eq!(largest("image/png"), Some(32 << 20));
        assert_eq!(largest("application/pdf"), None);
    }

    #[test]
    fn a_picture_is_in_its_own_address() {
        let files = [file("a.png", "image/png", Some(b"abc")), file("b.png", "image/png", None), file("c", "", None)];

        assert_eq!(pictures(&files), ["data:image/png;base64,YWJj"]);
    }

    #[test]
    fn there_is_an_end_to_pictures() {
        let many = vec![file("a.png", "image/png", Some(b"abc")); 12];
        let mut large = vec![file("a.png", "image/png", Some(&vec![0; MAX_PICTURE_BYTES])); 2];
        large.push(file("b.png", "image/png", Some(b"")));

        assert_eq!((pictures(&many).len(), pictures(&large).len()), (MAX_PICTURES, 1));
    }

    #[test]
    fn a_text_stands_between_fences_that_it_cannot_close() {
        let files = [file("a.md", "text/markdown", Some(b"\xef\xbb\xbf```\nx\n````"))];

        assert_eq!(described(&files), "[attached: a.md, text/markdown]\n`````\n```\nx\n````\n`````");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "ä".repeat(MAX_TEXT + 1);
        let files =
            [file("a.txt", "text/plain", Some(long.as_bytes())), file("b.txt", "text/plain", Some(b"never seen"))];

        let text = described(&files);

        assert_eq!(text.matches("[the rest of this file is left out]").count(), 2);
        assert!(!text.contains("never seen") && text.chars().filter(|char| *char == 'ä').count() == MAX_TEXT);
    }

    #[test]
    fn what_is_no_text_is_named_only() {
        let files = [
            file("a\n.txt", "text/plain", Some(b"\xff\xfe")),
            file("b.pdf", "application/pdf", Some(b"%PDF")),
            file("c.txt", "text/plain", None),
        ];

        assert_eq!(
            described(&files),
            "[attached: a .txt, text/plain]\n[attached: b.pdf, application/pdf]\n[attached: c.txt, text/plain]"
        );
        assert!(described(&vec![file("x", "a/b", None); 22]).ends_with("\n[attached: 2 more]"));
    }
}
