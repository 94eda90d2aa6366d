//! Files on the server.

use axum::body::Bytes;
use serde_json::{Map, Value};

/// The largest file that a bot may download, in bytes.
pub(crate) const MAX_DOWNLOAD: u64 = 20 << 20;
/// The largest file that a bot may send, in bytes.
pub(crate) const MAX_UPLOAD: u64 = 50 << 20;
/// The largest photo, in bytes.
pub(crate) const MAX_PHOTO: u64 = 10 << 20;

#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) number: usize,
    pub(crate) folder: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) media_type: Option<String>,
    /// The declared size, which may exceed the actual content.
    pub(crate) size: u64,
    pub(crate) bytes: Bytes,
}

impl File {
    pub(crate) fn id(&self) -> String {
        format!("AgACAgIAAxkBAAMd{:012}", self.number)
    }

    pub(crate) fn unique_id(&self) -> String {
        format!("AQAD{:08}", self.number)
    }

    pub(crate) fn path(&self) -> String {
        let ending = self.name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        let plain = ending.filter(|ending| ending.chars().all(|it| it.is_ascii_alphanumeric()));
        let usual = match self.folder {
            "photos" => Some("jpg"),
            "voice" => Some("oga"),
            "music" => Some("mp3"),
            "videos" => Some("mp4"),
            "stickers" => Some("webp"),
            _ => None,
        };
        let dot_ending = plain.or(usual).map(|ending| format!(".{ending}")).unwrap_or_default();
        format!("{}/file_{}{dot_ending}", self.folder, self.number)
    }

    /// The fields that all kinds of files share.
    pub(crate) fn to_fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("file_id".to_owned(), self.id().into());
        fields.insert("file_unique_id".to_owned(), self.unique_id().into());
        fields.insert("file_size".to_owned(), self.size.into());
        fields
    }
}
