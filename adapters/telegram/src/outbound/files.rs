//! Sends files.
//!
//! The bytes are on Telegram already (`telegram:…`, as in received files), in the answer itself (`data:`), or on the
//! web, where Telegram fetches them. The gateway opens no address and no path from an agent.

use rejoinder_core::{Attachment, DeliveryError, Receipt};
use rejoinder_kit::files;
use reqwest::multipart::{Form, Part};
use serde_json::{Map, Value, json};
use teloxide::types::ReplyParameters;

use super::{Address, Repeat, Sending, is_refused};
use crate::{
    api::FILE_TIMEOUT,
    errors::{ApiError, Refusal},
    format::{format, utf16_len},
    inbound::file_id,
    payload::SentMessage,
};

/// The longest caption, in UTF-16 units (<https://core.telegram.org/bots/api#sendphoto>).
const CAPTION_UNITS: usize = 1024;

/// The largest photo, in bytes (<https://core.telegram.org/bots/api#sending-files>).
const MAX_PHOTO: usize = 10 << 20;

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

    /// The method that sends the file, and the parameter that holds it.
    const fn method(self) -> (&'static str, &'static str) {
        match self {
            Self::Photo => ("sendPhoto", "photo"),
            Self::Video => ("sendVideo", "video"),
            Self::Audio => ("sendAudio", "audio"),
            Self::Voice => ("sendVoice", "voice"),
            Self::Document => ("sendDocument", "document"),
        }
    }
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
    /// Sends a file by its media type. If Telegram rejects it, sends it as a document, and then as a link. If its topic is
    /// closed, sends it to the chat.
    pub(super) async fn send_file(
        &self,
        file: &Attachment,
        caption: &str,
        reply: Option<ReplyParameters>,
    ) -> Result<Receipt, DeliveryError> {
        let source = Source::of(file, self.telegram.options.max_upload.bytes())?;
        let mut parameters = parameters(&self.address, caption, reply.as_ref())?;
        let kind = MediaKind::of(&file.media_type, source.size());
        let kinds = if kind == MediaKind::Document { vec![kind] } else { vec![kind, MediaKind::Document] };
        let mut refused = None;
        for kind in kinds {
            let mut sent = self.send_as(kind, file, &source, &parameters).await;
            if is_refused(&sent, Refusal::is_about_topic) && parameters.remove("message_thread_id").is_some() {
                // A reply would go to the topic of the message that it replies to.
                parameters.remove("reply_parameters");
                sent = self.send_as(kind, file, &source, &parameters).await;
            }
            match sent {
                Ok(sent) => {
                    self.note_sent(sent.message_id, &file.name);
                    return Ok(Receipt::of(sent.message_id.to_string()));
                }
                Err(ApiError::Refused(refusal)) if refusal.is_about_file() => refused = Some(refusal),
                Err(error) => return Err(self.classify(error, Repeat::Duplicates)),
            }
        }
        if files::is_on_the_web(&file.url) {
            // The person may be able to fetch the file even if Telegram could not.
            let gap = if caption.is_empty() { "" } else { "\n\n" };
            let name = file.name.replace(['[', ']'], "");
            let mut payload = self.message(format(&format!("{caption}{gap}📎 [{name}](<{}>)", file.url)));
            payload.reply_parameters = reply;
            return self.send_message(payload, Repeat::Duplicates).await;
        }
        let why = refused.as_ref().map(Refusal::to_string).unwrap_or_default();
        Err(DeliveryError::Refused(format!("Telegram rejected `{}`: {why}", file.name)))
    }

    async fn send_as(
        &self,
        kind: MediaKind,
        file: &Attachment,
        source: &Source<'_>,
        parameters: &Map<String, Value>,
    ) -> Result<SentMessage, ApiError> {
        let (method, field) = kind.method();
        match source {
            Source::Named(name) => {
                let mut parameters = parameters.clone();
                parameters.insert(field.to_owned(), json!(name));
                self.telegram.api.ask(method, &parameters, FILE_TIMEOUT).await
            }
            Source::Bytes(bytes) => {
                let part = Part::bytes(bytes.clone()).file_name(files::name(file));
                // An invalid media type is left out: Telegram inspects the bytes.
                let part = part
                    .mime_str(&file.media_type)
                    .unwrap_or_else(|_| Part::bytes(bytes.clone()).file_name(files::name(file)));
                let mut form = Form::new().part(field, part);
                for (name, value) in parameters {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    form = form.text(name.clone(), value);
                }
                self.telegram.api.upload(method, form).await
            }
        }
    }
}

fn parameters(
    address: &Address,
    caption: &str,
    reply: Option<&ReplyParameters>,
) -> Result<Map<String, Value>, DeliveryError> {
    let mut parameters = Map::from_iter([("chat_id".to_owned(), json!(address.chat))]);
    if let Some(thread) = address.thread {
        parameters.insert("message_thread_id".to_owned(), json!(thread));
    }
    if let Some(reply) = reply {
        parameters.insert("reply_parameters".to_owned(), json!(reply));
    }
    if !caption.trim().is_empty() {
        let formatted = format(caption);
        if utf16_len(&formatted.text) > CAPTION_UNITS {
            return Err(DeliveryError::Unsupported("the caption is too long for a file".to_owned()));
        }
        parameters.insert("caption".to_owned(), json!(formatted.text));
        if !formatted.entities.is_empty() {
            parameters.insert("caption_entities".to_owned(), json!(formatted.entities));
        }
    }
    Ok(parameters)
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

    #[test]
    fn nothing_is_opened_that_an_agent_names() {
        for url in ["file:///etc/passwd", "/etc/passwd", "ftp://example.org/a", "data:text/plain,abc", "data:,"] {
            assert!(matches!(Source::of(&file(url), 100), Err(DeliveryError::Refused(_))), "{url}");
        }
    }
}
