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

/// The media types of sounds that models listen to, with the names of their formats.
const SOUNDS: [(&str, &str); 6] = [
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/vnd.wave", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
];

const MAX_TEXT_BYTES: usize = 256 << 10;

const MAX_PICTURE_BYTES: usize = 32 << 20;

const MAX_SOUND_BYTES: usize = 20 << 20;

const MAX_DOCUMENT_BYTES: usize = 10 << 20;

/// The media type of a file of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The name of the format of a sound that models listen to: `wav` or `mp3`.
pub(crate) fn sound_format(media_type: &str) -> Option<&'static str> {
    let essence = essence(media_type);
    SOUNDS.into_iter().find_map(|(media_type, format)| (media_type == essence).then_some(format))
}

/// What a model does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// It reads it.
    Text,
    /// It looks at it.
    Picture,
    /// It listens to it.
    Sound,
    /// It opens it with tools of its own: an agent that is a program does.
    Document,
}

impl FileKind {
    /// The kind of files of this type; `None` if a model can do nothing with them.
    pub fn of(media_type: &str) -> Option<Self> {
        match &*essence(media_type) {
            text if text.starts_with("text/") || TEXTS.contains(&text) => Some(Self::Text),
            picture if PICTURES.contains(&picture) => Some(Self::Picture),
            sound if sound.starts_with("audio/") => Some(Self::Sound),
            document if document.starts_with("application/") && document != UNKNOWN => Some(Self::Document),
            _ => None,
        }
    }

    /// The size of the largest file that is read, in bytes.
    pub const fn largest(self) -> usize {
        match self {
            Self::Text => MAX_TEXT_BYTES,
            Self::Picture => MAX_PICTURE_BYTES,
            Self::Sound => MAX_SOUND_BYTES,
            Self::Document => MAX_DOCUMENT_BYTES,
        }
    }
}

/// Which sounds a model gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sounds {
    #[default]
    None,
    /// WAV and MP3.
    Common,
    All,
}

/// Which files besides texts a model gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    /// The size of the largest picture, in bytes; `None`: it gets none.
    pub pictures: Option<usize>,
    pub sounds: Sounds,
    pub documents: bool,
}

impl Takes {
    /// Pictures of any size.
    pub const PICTURES: Self = Self { pictures: Some(usize::MAX), sounds: Sounds::None, documents: false };

    /// The size of the largest file of this type that the model gets, in bytes; `None` if it gets none.
    pub fn largest(self, media_type: &str) -> Option<usize> {
        let kind = FileKind::of(media_type)?;
        let most = match kind {
            FileKind::Text => Some(kind.largest()),
            FileKind::Picture => self.pictures,
            FileKind::Sound => {
                let is_taken =
                    self.sounds == Sounds::All || (self.sounds == Sounds::Common && sound_format(media_type).is_some());
                is_taken.then(|| kind.largest())
            }
            FileKind::Document => self.documents.then(|| kind.largest()),
        };
        most.map(|most| most.min(kind.largest()))
    }

    /// Whether the model listens to files of this type.
    pub fn has_sound(self, media_type: &str) -> bool {
        FileKind::of(media_type) == Some(FileKind::Sound) && self.largest(media_type).is_some()
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
    #[case("audio/ogg; codecs=opus", Some(FileKind::Sound))]
    #[case("application/pdf", Some(FileKind::Document))]
    #[case("application/octet-stream", None)]
    #[case("", None)]
    fn a_file_is_looked_at_heard_or_read_by_its_media_type(#[case] media_type: &str, #[case] kind: Option<FileKind>) {
        assert_eq!(FileKind::of(media_type), kind);
    }

    #[test]
    fn a_text_is_read_up_to_256_kib_and_a_picture_up_to_32_mib() {
        let largest = |media_type, pictures| Takes { pictures, ..Takes::default() }.largest(media_type);
        assert_eq!(largest("text/plain; charset=utf-8", None), Some(256 << 10));
        assert_eq!(largest("image/png", Some(usize::MAX)), Some(32 << 20));
        assert_eq!((largest("image/png", Some(5)), largest("image/png", None)), (Some(5), None));
        assert_eq!(largest("application/pdf", Some(usize::MAX)), None);
        let documents = Takes { documents: true, ..Takes::default() };
        assert_eq!((documents.largest("application/pdf"), documents.largest("audio/mpeg")), (Some(10 << 20), None));
    }

    #[rstest]
    #[case(Sounds::None, [false; 3])]
    #[case(Sounds::Common, [true, true, false])]
    #[case(Sounds::All, [true; 3])]
    fn a_model_hears_what_it_takes(#[case] sounds: Sounds, #[case] heard: [bool; 3]) {
        let takes = Takes { sounds, ..Takes::default() };
        let largest = ["audio/x-wav", "audio/mpeg", "audio/ogg"].map(|media_type| takes.largest(media_type));
        assert_eq!(largest, heard.map(|is_heard| is_heard.then_some(20 << 20)));
        assert_eq!(["audio/x-wav", "audio/mpeg", "audio/ogg"].map(|media_type| takes.has_sound(media_type)), heard);
        assert!(!Takes { documents: true, ..takes }.has_sound("application/pdf"));
    }
}
