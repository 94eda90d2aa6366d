//! The errors of a call, and what a refusal means.

use std::time::Duration;

use rejoinder_core::MAX_RETRY_AFTER;
use rejoinder_kit::calls::CallError;

/// Why a call failed. Never contains the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    NotWritten(String),
    /// The request was written, but there is no readable response.
    #[error("{0}")]
    NoAnswer(String),
    #[error("{0}")]
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} {description}")]
pub(crate) struct Refusal {
    /// Telegram's `error_code`, or the HTTP status.
    pub(crate) code: u16,
    pub(crate) description: String,
    pub(crate) retry_after: Option<Duration>,
    /// The chat's new id, if the group became a supergroup.
    pub(crate) migrate_to: Option<i64>,
    /// Sent by a Bot API server, not by a proxy in front of it.
    pub(crate) is_from_telegram: bool,
}

/// The pause after a 429 without `retry_after`.
const DEFAULT_LIMIT: Duration = Duration::from_secs(5);

impl Refusal {
    pub(crate) const fn of(code: u16, description: String) -> Self {
        Self { code, description, retry_after: None, migrate_to: None, is_from_telegram: false }
    }

    /// How long to wait after a 429, for at most [`MAX_RETRY_AFTER`]. Reads the description if there is no `retry_after`.
    pub(crate) fn limit(&self) -> Duration {
        let in_words = || self.description.rsplit_once("retry after ")?.1.trim().parse().ok().map(Duration::from_secs);
        self.retry_after.or_else(in_words).unwrap_or(DEFAULT_LIMIT).min(MAX_RETRY_AFTER)
    }

    /// Whether the description contains one of `phrases`, in any case.
    fn mentions(&self, phrases: &[&str]) -> bool {
        let description = self.description.to_lowercase();
        phrases.iter().any(|phrase| description.contains(&phrase.to_lowercase()))
    }

    pub(crate) fn is_not_modified(&self) -> bool {
        self.code == 400 && self.mentions(&["message is not modified"])
    }

    /// The message can no longer be edited.
    pub(crate) fn is_gone(&self) -> bool {
        self.code == 400
            && self.mentions(&[
                "message to edit not found",
                "message can't be edited",
                "MESSAGE_ID_INVALID",
                "there is no text in the message to edit",
            ])
            || self.is_about_topic()
    }

    /// The message to delete no longer exists.
    pub(crate) fn is_removed(&self) -> bool {
        self.code == 400 && self.mentions(&["message to delete not found", "MESSAGE_ID_INVALID"])
    }

    /// A proxy in front of the server could not hand it the request: 502 and 503, with a page of the proxy's own. A 504 says that
    /// the server was asked (`docs/decisions/edge-pages.md`).
    pub(crate) const fn is_edge_page(&self) -> bool {
        !self.is_from_telegram && matches!(self.code, 502 | 503)
    }

    pub(crate) fn is_about_entities(&self) -> bool {
        self.code == 400 && self.mentions(&["can't parse entit", "can't parse messageentit", "ENTITY_", "ENTITIES_"])
    }

    /// The message to reply to no longer exists.
    pub(crate) fn is_about_reply(&self) -> bool {
        self.code == 400 && self.mentions(&["message to be replied not found", "REPLY_MESSAGE_ID_INVALID"])
    }

    /// The topic is closed or was deleted.
    pub(crate) fn is_about_topic(&self) -> bool {
        self.code == 400 && self.mentions(&["message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED"])
    }

    /// The file is rejected, in this form or entirely.
    pub(crate) fn is_about_file(&self) -> bool {
        self.code == 413
            || (self.code == 400
                && self.mentions(&[
                    "wrong file identifier",
                    "wrong file id",
                    "wrong remote file",
                    "invalid file id",
                    "failed to get http url content",
                    "wrong type of the web page content",
                    "wrong http url",
                    "file is too big",
                    "file must be non-empty",
                    "can't use file of type",
                    "can't use the media of the specified type in the album",
                    "can't be mixed with other media types",
                    "type of file mismatch",
                    "image_process_failed",
                    "photo_invalid_dimensions",
                    "photo_ext_invalid",
                    "voice_messages_forbidden",
                    "webpage_curl_failed",
                    "webpage_media_empty",
                    "media_empty",
                    "external_url_invalid",
                ]))
    }

    /// The server does not know the token. It answers 404 to a malformed token, but also to an unknown method:
    /// `is_method_known` tells the two apart.
    pub(crate) const fn is_about_token(&self, is_method_known: bool) -> bool {
        self.code == 401 || (self.code == 404 && self.is_from_telegram && is_method_known)
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotWritten(detail) => Self::NotWritten(detail),
            CallError::NoAnswer(detail) => Self::NoAnswer(detail),
        }
    }
}

impl ApiError {
    pub(crate) const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::NotWritten(_) | Self::NoAnswer(_) => None,
        }
    }
}
