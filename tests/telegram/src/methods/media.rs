//! Files in messages.

use axum::body::Bytes;
use serde_json::{Map, Value};

use super::send;
use crate::{
    error::{Answer, ApiError},
    params::{Params, Upload},
    text::Formatted,
    world::{
        World,
        file::{File, MAX_PHOTO, MAX_UPLOAD},
        message::Content,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Photo,
    Document,
    Voice,
    Audio,
    Video,
    Animation,
    Sticker,
}

impl MediaKind {
    /// The name of the field in a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Photo => "photo",
            Self::Document => "document",
            Self::Voice => "voice",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Animation => "animation",
            Self::Sticker => "sticker",
        }
    }

    /// The kind with this [`name`](Self::name).
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Photo, Self::Document, Self::Voice, Self::Audio, Self::Video, Self::Animation, Self::Sticker];
        all.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Photo => "photos",
            Self::Document => "documents",
            Self::Voice => "voice",
            Self::Audio => "music",
            Self::Video => "videos",
            Self::Animation => "animations",
            Self::Sticker => "stickers",
        }
    }

    /// The JSON of a file in a message.
    pub(crate) fn show(self, file: &File) -> Value {
        let mut fields = file.to_fields();
        let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        match self {
            Self::Photo => {
                put("width", 800.into());
                put("height", 600.into());
                return Value::Array(vec![smaller(&fields), Value::Object(fields)]);
            }
            Self::Voice => put("duration", 3.into()),
            Self::Audio => put("duration", 60.into()),
            Self::Video | Self::Animation => {
                put("width", 640.into());
                put("height", 360.into());
                put("duration", 10.into());
            }
            Self::Sticker => {
                put("type", "regular".into());
                put("width", 512.into());
                put("height", 512.into());
                put("is_animated", false.into());
                put("is_video", false.into());
            }
            Self::Document => (),
        }
        if let Some(name) = file.name.as_ref().filter(|_| !matches!(self, Self::Voice | Self::Sticker)) {
            put("file_name", name.clone().into());
        }
        if let Some(media_type) = file.media_type.as_ref().filter(|_| self != Self::Sticker) {
            put("mime_type", media_type.clone().into());
        }
        Value::Object(fields)
    }
}

/// The smaller size of a photo, which shares the file's id and content.
fn smaller(fields: &Map<String, Value>) -> Value {
    let mut small = fields.clone();
    for (key, value) in [("width", 90), ("height", 67), ("file_size", 1_200)] {
        small.insert(key.to_owned(), value.into());
    }
    let unique = format!("{}s", fields["file_unique_id"].as_str().unwrap_or_default());
    small.insert("file_unique_id".to_owned(), unique.into());
    Value::Object(small)
}

pub(super) fn photo(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Photo)
}

pub(super) fn document(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Document)
}

pub(super) fn voice(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Voice)
}

pub(super) fn audio(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Audio)
}

pub(super) fn video(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Video)
}

pub(super) fn animation(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Animation)
}

pub(super) fn sticker(world: &mut World, params: &Params) -> Answer {
    one(world, params, MediaKind::Sticker)
}

fn one(world: &mut World, params: &Params, kind: MediaKind) -> Answer {
    let caption = send::caption(world, params)?;
    // Checks whether it may be sent before storing the file.
    let place = send::place(world, params)?;
    let shown = take(world, params, kind, kind.name(), params.text(kind.name()).as_deref())?;
    let content = Content::field(kind.name(), shown).captioned(caption);
    send::check_length(&content)?;
    world.spend(place.chat)?;
    let id = send::put(world, &place, content, None);
    Ok(world.message_json(place.chat, id))
}

/// The most files in an album.
const MAX_ALBUM: usize = 10;

