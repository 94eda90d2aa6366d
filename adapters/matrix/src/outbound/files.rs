//! Uploads and downloads files (<https://spec.matrix.org/latest/client-server-api/#content-repository>).

use std::{
    io::{Cursor, Read},
    time::Duration,
};

use matrix_sdk::{
    Client,
    ruma::{
        MatrixUri, MxcUri, OwnedEventId, OwnedRoomId, RoomId,
        events::room::{EncryptedFile, MediaSource},
        matrix_uri::MatrixId,
    },
};
use matrix_sdk_base::crypto::AttachmentDecryptor;
use rejoinder_core::{Attachment, DeliveryError, FetchError, json_error};
use rejoinder_kit::{calls, files};
use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{Sending, config};
use crate::{
    Matrix, Session, content, errors,
    payload::{Event, OUR_FIELD},
};

/// Timeout of a download, and of an unencrypted upload.
const FILE_TIMEOUT: Duration = Duration::from_secs(100);

/// Paths for downloads: with a token, and on servers that do not require one yet. The SDK's own download is not used
/// because it reads a file to its end, however large it is.
const DOWNLOADS: [&str; 2] = ["/_matrix/client/v1/media/download", "/_matrix/media/v3/download"];

impl Sending<'_> {
    /// The content of a message with a file. Uploads the file first, encrypted if the room is.
    pub(super) async fn file(&self, file: &Attachment, caption: &str) -> Result<Value, DeliveryError> {
        let ours = json!({ "id": self.delivery.id() });
        if files::is_on_the_web(&file.url) {
            // A file on the web is sent as a link.
            let gap = if caption.trim().is_empty() { "" } else { "\n\n" };
            let name = file.name.replace(['[', ']'], "");
            return Ok(content::text(&format!("{caption}{gap}📎 [{name}](<{}>)", file.url), &ours));
        }
        let bytes = files::inline(&file.url, self.matrix.options.max_upload.bytes())
            .map_err(|why| DeliveryError::Refused(format!("`{}` is not sent: {why}", file.name)))?;
        let size = bytes.len();
        let mime: mime::Mime = file.media_type.parse().unwrap_or(mime::APPLICATION_OCTET_STREAM);
        let name = &*file.name;
        let mut content = if caption.trim().is_empty() {
            json!({ "body": name, "m.mentions": {}, OUR_FIELD: ours })
        } else {
            content::text(caption, &ours)
        };
        content["msgtype"] = json!(msgtype(&mime));
        content["filename"] = json!(name);
        content["info"] = json!({ "mimetype": mime.essence_str(), "size": size });
        let encrypted =
            self.room.latest_encryption_state().await.map_err(|error| self.classify(errors::sdk(&error)))?;
        let client = &self.session.client;
        if encrypted.is_encrypted() {
            let mut bytes = Cursor::new(bytes);
            let uploaded = client.upload_encrypted_file(&mut bytes).with_request_config(config(FILE_TIMEOUT)).await;
            let file = uploaded.map_err(|error| self.classify(errors::sdk(&error)))?;
            content["file"] = serde_json::to_value(file).unwrap_or_default();
        } else {
            let uploaded = client.media().upload(&mime, bytes, Some(config(FILE_TIMEOUT))).await;
            let uploaded = uploaded.map_err(|error| self.classify(errors::sdk(&error)))?;
            content["url"] = json!(uploaded.content_uri);
        }
        Ok(content)
    }
}

impl Matrix {
    /// Downloads an inbound file of at most `limit` bytes.
    pub(crate) async fn download(
        &self,
        session: &Session,
        file: &Attachment,
        limit: usize,
    ) -> Result<Vec<u8>, FetchError> {
        let limit = limit.min(self.options.max_attachment.bytes());
        let (room, event) = event_of_url(&file.url).ok_or_else(|| FetchError::NotOurs(file.name.clone()))?;
        let failed = |why: String| FetchError::Failed(why);
        let room = session.client.get_room(&room).ok_or_else(|| failed("the room is not joined".to_owned()))?;
        let event = room.event(&event, None).await.map_err(|error| failed(error.to_string()))?;
        let event: Event =
            serde_json::from_str(event.raw().json().get()).map_err(|error| failed(json_error(&error)))?;
        let message = event.message().ok_or_else(|| failed("its event is not a readable message".to_owned()))?;
        if message.info.size.is_some_and(|size| size > limit as u64) {
            return Err(FetchError::TooLarge { limit });
        }
        let source = media_source(&event.content).ok_or_else(|| failed("its event has no file".to_owned()))?;
        let (uri, key) = match source {
            MediaSource::Plain(uri) => (uri, None),
            MediaSource::Encrypted(file) => (file.url.clone(), Some(*file)),
        };
        let fetched = tokio::time::timeout(FILE_TIMEOUT, self.fetch_stored(&session.client, &uri, limit)).await;
        let bytes = fetched.map_err(|_| failed("timed out".to_owned()))??;
        match key {
            Some(key) => decrypted(&bytes, key).map_err(failed),
            None => Ok(bytes),
        }
    }

