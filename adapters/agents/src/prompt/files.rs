//! Prepares the files of a turn for a model: texts, and those whose bytes it gets. No I/O.

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::AgentFile;

use crate::file_kind::{FileKind, Takes, essence};

/// How many files a model gets besides texts.
const MAX_GIVEN: usize = 10;

/// How large they may be together, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// How many characters of text files and of documents a model gets in total.
const MAX_TEXT: usize = 40_000;

/// A file whose bytes the model gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenFile<'a> {
    pub name: &'a str,
    /// Whether it belongs to the quoted message.
    pub is_quoted: bool,
    pub kind: FileKind,
    /// A `data:` URL with its bytes.
    pub url: String,
}

impl GivenFile<'_> {
    /// Its media type, and its bytes in base64. `None` if there is only a note in their place.
    pub fn encoded(&self) -> Option<(&str, &str)> {
        self.url.strip_prefix("data:")?.split_once(";base64,")
    }

    /// The file with its type and its size in place of its bytes.
    pub fn with_note(&self) -> GivenFile<'_> {
        let (media_type, encoded) = self.encoded().unwrap_or((&self.url, ""));
        GivenFile { url: note(media_type, encoded), ..*self }
    }
}

/// The type and the size of a file, in place of its bytes in base64.
#[must_use]
pub fn note(media_type: &str, encoded: &str) -> String {
    let bytes = encoded.trim_end_matches('=').len() * 3 / 4;
    format!("[{media_type}, {bytes} bytes]")
}

/// The files besides texts that a model gets, each of which may belong to the quoted message.
pub fn given<'a>(files: impl Iterator<Item = (&'a AgentFile, bool)>, takes: Takes) -> Vec<GivenFile<'a>> {
    let mut bytes_left = MAX_BYTES;
    files
        .filter_map(|(file, is_quoted)| {
            let media_type = &file.attachment.media_type;
            let kind = FileKind::of(media_type).filter(|kind| *kind != FileKind::Text)?;
            let largest = takes.largest(media_type)?;
            let bytes = file.bytes.as_deref().filter(|bytes| (1..=largest).contains(&bytes.len()))?;
            bytes_left = bytes_left.checked_sub(bytes.len())?;
            let url = format!("data:{};base64,{}", essence(media_type), BASE64_STANDARD.encode(bytes));
            Some(GivenFile { name: &file.attachment.name, is_quoted, kind, url })
        })
        .take(MAX_GIVEN)
        .collect()
}

/// How many characters of text files and of documents a model still gets.
pub(crate) struct TextLimit(usize);

impl Default for TextLimit {
    fn default() -> Self {
        Self(MAX_TEXT)
    }
}

impl TextLimit {
    /// The text of a file as far as the model gets it, and whether that is only its beginning. `None` if there is none.
    pub(crate) fn text_of<'a>(&mut self, file: &'a AgentFile) -> Option<(&'a str, bool)> {
        let is_text = FileKind::of(&file.attachment.media_type) == Some(FileKind::Text);
        let bytes = match &file.text {
            Some(Ok(text)) => text,
            _ => file.bytes.as_ref().filter(|_| is_text)?,
        };
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

    use super::*;

    fn file(name: &str, media_type: &str, bytes: Option<&[u8]>) -> AgentFile {
        let attachment =
            Attachment { name: name.into(), media_type: media_type.into(), url: "http://10.0.0.1/secret".into() };
        AgentFile { attachment, bytes: bytes.map(|bytes| bytes.to_vec().into()), text: None }
    }

    fn own_pictures(files: &[AgentFile]) -> Vec<GivenFile<'_>> {
        given(files.iter().map(|file| (file, false)), Takes::PICTURES)
    }

    #[test]
    fn a_picture_is_in_its_own_address() {
        let files = [file("a.png", "image/png", Some(b"abc")), file("b.png", "image/png", None), file("c", "", None)];
        let url = "data:image/png;base64,YWJj".to_owned();

        let picture = GivenFile { name: "a.png", is_quoted: false, kind: FileKind::Picture, url };
        assert_eq!(own_pictures(&files), [picture]);
    }

    #[test]
    fn there_is_an_end_to_pictures() {
        let many = vec![file("a.png", "image/png", Some(b"abc")); 12];
        let mut large = vec![file("a.png", "image/png", Some(&vec![0; MAX_BYTES])); 2];
        large.push(file("b.png", "image/png", Some(b"")));

        assert_eq!((own_pictures(&many).len(), own_pictures(&large).len()), (MAX_GIVEN, 1));
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
    fn a_document_is_its_text() {
        let read = |text: &str| Some(Ok(text.as_bytes().to_vec().into()));
        let pdf = AgentFile { text: read("Dear Ada"), ..file("a.pdf", "application/pdf", None) };
        let page = AgentFile { text: read("Hi"), ..file("a.html", "text/html", Some(b"<p>Hi</p>")) };

        let texts = [&pdf, &page].map(|file| TextLimit::default().text_of(file));

        assert_eq!(texts, [Some(("Dear Ada", false)), Some(("Hi", false))]);
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
