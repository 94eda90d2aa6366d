//! Reads the files of a message.

use rejoinder_core::{Attachment, Voice};

use crate::payload::{File, Message};

/// The prefix of a file id in an attachment's URL.
const SCHEME: &str = "telegram:";

/// The Telegram file id in an attachment's URL; `None` for any other URL.
pub(crate) fn file_id(url: &str) -> Option<&str> {
    url.strip_prefix(SCHEME).filter(|id| !id.is_empty())
}

/// Whether a message is a voice note, or a round video, in which somebody speaks.
pub(super) fn voice(message: &Message) -> Option<Voice> {
    let recording = message.voice.as_ref().or(message.video_note.as_ref())?;
    Some(Voice::lasting(recording.duration))
}

/// The files of a message. If Telegram gives no name or media type, each kind of file has a default.
pub(super) fn attachments(message: &Message) -> Vec<Attachment> {
    let attachment = |file: &File, name: &str, media_type: &str| Attachment {
        name: file.file_name.clone().unwrap_or_else(|| name.to_owned()),
        media_type: file.mime_type.clone().unwrap_or_else(|| media_type.to_owned()),
        url: format!("{SCHEME}{}", file.file_id),
    };
    let largest = message.photo.iter().max_by_key(|size| size.width * size.height);
    // Telegram repeats an animation as a document, for old clients.
    let document = message.document.as_ref().filter(|_| message.animation.is_none());
    let files = [
        (largest, "photo.jpg", "image/jpeg"),
        (message.animation.as_ref(), "animation.mp4", "video/mp4"),
        (document, "document", "application/octet-stream"),
        (message.audio.as_ref(), "audio.mp3", "audio/mpeg"),
        (message.video.as_ref(), "video.mp4", "video/mp4"),
        (message.video_note.as_ref(), "video.mp4", "video/mp4"),
        (message.voice.as_ref(), "voice.ogg", "audio/ogg"),
    ];
    files.into_iter().filter_map(|(file, name, media_type)| Some(attachment(file?, name, media_type))).collect()
}
