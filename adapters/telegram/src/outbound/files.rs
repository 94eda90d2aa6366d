//! Sends files.
//!
//! The bytes are on Telegram already (`telegram:…`, as in received files), in the answer itself (`data:`), or on the
//! web, where Telegram fetches them. The gateway opens no address and no path from an agent.

use rejoinder_core::{Attachment, DeliveryError, Receipt, file_size};
use rejoinder_kit::files;
use reqwest::multipart::{Form, Part};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use teloxide::types::ReplyParameters;

use super::{Address, Repeat, Sending, is_refused};
use crate::{
    api::FILE_TIMEOUT,
    capabilities::FILES_PER_MESSAGE,
    errors::{ApiError, Refusal},
    format::{caption, format},
    inbound::file_id,
    payload::SentMessage,
};

/// The largest photo, in bytes (<https://core.telegram.org/bots/api#sending-files>).
const MAX_PHOTO: usize = 10 << 20;

/// The parameters of a call.
type Parameters = Map<String, Value>;

/// How a file is sent, and so how Telegram shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MediaKind {
    Photo,
    Video,
    Audio,
    Voice,
    Document,
}

impl MediaKind {
    fn of(media_type: &str, size: Option<usize>) -> Self {
        match media_type.split_once(';').map_or(media_type, |(essence, _)| essence).trim() {
            "image/jpeg" | "image/png" | "image/webp" if size.is_none_or(|size| size <= MAX_PHOTO) => Self::Photo,
            "video/mp4" => Self::Video,
            "audio/mpeg" | "audio/mp4" => Self::Audio,
            "audio/ogg" => Self::Voice,
            _ => Self::Document,
        }
    }

    /// The method that sends the file, and the parameter that holds it, which is its type in an album.
    const fn method(self) -> (&'static str, &'static str) {
        match self {
            Self::Photo => ("sendPhoto", "photo"),
            Self::Video => ("sendVideo", "video"),
            Self::Audio => ("sendAudio", "audio"),
            Self::Voice => ("sendVoice", "voice"),
            Self::Document => ("sendDocument", "document"),
        }
    }

    /// The album that files of this kind go into: photos and videos go together, audio files and documents among themselves, and
    /// voice messages into none (<https://core.telegram.org/bots/api#sendmediagroup>).
    const fn album(self) -> Option<&'static str> {
        match self {
            Self::Photo | Self::Video => Some("media"),
            Self::Audio => Some("audio"),
            Self::Document => Some("documents"),
            Self::Voice => None,
        }
    }
}

/// The album of a file. Files that Telegram fetches have one of their own: if one of them cannot be fetched, all other files are sent. A
/// file that Telegram is sure to refuse has none.
pub(crate) fn album_of(file: &Attachment, max_upload: usize) -> Option<&'static str> {
    let size = file_size(&file.url);
    let album = MediaKind::of(&file.media_type, size).album();
    if files::is_on_the_web(&file.url) {
        return album.filter(|album| *album == "media").map(|_| "media on the web");
    }
    let is_taken = size.map_or_else(|| file_id(&file.url).is_some(), |size| size <= max_upload);
    album.filter(|_| is_taken)
}

/// Where a file's bytes are.
enum Source<'a> {
    /// Telegram has them or fetches them: a file id or a URL.
    Named(&'a str),
    /// The gateway uploads them.
    Bytes(Vec<u8>),
}

impl<'a> Source<'a> {
    fn of(file: &'a Attachment, limit: usize) -> Result<Self, DeliveryError> {
        if let Some(id) = file_id(&file.url) {
            return Ok(Self::Named(id));
        }
        if files::is_on_the_web(&file.url) {
            return Ok(Self::Named(&file.url));
        }
        let bytes = files::inline(&file.url, limit);
        bytes.map(Self::Bytes).map_err(|why| DeliveryError::Refused(format!("`{}` cannot be sent: {why}", file.name)))
    }

