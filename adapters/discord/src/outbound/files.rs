//! Files: uploads the files of an answer, and downloads files that people sent.

use rejoinder_core::{Attachment, DeliveryError, FetchError, file_size};
use rejoinder_kit::files::{self, FileError};
use url::Url;

use crate::{Discord, api::Upload, capabilities::ANY_SERVERS_LIMIT, format::formatted};

/// Discord's file servers (<https://discord.com/developers/docs/reference#cdn-endpoints>).
const FILE_SERVERS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// The album of a file: one for all files, but none for a file that a server may not take, with which all would be refused.
pub(crate) fn album_of(file: &Attachment) -> Option<&'static str> {
    file_size(&file.url).is_none_or(|size| size <= ANY_SERVERS_LIMIT).then_some("files")
}

impl Discord {
    pub(crate) async fn fetch_file(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let Some(url) = self.discord_url(&attachment.url) else {
            return Err(FetchError::NotOurs(attachment.name.clone()));
        };
        let limit = limit.min(self.options.max_attachment.bytes());
        match self.api.download(&self.plain_http, url, limit).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(FetchError::TooLarge { limit }),
            Err(error) => Err(FetchError::Failed(error.to_string())),
        }
    }

    /// Parses a URL; `None` unless it leads to Discord.
    fn discord_url(&self, url: &str) -> Option<Url> {
        let url = Url::parse(url).ok()?;
        let is_from_discord = url.scheme() == "https"
            && url.port().is_none()
            && url.host_str().is_some_and(|host| FILE_SERVERS.contains(&host));
        (is_from_discord || url.origin() == self.options.api_url.origin()).then_some(url)
    }

    /// Returns the files to upload, and the lines for files that are not uploaded.
    pub(super) async fn files(&self, attachments: &[Attachment]) -> Result<(Vec<Upload>, Vec<String>), DeliveryError> {
        let (mut uploads, mut links) = (Vec::new(), Vec::new());
        for attachment in attachments {
            match self.bytes_of(attachment).await? {
                Some(bytes) => uploads.push(Upload {
                    name: attachment.name.clone(),
                    media_type: attachment.media_type.clone(),
                    bytes,
                }),
                None => links.push(file_line(attachment)),
            }
        }
        Ok((uploads, links))
    }

    /// The bytes of an answer's file; `None` if it is elsewhere or empty.
    async fn bytes_of(&self, attachment: &Attachment) -> Result<Option<Vec<u8>>, DeliveryError> {
        let limit = self.options.max_upload.bytes();
        match files::inline(&attachment.url, limit) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(FileError::Empty) => return Ok(None),
            Err(why @ FileError::TooLarge { .. }) => {
                return Err(DeliveryError::Refused(format!("`{}` cannot be sent: {why}", attachment.name)));
            }
            Err(_) => {}
        }
        match self.fetch_file(attachment, limit).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(FetchError::TooLarge { .. } | FetchError::NotOurs(_)) => Ok(None),
            // Nothing was sent yet, so a retry is safe.
            Err(FetchError::Failed(detail)) => Err(DeliveryError::NotSent { retry_after: None, detail }),
        }
    }
}

/// The line for a file: its name, with a link if it is on the web.
fn file_line(attachment: &Attachment) -> String {
    let name = attachment.name.replace(['[', ']', '\n'], " ");
    if files::is_on_the_web(&attachment.url) {
        formatted(&format!("📎 [{name}]({})", attachment.url)).into_owned()
    } else {
        format!("📎 {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(url: &str) -> Attachment {
        Attachment { name: "a/[b].txt".to_owned(), media_type: "text/plain".to_owned(), url: url.to_owned() }
    }

    #[test]
    fn a_file_that_a_server_may_not_take_is_alone() {
        let stored = |size: usize| attachment(&format!("sha256:{}?size={size}", "0".repeat(64)));

        assert_eq!(album_of(&stored(10 << 20)), Some("files"));
        assert_eq!(album_of(&attachment("https://example.org/b")), Some("files"));
        assert_eq!(album_of(&stored((10 << 20) + 1)), None);
    }

    #[test]
    fn a_file_that_stays_where_it_is_is_a_link() {
        assert_eq!(
            file_line(&attachment("https://example.org/b")),
            "📎 [a/ b .txt](https://example.org/b) (example.org)"
        );
        assert_eq!(file_line(&attachment("data:text/plain,hello")), "📎 a/ b .txt");
    }
}
