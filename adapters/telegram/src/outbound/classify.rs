//! Maps a failed call to the delivery's error, which says what to do next.

use rejoinder_core::DeliveryError;

use super::address::Address;
use crate::{Telegram, errors::ApiError};

/// What a repeated call would show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// A second message.
    Duplicates,
    /// The same state.
    Idempotent,
}

impl Telegram {
    pub(super) fn classify(&self, address: &Address, error: ApiError, repeat: Repeat) -> DeliveryError {
        let refusal = match error {
            ApiError::NotWritten(detail) => return DeliveryError::NotSent { retry_after: None, detail },
            ApiError::NoAnswer(detail) => return DeliveryError::Unknown(detail),
            ApiError::Refused(refusal) => refusal,
        };
        let detail = refusal.to_string();
        if let Some(chat) = refusal.migrate_to {
            return DeliveryError::Moved { chat: chat.to_string() };
        }
        if refusal.is_about_token(false) {
            return DeliveryError::Unauthorized(detail);
        }
        match refusal.code {
            429 => {
                let retry_after = refusal.limit();
                let scope = self.limited.scope(address.number, retry_after, self.clock.now());
                DeliveryError::Limited { retry_after, scope, detail }
            }
            _ if refusal.is_about_reply() => DeliveryError::ReplyGone(detail),
            // Probably not sent: a proxy in front of the server answered.
            _ if refusal.is_edge_page() => DeliveryError::NotSent { retry_after: None, detail },
            // The server accepted the request and then failed, so the message may have been sent.
            500.. if repeat == Repeat::Duplicates => DeliveryError::Unknown(detail),
            // A Bot API server does not answer a known method like this: the address leads elsewhere, or the server failed.
            300..=399 | 404 | 405 | 408 | 421 | 500.. => DeliveryError::NotSent { retry_after: None, detail },
            // A proxy does not let us through. What it says of a message's size holds.
            _ if !refusal.is_from_telegram && refusal.code != 413 => {
                DeliveryError::NotSent { retry_after: None, detail }
            }
            _ => DeliveryError::Refused(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rejoinder_core::{ChannelId, ConversationRef, Scope};
    use rstest::rstest;

    use super::*;
    use crate::errors::Refusal;

    fn classified(code: u16, description: &str, repeat: Repeat) -> DeliveryError {
        let refusal = Refusal { is_from_telegram: true, ..Refusal::of(code, description.to_owned()) };
        classify(ApiError::Refused(refusal), repeat)
    }

    fn classify(error: ApiError, repeat: Repeat) -> DeliveryError {
        let bot = crate::tests::bot("http://127.0.0.1:1");
        let conversation = ConversationRef::new(ChannelId::new("telegram", "main"), "42");
        bot.classify(&Address::of(&conversation).expect("a chat"), error, repeat)
    }

    /// D6, H4.
    #[rstest]
    #[case(400, "Bad Request: chat not found", Repeat::Duplicates, "refused")]
    #[case(400, "Bad Request: message thread not found", Repeat::Duplicates, "refused")]
    #[case(400, "Bad Request: message to be replied not found", Repeat::Duplicates, "reply_gone")]
    #[case(403, "Forbidden: bot was blocked by the user", Repeat::Duplicates, "refused")]
    #[case(403, "Forbidden: bot was kicked from the supergroup chat", Repeat::Idempotent, "refused")]
    #[case(400, "Bad Request: REACTION_INVALID", Repeat::Idempotent, "refused")]
    #[case(401, "Unauthorized", Repeat::Duplicates, "unauthorized")]
    #[case(429, "Too Many Requests: retry after 3", Repeat::Duplicates, "limited")]
    #[case(404, "Not Found", Repeat::Duplicates, "not_sent")]
    #[case(500, "Internal Server Error", Repeat::Duplicates, "unknown")]
    #[case(502, "Bad Gateway", Repeat::Duplicates, "unknown")]
    #[case(502, "Bad Gateway", Repeat::Idempotent, "not_sent")]
    fn a_refusal_says_what_to_do_next(
        #[case] code: u16,
        #[case] description: &str,
        #[case] repeat: Repeat,
        #[case] expected: &str,
    ) {
        assert_eq!(classified(code, description, repeat).as_str(), expected);
    }

    /// D7. As docs/decisions/edge-pages.md decides.
    #[rstest]
    #[case(502, "not_sent")]
    #[case(503, "not_sent")]
    #[case(504, "unknown")]
    #[case(500, "unknown")]
    #[case(400, "not_sent")]
    #[case(402, "not_sent")]
    #[case(403, "not_sent")]
    #[case(413, "refused")]
    fn a_page_of_a_proxy_that_did_not_reach_the_server_says_that_nothing_was_sent(
        #[case] code: u16,
        #[case] expected: &str,
    ) {
        let page = Refusal::of(code, format!("the server answered {code}"));

        assert_eq!(classify(ApiError::Refused(page), Repeat::Duplicates).as_str(), expected);
    }

    #[test]
    fn a_limit_has_its_time_and_its_chat() {
        assert_eq!(
            classified(429, "Too Many Requests: retry after 3", Repeat::Duplicates),
            DeliveryError::Limited {
                retry_after: Duration::from_secs(3),
                scope: Scope::Conversation,
                detail: "429 Too Many Requests: retry after 3".to_owned()
            }
        );
    }

    /// H4. The pause of a poll is bounded in the same way.
    #[rstest]
    #[case("Too Many Requests: retry after 1000000000")]
    #[case("Too Many Requests: retry after 18446744073709551615")]
    fn a_limit_is_obeyed_for_an_hour_at_most(#[case] description: &str) {
        let limited = classified(429, description, Repeat::Duplicates);

        let hour = Duration::from_hours(1);
        assert!(matches!(limited, DeliveryError::Limited { retry_after, .. } if retry_after == hour), "{limited:?}");
    }

    #[test]
    fn a_group_that_became_a_supergroup_has_another_id() {
        let refusal = Refusal {
            migrate_to: Some(-100_123),
            ..Refusal::of(400, "Bad Request: group chat was upgraded to a supergroup chat".to_owned())
        };

        let classified = classify(ApiError::Refused(refusal), Repeat::Duplicates);

        assert_eq!(classified, DeliveryError::Moved { chat: "-100123".to_owned() });
    }

    #[rstest]
    #[case(ApiError::NotWritten(String::new()), "not_sent")]
    #[case(ApiError::NoAnswer(String::new()), "unknown")]
    fn what_was_not_written_was_not_sent(#[case] error: ApiError, #[case] expected: &str) {
        assert_eq!(classify(error, Repeat::Duplicates).as_str(), expected);
    }
}