    fn size(&self) -> Option<usize> {
        match self {
            Self::Named(_) => None,
            Self::Bytes(bytes) => Some(bytes.len()),
        }
    }
}

impl Sending<'_> {
    /// Sends files by their media types, several as an album. If Telegram rejects them, sends them as documents, and then as links.
    /// If their topic is closed, sends them to the chat.
    pub(super) async fn send_files(
        &self,
        attachments: &[Attachment],
        text: &str,
        reply: Option<ReplyParameters>,
    ) -> Result<Receipt, DeliveryError> {
        if attachments.len() > FILES_PER_MESSAGE {
            return Err(DeliveryError::Unsupported("too many files in one message".to_owned()));
        }
        let limit = self.telegram.options.max_upload.bytes();
        let sources = attachments.iter().map(|file| Source::of(file, limit)).collect::<Result<Vec<_>, _>>()?;
        let (mut place, mut caption) = (place(&self.address, reply.as_ref()), caption_fields(text));
        let mut refused = None;
        for kinds in forms(attachments, &sources) {
            let sent = loop {
                let album = Album { attachments, sources: &sources, kinds: &kinds, caption: &caption };
                let sent = self.send_as(&album, &place).await;
                if is_refused(&sent, Refusal::is_about_entities) && caption.remove("caption_entities").is_some() {
                    continue;
                }
                if is_refused(&sent, Refusal::is_about_topic) && place.remove("message_thread_id").is_some() {
                    // A reply would go to the topic of the message that it replies to.
                    place.remove("reply_parameters");
                    continue;
                }
                break sent;
            };
            match sent {
                Ok(sent) => return self.receipt_of(&sent, attachments, text),
                Err(ApiError::Refused(refusal)) if refusal.is_about_file() => refused = Some(refusal),
                Err(error) => return Err(self.classify(error, Repeat::Duplicates)),
            }
        }
        if attachments.iter().all(|file| files::is_on_the_web(&file.url)) {
            // The person may be able to fetch the files even if Telegram could not.
            let links = attachments.iter().map(link).collect::<Vec<_>>().join("\n");
            let gap = if text.is_empty() { "" } else { "\n\n" };
            let mut payload = self.message(format(&format!("{text}{gap}{links}")));
            payload.reply_parameters = reply;
            return self.send_message(payload, Repeat::Duplicates).await;
        }
        let names = attachments.iter().map(|file| format!("`{}`", file.name)).collect::<Vec<_>>().join(", ");
        let why = refused.as_ref().map(Refusal::to_string).unwrap_or_default();
        Err(DeliveryError::Refused(format!("Telegram rejected {names}: {why}")))
    }

    /// The receipt of sent files. The first message has the text.
    fn receipt_of(
        &self,
        sent: &[SentMessage],
        attachments: &[Attachment],
        text: &str,
    ) -> Result<Receipt, DeliveryError> {
        for (index, (message, file)) in sent.iter().zip(attachments).enumerate() {
            let is_captioned = index == 0 && !text.trim().is_empty();
            self.note_sent(message.message_id, if is_captioned { text } else { &file.name });
        }
        let receipt = Receipt::of_album(sent.iter().map(|message| message.message_id.to_string()));
        receipt.ok_or_else(|| DeliveryError::Unknown("the response names no message".to_owned()))
    }

    async fn send_as(&self, album: &Album<'_>, place: &Parameters) -> Result<Vec<SentMessage>, ApiError> {
        let mut parameters = place.clone();
        if let [kind] = album.kinds {
            let (method, field) = kind.method();
            if let Source::Named(name) = album.sources[0] {
                parameters.insert(field.to_owned(), json!(name));
            }
            parameters.extend(album.caption.clone());
            let uploads = album.uploads(|_| field.to_owned());
            return Ok(vec![self.call_with_files(method, parameters, uploads).await?]);
        }
        let mut media = Vec::with_capacity(album.kinds.len());
        for (index, kind) in album.kinds.iter().enumerate() {
            let mut item = Parameters::new();
            item.insert("type".to_owned(), json!(kind.method().1));
            item.insert("media".to_owned(), album.reference(index));
            if index == 0 {
                item.extend(album.caption.clone());
            }
            media.push(item);
        }
        parameters.insert("media".to_owned(), json!(media));
        self.call_with_files("sendMediaGroup", parameters, album.uploads(part_name)).await
    }

    /// Calls a method: with a form if there is something to upload.
    async fn call_with_files<T: DeserializeOwned>(
        &self,
        method: &str,
        parameters: Parameters,
        uploads: Vec<(String, Part)>,
    ) -> Result<T, ApiError> {
        let api = &self.telegram.api;
        if uploads.is_empty() {
            return api.ask(method, &parameters, FILE_TIMEOUT).await;
        }
        let mut form = Form::new();
        for (name, value) in parameters {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            form = form.text(name, value);
        }
        for (name, part) in uploads {
            form = form.part(name, part);
        }
        api.upload(method, form).await
    }
}

