//! Puts the files of an answer together that are one message on the platform.

use std::panic::AssertUnwindSafe;

use rejoinder_guard::Attachment;

use crate::{
    model::{Capabilities, Content, file_size},
    ports::ChannelAdapter,
};

/// The files of one message.
struct Album {
    name: Option<&'static str>,
    files: Vec<Attachment>,
    bytes: usize,
}

/// The messages with these files, in the order of the first file of each. Files of one album are together although others stand
/// between them.
pub(super) fn messages(
    files: Vec<Attachment>,
    channel: Option<&dyn ChannelAdapter>,
    capabilities: &Capabilities,
) -> Vec<Content> {
    let mut albums: Vec<Album> = Vec::new();
    for file in files {
        let album_of = |channel: &dyn ChannelAdapter| {
            std::panic::catch_unwind(AssertUnwindSafe(|| channel.album_of(&file))).ok().flatten()
        };
        let name = channel.and_then(album_of);
        let bytes = file_size(&file.url).unwrap_or(0);
        let has_room = |album: &&mut Album| {
            album.files.len() < capabilities.files_per_message
                && album.bytes.saturating_add(bytes) <= capabilities.bytes_per_message
        };
        let last = albums.iter_mut().rfind(|album| name.is_some() && album.name == name);
        if let Some(album) = last.filter(has_room) {
            album.files.push(file);
            album.bytes += bytes;
        } else {
            albums.push(Album { name, files: vec![file], bytes });
        }
    }
    albums.into_iter().map(|album| Content { attachments: album.files, ..Content::default() }).collect()
}

/// Whether nothing is said but a text that may be in a message with files.
pub(super) fn is_caption(said: &[Content], channel: Option<&dyn ChannelAdapter>, capabilities: &Capabilities) -> bool {
    let [Content { text, attachments, choices, .. }] = said else { return false };
    let fits = |channel: &dyn ChannelAdapter| {
        std::panic::catch_unwind(AssertUnwindSafe(|| channel.fits_caption(text))).unwrap_or(false)
    };
    let is_text_alone = attachments.is_empty() && choices.is_empty();
    capabilities.caption_limit.is_some() && is_text_alone && channel.is_some_and(fits)
}