/// Sends an album, or one file as an ordinary message. The errors are those of `Client::get_input_media` in the Bot API server and of
/// `sendMessageAlbum` in TDLib. The server ignores `reply_markup` (`Client::process_send_media_group_query`).
pub(super) fn group(world: &mut World, params: &Params) -> Answer {
    let media = params.json("media", "media")?.unwrap_or_default();
    let listed = media.as_array().ok_or_else(|| ApiError::bad_request("expected an Array of InputMedia"))?;
    let kinds = listed.iter().map(album_kind).collect::<Result<Vec<_>, _>>()?;
    match listed.len() {
        0 => return Err(ApiError::bad_request("there are no messages to send")),
        1..=MAX_ALBUM => {}
        _ => return Err(ApiError::bad_request("too many messages to send as an album")),
    }
    let alone = [MediaKind::Audio, MediaKind::Document].into_iter().find(|kind| kinds.contains(kind));
    if let Some(alone) = alone.filter(|alone| kinds.iter().any(|kind| kind != alone)) {
        return Err(ApiError::bad_request(format!("{} can't be mixed with other media types", alone.name())));
    }
    let mut place = send::place(world, params)?;
    place.markup = None;
    let mut contents = Vec::with_capacity(listed.len());
    for (number, (item, kind)) in (1..).zip(listed.iter().zip(kinds)) {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let caption =
            Formatted::of_call(text("caption").unwrap_or_default(), text("parse_mode"), item.get("caption_entities"))?;
        let given = text("media").unwrap_or_default();
        if given.strip_prefix("attach://").is_some_and(|part| params.file(part).is_none()) {
            return Err(ApiError::bad_request("can't parse InputMedia: media not found"));
        }
        if is_on_the_web(given) {
            let why = format!("failed to send message #{number} with the error message \"WEBPAGE_CURL_FAILED\"");
            return Err(ApiError::bad_request(why));
        }
        let shown = take(world, params, kind, "media", Some(given))?;
        let content = Content::field(kind.name(), shown).captioned(caption);
        send::check_length(&content)?;
        contents.push(content);
    }
    world.spend(place.chat)?;
    let album = (contents.len() > 1).then(|| world.next_id().to_string());
    let sent = contents.into_iter().map(|content| {
        let id = send::put(world, &place, content, album.clone());
        world.message_json(place.chat, id)
    });
    Ok(sent.collect())
}

/// The kind of an item of an album.
fn album_kind(item: &Value) -> Result<MediaKind, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("can't parse InputMedia: {why}"));
    let given = item["type"].as_str().ok_or_else(|| refused("Can't find field \"type\"".to_owned()))?;
    match MediaKind::named(given) {
        Some(MediaKind::Animation) => Err(refused("type \"animation\" can't be used in sendMediaGroup".to_owned())),
        Some(kind @ (MediaKind::Photo | MediaKind::Video | MediaKind::Audio | MediaKind::Document)) => Ok(kind),
        Some(MediaKind::Voice | MediaKind::Sticker) | None => Err(refused(format!("type \"{given}\" is unsupported"))),
    }
}

fn is_on_the_web(media: &str) -> bool {
    media.starts_with("http://") || media.starts_with("https://")
}

/// The file of a call: an uploaded part, or an existing file by its id.
fn take(world: &mut World, params: &Params, kind: MediaKind, key: &str, given: Option<&str>) -> Answer {
    let part = given.and_then(|given| given.strip_prefix("attach://")).unwrap_or(key);
    if let Some(upload) = params.file(part) {
        return keep(world, kind, upload);
    }
    let given = given.unwrap_or_default();
    if is_on_the_web(given) {
        return Err(ApiError::bad_request("failed to get HTTP URL content"));
    }
    let wrong = || match given {
        "" => ApiError::bad_request(format!("there is no {} in the request", kind.name())),
        _ => ApiError::bad_request("wrong remote file identifier specified: Wrong string length"),
    };
    world.file(given).map(|file| kind.show(file)).ok_or_else(wrong)
}

fn keep(world: &mut World, kind: MediaKind, upload: &Upload) -> Answer {
    let size = upload.bytes.len() as u64;
    if size == 0 {
        return Err(ApiError::bad_request("file must be non-empty"));
    }
    if size > MAX_UPLOAD {
        return Err(ApiError::new(413, "Request Entity Too Large"));
    }
    if kind == MediaKind::Photo && size > MAX_PHOTO {
        return Err(ApiError::bad_request(format!("file is too big for a photo: {size} bytes")));
    }
    // Copied, so that the whole request body is not kept for it.
    let bytes = Bytes::copy_from_slice(&upload.bytes);
    let file = world.add_file(kind.folder(), upload.name.as_deref(), upload.media_type.as_deref(), bytes);
    Ok(kind.show(file))
}
