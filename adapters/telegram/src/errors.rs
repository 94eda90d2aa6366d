//! How a call fails, and what a refusal means.

use std::time::Duration;

use rejoinder_kit::calls::CallError;

/// How a call fails. Nothing in it says the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request was not written.
    #[error("{0}")]
    NotWritten(String),
    /// The request was written, and there is no answer that can be read.
    #[error("{0}")]
    NoAnswer(String),
    /// The server answered that it did not do it.
    #[error("{0}")]
    Refused(Refusal),
}

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} {description}")]
pub(crate) struct Refusal {
    /// An HTTP status.
    pub(crate) code: u16,
    /// In the server's words.
    pub(crate) description: String,
    /// For how long we are limited.
    pub(crate) retry_after: Option<Duration>,
    /// The new id of the chat.
    pub(crate) migrate_to: Option<i64>,
    /// A Bot API server said it, and not something before it.
    pub(crate) is_telegrams: bool,
}

/// How long we are limited when the server does not say.
const DEFAULT_LIMIT: Duration = Duration::from_secs(5);

impl Refusal {
    pub(crate) const fn of(code: u16, description: String) -> Self {
        Self { code, description, retry_after: None, migrate_to: None, is_telegrams: false }
    }

    /// For how long we are limited.
    pub(crate) fn limit(&self) -> Duration {
        let in_words = || self.description.rsplit_once("retry after ")?.1.trim().parse().ok().map(Duration::from_secs);
        self.retry_after.or_else(in_words).unwrap_or(DEFAULT_LIMIT)
    }

    /// Whether the description has one of these in it, in whatever case.
    fn says(&self, phrases: &[&str]) -> bool {
        let description = self.description.to_lowercase();
        phrases.iter().any(|phrase| description.contains(&phrase.to_lowercase()))
    }

    /// The message reads like that already.
    pub(crate) fn is_not_modified(&self) -> bool {
        self.code == 400 && self.says(&["message is not modified"])
    }

    /// The message to change cannot be changed any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.code == 400
            && self.says(&[
                "message to edit not found",
                "message can't be edited",
                "MESSAGE_ID_INVALID",
                "there is no text in the message to edit",
            ])
    }

    /// The message to remove is gone already.
    pub(crate) fn is_removed(&self) -> bool {
        self.code == 400 && self.says(&["message to delete not found", "MESSAGE_ID_INVALID"])
    }

    /// The entities over the text are not understood.
    pub(crate) fn is_about_entities(&self) -> bool {
        self.code == 400 && self.says(&["can't parse entit", "can't parse messageentit", "ENTITY_", "ENTITIES_"])
    }

    /// The message that was to be replied to is gone.
    pub(crate) fn is_about_reply(&self) -> bool {
        self.code == 400 && self.says(&["message to be replied not found", "REPLY_MESSAGE_ID_INVALID"])
    }

    /// The file is not taken, as it is or at all.
    pub(crate) fn is_about_file(&self) -> bool {
        self.code == 413
            || (self.code == 400
                && self.says(&[
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

    /// The token is none that the server knows. For one that could never be one it says that there is no such
    /// address, as it does for a method that it does not know: `is_method_known` tells them apart.
    pub(crate) const fn is_about_token(&self, is_method_known: bool) -> bool {
        self.code == 401 || (self.code == 404 && self.is_telegrams && is_method_known)
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
    /// What the server said, if it said anything.
    pub(crate) const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::NotWritten(_) | Self::NoAnswer(_) => None,
        }
    }
}
