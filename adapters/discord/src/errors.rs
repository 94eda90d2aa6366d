//! The errors of a call, and what a refusal means.

use std::time::Duration;

use rejoinder_core::{DeliveryError, Scope};
use rejoinder_kit::calls::CallError;

/// The error codes that are handled
/// (<https://discord.com/developers/docs/topics/opcodes-and-status-codes#json>).
pub(crate) mod code {
    pub(crate) const UNKNOWN_CHANNEL: u64 = 10003;
    pub(crate) const UNKNOWN_MESSAGE: u64 = 10008;
    pub(crate) const UNKNOWN_WEBHOOK: u64 = 10015;
    pub(crate) const UNKNOWN_INTERACTION: u64 = 10062;
    pub(crate) const MAX_EDITS_OF_OLD_MESSAGE: u64 = 30046;
    pub(crate) const ALREADY_ACKNOWLEDGED: u64 = 40060;
    pub(crate) const MISSING_ACCESS: u64 = 50001;
    pub(crate) const CANNOT_EDIT_ANOTHERS: u64 = 50005;
    pub(crate) const NO_TEXT_CHANNEL: u64 = 50008;
    pub(crate) const INVALID_WEBHOOK_TOKEN: u64 = 50027;
    pub(crate) const INVALID_FORM: u64 = 50035;
    pub(crate) const THREAD_ARCHIVED: u64 = 50083;
    pub(crate) const REPLY_NEEDS_HISTORY: u64 = 160_002;
    pub(crate) const THREAD_EXISTS: u64 = 160_004;
}

/// Why a call failed. Never contains a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    NotWritten(String),
    /// The request was written, but there is no readable response.
    #[error("{0}")]
    NoAnswer(String),
    /// The request was not made, because a known limit blocks it.
    #[error("held back: {}", .0.why)]
    Held(Limit),
    /// The server answered 429.
    #[error("{}", .0.why)]
    Limited(Limit),
    /// The message to reply to cannot be replied to.
    #[error("{0}")]
    ReplyGone(Refusal),
    #[error("{0}")]
    Refused(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) retry_after: Duration,
    pub(crate) scope: Scope,
    pub(crate) why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} {message} ({code}){details}")]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Discord's own code; 0 for none.
    pub(crate) code: u64,
    pub(crate) message: String,
    /// The invalid fields, as JSON after a blank; empty for none.
    pub(crate) details: String,
}

impl Refusal {
    pub(crate) const fn of(status: u16, message: String) -> Self {
        Self { status, code: 0, message, details: String::new() }
    }

    /// Discord does not know the bot's token. An invalid interaction token has a code of its own.
    pub(crate) const fn is_about_token(&self) -> bool {
        self.status == 401 && self.code != code::INVALID_WEBHOOK_TOKEN
    }

    /// The message can no longer be edited.
    pub(crate) const fn is_gone(&self) -> bool {
        matches!(
            self.code,
            code::UNKNOWN_MESSAGE | code::CANNOT_EDIT_ANOTHERS | code::THREAD_ARCHIVED | code::MAX_EDITS_OF_OLD_MESSAGE
        )
    }

    /// The message to reply to cannot be replied to. Spacebar answers 404 without a code of its own.
    pub(crate) fn is_about_reply(&self) -> bool {
        matches!(self.code, code::REPLY_NEEDS_HISTORY | code::UNKNOWN_MESSAGE)
            || (self.status == 404 && self.message == "Message could not be found")
            || (self.code == code::INVALID_FORM && self.details.contains("message_reference"))
    }

    /// An interaction's token is invalid or has expired.
    pub(crate) const fn is_about_interaction(&self) -> bool {
        matches!(
            self.code,
            code::UNKNOWN_WEBHOOK | code::UNKNOWN_INTERACTION | code::INVALID_WEBHOOK_TOKEN | code::UNKNOWN_MESSAGE
        )
    }

    /// The channel does not exist or is closed to us.
    pub(crate) const fn is_about_channel(&self) -> bool {
        matches!(self.code, code::UNKNOWN_CHANNEL | code::MISSING_ACCESS)
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
            Self::NotWritten(_) | Self::NoAnswer(_) | Self::Held(_) | Self::Limited(_) | Self::ReplyGone(_) => None,
        }
    }

    /// How long to wait before the next call, if the call was limited.
    pub(crate) const fn pause(&self) -> Option<Duration> {
        match self {
            Self::Held(limit) | Self::Limited(limit) => Some(limit.retry_after),
            Self::NotWritten(_) | Self::NoAnswer(_) | Self::ReplyGone(_) | Self::Refused(_) => None,
        }
    }

    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NotWritten(_) | Self::NoAnswer(_) | Self::Held(_) | Self::Limited(_) => true,
            Self::ReplyGone(refusal) | Self::Refused(refusal) => refusal.status >= 500,
        }
    }
}

impl From<ApiError> for DeliveryError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::NotWritten(detail) => Self::NotSent { retry_after: None, detail },
            ApiError::NoAnswer(detail) => Self::Unknown(detail),
            ApiError::Held(limit) | ApiError::Limited(limit) => {
                Self::Limited { retry_after: limit.retry_after, scope: limit.scope, detail: limit.why }
            }
            ApiError::ReplyGone(refusal) => Self::ReplyGone(refusal.to_string()),
            ApiError::Refused(refusal) if refusal.is_about_token() => Self::Unauthorized(refusal.to_string()),
            // The server may have done it before it failed.
            ApiError::Refused(refusal) if refusal.status >= 500 => Self::Unknown(refusal.to_string()),
            ApiError::Refused(refusal) => Self::Refused(refusal.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn refused(status: u16, code: u64) -> DeliveryError {
        ApiError::Refused(Refusal { code, ..Refusal::of(status, "no".to_owned()) }).into()
    }

    /// A18.
    #[rstest]
    #[case(401, 0, "unauthorized")]
    #[case(401, code::INVALID_WEBHOOK_TOKEN, "refused")]
    #[case(403, code::MISSING_ACCESS, "refused")]
    #[case(403, 50013, "refused")]
    #[case(403, 50007, "refused")]
    #[case(404, code::UNKNOWN_CHANNEL, "refused")]
    #[case(400, code::INVALID_FORM, "refused")]
    #[case(500, 0, "unknown")]
    #[case(502, 0, "unknown")]
    fn a_refusal_is_named_by_what_to_do_next(#[case] status: u16, #[case] code: u64, #[case] name: &str) {
        assert_eq!(refused(status, code).as_str(), name);
    }

    #[test]
    fn a_reply_that_is_refused_is_told_from_other_invalid_forms() {
        let about = |details: &str| {
            let details = details.to_owned();
            Refusal { code: code::INVALID_FORM, details, ..Refusal::of(400, String::new()) }.is_about_reply()
        };

        assert!(about(r#" {"message_reference":{"_errors":[{"code":"REPLIES_UNKNOWN_MESSAGE"}]}}"#));
        assert!(!about(r#" {"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH"}]}}"#));
    }

    #[test]
    fn what_was_not_written_was_not_sent_and_what_was_not_answered_is_unknown() {
        assert_eq!(DeliveryError::from(ApiError::NotWritten(String::new())).as_str(), "not_sent");
        assert_eq!(DeliveryError::from(ApiError::NoAnswer(String::new())).as_str(), "unknown");
    }
}
