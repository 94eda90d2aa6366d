//! Prepares the files of a turn for a model: pictures and texts. No I/O.

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

const MAX_PICTURES: usize = 10;

const MAX_PICTURE_BYTES: usize = 32 << 20;

const MAX_TEXT_BYTES: usize = 256 << 10;

/// How many characters of text files a model gets in total.
const MAX_TEXT: usize = 40_000;

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether models can look at files of this type.
pub fn is_picture(media_type: &str) -> bool {
    PICTURES.contains(&essence(media_type).as_str())
}

/// Whether files of this type can be read as text.
fn is_text(media_type: &str) -> bool {
    let essence = essence(media_type);
    essence.starts_with("text/") || TEXTS.contains(&essence.as_str())
}

/// The size of the largest file of this type that is read, in bytes; `None` if a model cannot read such files.
pub fn largest(media_type: &str) -> Option<usize> {
    if is_text(media_type) { Some(MAX_TEXT_BYTES) } else { is_picture(media_type).then_some(MAX_PICTURE_BYTES) }
}

/// A picture for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    pub name: &'a str,
    /// Whether it belongs to the quoted message.
    pub is_quoted: bool,
    /// A `data:` URL with its bytes.
    pub url: String,
}

impl Picture<'_> {
    /// Its media type, and its bytes in base64. `None` if there is only a note in their place.
    pub fn encoded(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }

    /// The picture with its type and its size in place of its bytes.
    pub fn with_note(&self) -> Picture<'_> {
        let (media_type, encoded) = self.encoded().unwrap_or((&self.url, ""));
        Picture { name: self.name, is_quoted: self.is_quoted, url: note(media_type, encoded) }
    }
}

/// The type and the size of a picture, in place of its bytes in base64.
#[must_use]
pub fn note(media_type: &str, encoded: &str) -> String {
    let bytes = encoded.trim_end_matches('=').len() * 3 / 4;
    format!("[{media_type}, {bytes} bytes]")
}

/// The pictures of at most `largest` bytes among the files, each of which may belong to the quoted message.
pub fn pictures<'a>(files: impl Iterator<Item = (&'a AgentFile, bool)>, largest: usize) -> Vec<Picture<'a>> {
    let mut bytes_left = MAX_PICTURE_BYTES;
    let pictures = files.filter(|(file, _)| is_picture(&file.attachment.media_type));
    pictures
        .filter_map(|(file, is_quoted)| {
            let bytes = file.bytes.as_deref().filter(|bytes| (1..=largest).contains(&bytes.len()))?;
            bytes_left = bytes_left.checked_sub(bytes.len())?;
            let url = format!("data:{};base64,{}", essence(&file.attachment.media_type), BASE64_STANDARD.encode(bytes));
            Some(Picture { name: &file.attachment.name, is_quoted, url })
        })
        .take(MAX_PICTURES)
        .collect()
}

/// How many characters of text files a model still gets.
pub(crate) struct TextLimit(usize);

impl Default for TextLimit {
    fn default() -> Self {
        Self(MAX_TEXT)
    }
}

impl TextLimit {
    /// The text of a file as far as the model gets it, and whether that is only its beginning. `None` if it is no text.
    pub(crate) fn text_of<'a>(&mut self, file: &'a AgentFile) -> Option<(&'a str, bool)> {
        let bytes = file.bytes.as_deref().filter(|_| is_text(&file.attachment.media_type))?;
        let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
        let end = text.char_indices().nth(self.0).map_or(text.len(), |(end, _)| end);
        let given = &text[..end];
        self.0 -= given.chars().count();
        Some((given, end < text.len()))
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Attachment;
    use rstest::rstest;

    use super::*;

    fn file(name: &str, media_type: &str, bytes: Option<&[u8]>) -> AgentFile {
        let attachment =
            Attachment { name: name.into(), media_type: media_type.into(), url: "http://10.0.0.1/secret".into() };
        AgentFile { attachment, bytes: bytes.map(|bytes| bytes.to_vec().into()) }
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

    fn own_pictures(files: &[AgentFile]) -> Vec<Picture<'_>> {
        pictures(files.iter().map(|file| (file, false)), usize::MAX)
    }

    #[test]
    fn a_picture_is_in_its_own_address() {
        let files = [file("a.png", "image/png", Some(b"abc")), file("b.png", "image/png", None), file("c", "", None)];
        let url = "data:image/png;base64,YWJj".to_owned();

        assert_eq!(own_pictures(&files), [Picture { name: "a.png", is_quoted: false, url }]);
    }

    #[test]
    fn there_is_an_end_to_pictures() {
        let many = vec![file("a.png", "image/png", Some(b"abc")); 12];
        let mut large = vec![file("a.png", "image/png", Some(&vec![0; MAX_PICTURE_BYTES])); 2];
        large.push(file("b.png", "image/png", Some(b"")));

        assert_eq!((own_pictures(&many).len(), own_pictures(&large).len()), (MAX_PICTURES, 1));
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "ä".repeat(MAX_TEXT - 1);
        let files =
            [long.as_str(), "\u{feff}ab", "never seen", ""].map(|text| file("a", "text/plain", Some(text.as_bytes())));
        let mut limit = TextLimit::default();

        let texts = files.each_ref().map(|file| limit.text_of(file));

        assert_eq!(texts, [Some((long.as_str(), false)), Some(("a", true)), Some(("", true)), Some(("", false))]);
    }

    #[test]
    fn what_is_no_text_is_not_read() {
        let files = [
            file("a.txt", "text/plain", Some(b"\xff\xfe")),
            file("b.pdf", "application/pdf", Some(b"%PDF")),
            file("c.txt", "text/plain", None),
        ];

        assert_eq!(files.each_ref().map(|file| TextLimit::default().text_of(file)), [None; 3]);
    }
}