    /// Downloads a file as it is stored on the homeserver. Enforces `limit` (bytes) whatever size its event claims.
    async fn fetch_stored(&self, client: &Client, uri: &MxcUri, limit: usize) -> Result<Vec<u8>, FetchError> {
        let failed = |why: String| FetchError::Failed(why);
        let (server, media) = uri.parts().map_err(|error| failed(error.to_string()))?;
        let token = SecretString::from(client.access_token().unwrap_or_default());
        let mut response = None;
        for path in DOWNLOADS {
            let mut url = client.homeserver();
            url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.push(server.as_str()).push(media);
            }
            let sent = self.http.get(url).bearer_auth(token.expose_secret()).send().await;
            let sent = sent.map_err(|error| failed(errors::transport(&error)))?;
            let is_unknown = sent.status() == StatusCode::NOT_FOUND;
            response = Some(sent);
            if !is_unknown {
                break;
            }
        }
        let Some(response) = response.filter(|response| response.status().is_success()) else {
            return Err(failed("the homeserver did not return the file".to_owned()));
        };
        let bytes = calls::collect(response, limit, &token).await.map_err(|error| failed(error.to_string()))?;
        bytes.ok_or(FetchError::TooLarge { limit })
    }
}

fn decrypted(bytes: &[u8], key: EncryptedFile) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(bytes);
    let mut reader = AttachmentDecryptor::new(&mut bytes, key.into()).map_err(|error| error.to_string())?;
    let mut decrypted = Vec::new();
    reader.read_to_end(&mut decrypted).map_err(|error| format!("cannot decrypt the file: {error}"))?;
    Ok(decrypted)
}

/// The event that an attachment's URL names.
fn event_of_url(url: &str) -> Option<(OwnedRoomId, OwnedEventId)> {
    match MatrixUri::parse(url).ok()?.id() {
        MatrixId::Event(room, event) => Some((RoomId::parse(room.as_str()).ok()?, event.clone())),
        _ => None,
    }
}

fn media_source(content: &Value) -> Option<MediaSource> {
    // After an edit the new file counts.
    let content = content.get("m.new_content").unwrap_or(content);
    match content.get("file") {
        Some(file) => serde_json::from_value(file.clone()).ok().map(|file| MediaSource::Encrypted(Box::new(file))),
        None => Some(MediaSource::Plain(content.get("url")?.as_str()?.into())),
    }
}

fn msgtype(mime: &mime::Mime) -> &'static str {
    match mime.type_() {
        mime::IMAGE if mime.subtype() != mime::SVG => "m.image",
        mime::AUDIO => "m.audio",
        mime::VIDEO => "m.video",
        _ => "m.file",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("image/png", "m.image")]
    #[case("image/svg+xml", "m.file")]
    #[case("audio/ogg; codecs=opus", "m.audio")]
    #[case("video/mp4", "m.video")]
    #[case("text/plain", "m.file")]
    fn a_file_is_shown_as_what_it_is(#[case] media_type: &str, #[case] expected: &str) {
        assert_eq!(msgtype(&media_type.parse().expect("a media type")), expected);
    }

    #[test]
    fn only_our_own_addresses_are_fetched() {
        assert!(event_of_url("matrix:roomid/room:example.org/e/1").is_some());
        for url in ["https://example.org/a", "matrix:u/ada:example.org", "mxc://example.org/a", ""] {
            assert!(event_of_url(url).is_none(), "{url}");
        }
    }
}
