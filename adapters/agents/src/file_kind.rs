//! What a model does with a file, by its media type. No I/O.

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

const MAX_TEXT_BYTES: usize = 256 << 10;

const MAX_PICTURE_BYTES: usize = 32 << 20;

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// What a model does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// It reads it.
    Text,
    /// It looks at it.
    Picture,
}

impl FileKind {
    /// That of files of this type; `None` if a model can do nothing with them.
    pub fn of(media_type: &str) -> Option<Self> {
        match &*essence(media_type) {
            text if text.starts_with("text/") || TEXTS.contains(&text) => Some(Self::Text),
            picture if PICTURES.contains(&picture) => Some(Self::Picture),
            _ => None,
        }
    }

    /// The size of the largest file that is read, in bytes.
    pub const fn largest(self) -> usize {
        match self {
            Self::Text => MAX_TEXT_BYTES,
            Self::Picture => MAX_PICTURE_BYTES,
        }
    }
}

/// Which files besides texts a model gets, each with the size of the largest one, in bytes; `None`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    pub pictures: Option<usize>,
}

impl Takes {
    /// Pictures of any size.
    pub const PICTURES: Self = Self { pictures: Some(usize::MAX) };

    /// The size of the largest file of this type that the model gets, in bytes; `None` if it gets none.
    pub fn largest(self, media_type: &str) -> Option<usize> {
        let kind = FileKind::of(media_type)?;
        let most = match kind {
            FileKind::Text => Some(kind.largest()),
            FileKind::Picture => self.pictures,
        };
        most.map(|most| most.min(kind.largest()))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("image/png", Some(FileKind::Picture))]
    #[case("IMAGE/JPEG; q=1", Some(FileKind::Picture))]
    #[case("image/svg+xml", None)]
    #[case("image/tiff", None)]
    #[case("text/plain; charset=utf-8", Some(FileKind::Text))]
    #[case("text/x-rust", Some(FileKind::Text))]
    #[case("application/json", Some(FileKind::Text))]
    #[case("application/pdf", None)]
    #[case("", None)]
    fn a_file_is_looked_at_or_read_by_its_media_type(#[case] media_type: &str, #[case] kind: Option<FileKind>) {
        assert_eq!(FileKind::of(media_type), kind);
    }

    #[test]
    fn a_text_is_read_up_to_256_kib_and_a_picture_up_to_32_mib() {
        let largest = |media_type, pictures| Takes { pictures }.largest(media_type);
        assert_eq!(largest("text/plain; charset=utf-8", None), Some(256 << 10));
        assert_eq!(largest("image/png", Some(usize::MAX)), Some(32 << 20));
        assert_eq!((largest("image/png", Some(5)), largest("image/png", None)), (Some(5), None));
        assert_eq!(largest("application/pdf", Some(usize::MAX)), None);
    }
}