/// The files of one call.
struct Album<'a> {
    attachments: &'a [Attachment],
    sources: &'a [Source<'a>],
    kinds: &'a [MediaKind],
    caption: &'a Parameters,
}

impl Album<'_> {
    /// The value that stands for a file among several.
    fn reference(&self, index: usize) -> Value {
        match self.sources[index] {
            Source::Named(name) => json!(name),
            Source::Bytes(_) => json!(format!("attach://{}", part_name(index))),
        }
    }

    /// The parts of the form, with their names.
    fn uploads(&self, name: impl Fn(usize) -> String) -> Vec<(String, Part)> {
        let files = self.attachments.iter().zip(self.sources).enumerate();
        let part_of = |(index, (file, source)): (usize, (&Attachment, &Source<'_>))| match source {
            Source::Named(_) => None,
            Source::Bytes(bytes) => Some((name(index), upload(file, bytes))),
        };
        files.filter_map(part_of).collect()
    }
}

/// The name of the part that uploads a file of an album.
fn part_name(index: usize) -> String {
    format!("file{index}")
}

fn upload(file: &Attachment, bytes: &[u8]) -> Part {
    let part = || Part::bytes(bytes.to_vec()).file_name(file.name.clone());
    // An invalid media type is left out: Telegram inspects the bytes.
    part().mime_str(&file.media_type).unwrap_or_else(|_| part())
}

