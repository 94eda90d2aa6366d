//! Looks for a message that an earlier attempt may have sent, once its nonce has expired.

use std::time::Duration;

use rejoinder_core::{Delivery, Timestamp};
use rejoinder_kit::created_at;
use serde_json::{Value, value::RawValue};

use super::{Sending, message::Outgoing};
use crate::{
    errors::ApiError,
    payload::{Message, SentMessage},
    snowflake::Snowflake,
};

/// How long a nonce is relied on. Discord promises "the past few minutes"
/// (<https://discord.com/developers/docs/resources/message#create-message>); two were observed, less the time of a call.
const NONCE_LIFETIME: Duration = Duration::from_secs(80);

/// How far Discord's clock may lag behind ours.
const MARGIN: Duration = Duration::from_secs(30);

/// How far to look back if the time of the first attempt is unknown.
const SEARCH_WINDOW: Duration = Duration::from_hours(24);

const MAX_PAGES: usize = 20;

/// The nonce of a delivery: its id in 22 characters. Discord allows 25.
pub(super) fn nonce(delivery: &Delivery) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    URL_SAFE_NO_PAD.encode(delivery.id().as_uuid().as_bytes())
}

/// When a delivery was created. `None` if the time in its id is in the future, so wrong.
fn created_until(delivery: &Delivery, now: Timestamp) -> Option<Timestamp> {
    created_at(delivery).filter(|created| *created <= now)
}

impl Sending<'_> {
    /// Looks for the message of an earlier attempt. `None` if there was none, or if the nonce still prevents a copy.
    pub(super) async fn find_earlier_attempt(
        &self,
        outgoing: &Outgoing,
        channel: Snowflake,
        reply_to: Option<Snowflake>,
    ) -> Result<Option<SentMessage>, ApiError> {
        let now = self.discord.clock.now();
        let created = created_until(self.delivery, now);
        if self.delivery.attempt() < 2 || created.is_some_and(|created| now.since(created) < NONCE_LIFETIME) {
            return Ok(None);
        }
        let since = created.unwrap_or_else(|| before(now, SEARCH_WINDOW));
        let found = self.read_back(outgoing, channel, reply_to, since).await;
        // Until the channel was read, the message may be there, so the result is unknown.
        found.map_err(|error| match error {
            ApiError::NotWritten(detail) => ApiError::NoAnswer(detail),
            error => error,
        })
    }

    async fn read_back(
        &self,
        outgoing: &Outgoing,
        channel: Snowflake,
        reply_to: Option<Snowflake>,
        since: Timestamp,
    ) -> Result<Option<SentMessage>, ApiError> {
        let us = self.discord.me().await?.user;
        let nonce = nonce(self.delivery);
        let mut after = Snowflake::at(before(since, MARGIN));
        for _ in 0..MAX_PAGES {
            let path = format!("channels/{channel}/messages?after={after}&limit=100");
            let page: Vec<Box<RawValue>> = self.discord.api.get(&path).await?;
            let mut messages: Vec<Message> =
                page.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
            messages.sort_unstable_by_key(|message| message.id);
            if let Some(found) = messages.iter().find(|message| {
                // A message in `sent` belongs to another delivery with the same text.
                self.discord.sent.get(&message.id).is_none() && is_same_message(message, us, &nonce, outgoing, reply_to)
            }) {
                return Ok(Some(SentMessage { id: found.id }));
            }
            match messages.last() {
                Some(last) if page.len() >= 100 && last.id > after => after = last.id,
                _ => break,
            }
        }
        Ok(None)
    }
}

fn before(at: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

/// Whether a message is ours and belongs to this delivery: by its nonce, or by its content if it has none.
fn is_same_message(
    message: &Message,
    us: Snowflake,
    nonce: &str,
    outgoing: &Outgoing,
    reply_to: Option<Snowflake>,
) -> bool {
    if message.author.as_ref().is_none_or(|author| author.id != us) {
        return false;
    }
    if let Some(Value::String(theirs)) = &message.nonce {
        return theirs == nonce;
    }
    let replies_to = message.message_reference.as_ref().and_then(|reference| reference.message_id);
    if replies_to.is_some() && replies_to != reply_to {
        return false;
    }
    let files = outgoing.files.iter().map(|file| &file.name);
    message.content.trim() == outgoing.text.trim() && files.eq(message.attachments.iter().map(|file| &file.filename))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ChannelId, ConversationRef, conformance::channel::text};

    use super::*;

    fn id(text: &str) -> Snowflake {
        Snowflake::parse(text).expect("an id")
    }

    /// Whether our message "sorry" in reply to 50, changed by `fields`, is recognised.
    fn is_found(fields: &serde_json::Value, reply_to: Option<&str>) -> bool {
        let mut message = serde_json::json!({
            "id": "60", "channel_id": "1", "author": {"id": "7"}, "content": "sorry",
            "message_reference": {"message_id": "50"},
        });
        message.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        let message = serde_json::from_value(message).expect("a message");
        let sorry = Outgoing { text: "sorry".to_owned(), ..Outgoing::default() };
        is_same_message(&message, id("7"), "ours", &sorry, reply_to.map(id))
    }

    #[test]
    fn a_message_is_known_by_who_says_what_to_whom() {
        use serde_json::json;

        assert!(is_found(&json!({}), Some("50")));
        assert!(is_found(&json!({"message_reference": null}), Some("50")), "the message it replied to is gone");
        assert!(!is_found(&json!({}), Some("51")), "the same text in reply to another message");
        assert!(!is_found(&json!({}), None));
        assert!(!is_found(&json!({"content": "else"}), Some("50")));
        assert!(!is_found(&json!({"author": {"id": "8"}}), Some("50")));
        assert!(!is_found(&json!({"attachments": [{"filename": "a", "url": "b"}]}), Some("50")));
        assert!(!is_found(&json!({"nonce": "another"}), Some("50")));
        assert!(is_found(&json!({"nonce": "ours", "content": "else"}), None));
    }

    #[test]
    fn a_nonce_is_short_and_a_deliverys_own() {
        let conversation = ConversationRef::new(ChannelId::new("discord", "main"), "1");
        let (first, second) = (text(&conversation, "a").build(), text(&conversation, "a").build());

        assert!(nonce(&first).len() <= 25, "{}", nonce(&first));
        assert_eq!(nonce(&first), nonce(&first));
        assert_ne!(nonce(&first), nonce(&second));
        let created = created_until(&first, Timestamp::from_millis(i64::MAX)).expect("a time");
        assert_eq!(created_until(&first, created), Some(created));
        assert_eq!(
            created_until(&first, before(created, Duration::from_millis(1))),
            None,
            "a time in the future is rejected"
        );
    }
}