/// The kinds that files are sent as, one after the other until Telegram takes them: their own, if these go together, and documents.
fn forms(attachments: &[Attachment], sources: &[Source<'_>]) -> Vec<Vec<MediaKind>> {
    let kind_of = |(file, source): (&Attachment, &Source<'_>)| MediaKind::of(&file.media_type, source.size());
    let own: Vec<_> = attachments.iter().zip(sources).map(kind_of).collect();
    let documents = vec![MediaKind::Document; own.len()];
    let go_together = own.len() == 1 || own.iter().all(|kind| kind.album().is_some() && kind.album() == own[0].album());
    if own == documents || !go_together { vec![documents] } else { vec![own, documents] }
}

/// A link to a file on the web, in Markdown.
fn link(file: &Attachment) -> String {
    format!("📎 [{}](<{}>)", file.name.replace(['[', ']'], ""), file.url)
}

/// The parameters that say where a message goes.
fn place(address: &Address, reply: Option<&ReplyParameters>) -> Parameters {
    let mut parameters = Map::from_iter([("chat_id".to_owned(), json!(address.chat))]);
    if let Some(thread) = address.thread {
        parameters.insert("message_thread_id".to_owned(), json!(thread));
    }
    if let Some(reply) = reply {
        parameters.insert("reply_parameters".to_owned(), json!(reply));
    }
    parameters
}

/// The parameters of a caption; none without a text.
fn caption_fields(text: &str) -> Parameters {
    let mut fields = Map::new();
    if !text.trim().is_empty() {
        let formatted = caption(text);
        fields.insert("caption".to_owned(), json!(formatted.text));
        if !formatted.entities.is_empty() {
            fields.insert("caption_entities".to_owned(), json!(formatted.entities));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn file(url: &str) -> Attachment {
        Attachment { name: "a.png".to_owned(), media_type: "image/png".to_owned(), url: url.to_owned() }
    }

    #[rstest]
    #[case("image/png", None, MediaKind::Photo)]
    #[case("image/jpeg; q=1", Some(5), MediaKind::Photo)]
    #[case("image/png", Some(11 << 20), MediaKind::Document)]
    #[case("image/svg+xml", None, MediaKind::Document)]
    #[case("audio/ogg", None, MediaKind::Voice)]
    #[case("audio/mpeg", None, MediaKind::Audio)]
    #[case("video/mp4", None, MediaKind::Video)]
    #[case("text/plain", None, MediaKind::Document)]
    fn a_file_looks_like_what_it_is(
        #[case] media_type: &str,
        #[case] size: Option<usize>,
        #[case] expected: MediaKind,
    ) {
        assert_eq!(MediaKind::of(media_type, size), expected);
    }

    #[rstest]
    #[case("image/png", "data:image/png;base64,aGVsbG8=", Some("media"))]
    #[case("video/mp4", "data:video/mp4;base64,aGVsbG8=", Some("media"))]
    #[case("image/png", "data:image/png;base64,dG9vIGxhcmdlIGEgZmlsZQ==", None)]
    #[case("image/png", "telegram:abc", Some("media"))]
    #[case("image/png", "https://example.org/a.png", Some("media on the web"))]
    #[case("text/plain", "https://example.org/a.txt", None)]
    #[case("text/plain", "data:text/plain;base64,aGVsbG8=", Some("documents"))]
    #[case("audio/mpeg", "data:audio/mpeg;base64,aGVsbG8=", Some("audio"))]
    #[case("audio/ogg", "data:audio/ogg;base64,aGVsbG8=", None)]
    #[case("image/png", "file:///etc/passwd", None)]
    fn files_that_telegram_shows_together_are_an_album(
        #[case] media_type: &str,
        #[case] url: &str,
        #[case] expected: Option<&str>,
    ) {
        let file = Attachment { media_type: media_type.to_owned(), ..file(url) };

        assert_eq!(album_of(&file, 10), expected);
    }

    #[test]
    fn what_does_not_go_together_is_sent_as_documents() {
        use MediaKind::{Document, Photo, Video, Voice};
        let forms_of = |types: &[&str]| {
            let file = |media_type: &&str| Attachment { media_type: (*media_type).to_owned(), ..file("telegram:abc") };
            let files: Vec<_> = types.iter().map(file).collect();
            let sources: Vec<_> = files.iter().map(|file| Source::of(file, 100).expect("a source")).collect();
            forms(&files, &sources)
        };

        assert_eq!(forms_of(&["image/png", "video/mp4"]), [vec![Photo, Video], vec![Document; 2]]);
        assert_eq!(forms_of(&["image/png", "text/plain"]), [vec![Document; 2]]);
        assert_eq!(forms_of(&["audio/ogg", "audio/ogg"]), [vec![Document; 2]]);
        assert_eq!(forms_of(&["audio/ogg"]), [vec![Voice], vec![Document]]);
        assert_eq!(forms_of(&["text/plain"]), [vec![Document]]);
    }

    #[test]
    fn nothing_is_opened_that_an_agent_names() {
        for url in ["file:///etc/passwd", "/etc/passwd", "ftp://example.org/a", "data:text/plain,abc", "data:,"] {
            assert!(matches!(Source::of(&file(url), 100), Err(DeliveryError::Refused(_))), "{url}");
        }
    }
}
