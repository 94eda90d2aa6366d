//! Whether a message is there already, once its nonce is forgotten.

use std::time::Duration;

use rejoinder_core::{Delivery, Timestamp};
use serde_json::{Value, value::RawValue};

use super::message::Outgoing;
use crate::{
    Discord,
    api::ApiError,
    payload::{Message, Sent},
    snowflake::Snowflake,
};

/// How long Discord surely knows a nonce: "the past few minutes", of which two were seen
/// (<https://discord.com/developers/docs/resources/message#create-message>). A call may take a while.
const NONCE_LASTS: Duration = Duration::from_secs(80);

/// How far Discord's clock may be behind ours.
const MARGIN: Duration = Duration::from_mins(2);

/// How many pages are read back at most: what came after a message of ours in a busy channel.
const PAGES: usize = 20;

/// What stands for a delivery in Discord's eyes: its id, in fewer than 25 characters.
pub(super) fn nonce(delivery: &Delivery) -> String {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    URL_SAFE_NO_PAD.encode(delivery.id().as_uuid().as_bytes())
}

/// When a delivery was made: no attempt was before that.
fn made_at(delivery: &Delivery) -> Timestamp {
    let millis = delivery.id().as_uuid().as_u128() >> 80;
    Timestamp::from_millis(i64::try_from(millis).unwrap_or_default())
}

impl Discord {
    /// The message that an earlier attempt left, if it may be forgotten that it did.
    pub(super) async fn sent_before(
        &self,
        delivery: &Delivery,
        outgoing: &Outgoing,
        channel: Snowflake,
    ) -> Result<Option<Sent>, ApiError> {
        let made = made_at(delivery);
        if delivery.attempt() < 2 || self.clock.now().since(made) < NONCE_LASTS {
            return Ok(None);
        }
        let found = self.read_back(delivery, outgoing, channel, made).await;
        // Something may be there as long as nobody has looked.
        found.map_err(|error| match error {
            ApiError::NotWritten(detail) => ApiError::NoAnswer(detail),
            error => error,
        })
    }

    async fn read_back(
        &self,
        delivery: &Delivery,
        outgoing: &Outgoing,
        channel: Snowflake,
        made: Timestamp,
    ) -> Result<Option<Sent>, ApiError> {
        let us = self.me().await?.user;
        let nonce = nonce(delivery);
        let margin = i64::try_from(MARGIN.as_millis()).unwrap_or_default();
        let mut after = Snowflake::at(Timestamp::from_millis(made.as_millis() - margin));
        for _ in 0..PAGES {
            let path = format!("channels/{channel}/messages?after={after}&limit=100");
            let page: Vec<Box<RawValue>> = self.api.get(&path).await?;
            let mut messages: Vec<Message> =
                page.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
            messages.sort_unstable_by_key(|message| message.id);
            if let Some(found) = messages.iter().find(|message| is_it(message, us, &nonce, outgoing)) {
                return Ok(Some(Sent { id: found.id }));
            }
            match messages.last() {
                Some(last) if page.len() >= 100 && last.id > after => after = last.id,
                _ => break,
            }
        }
        Ok(None)
    }
}

/// Whether a message is ours and this one: by its nonce, and where Discord does not say that, by what it says.
fn is_it(message: &Message, us: Snowflake, nonce: &str, outgoing: &Outgoing) -> bool {
    if message.author.as_ref().is_none_or(|author| author.id != us) {
        return false;
    }
    if let Some(Value::String(theirs)) = &message.nonce {
        return theirs == nonce;
    }
    let files = outgoing.files.iter().map(|file| &file.name);
    message.content.trim() == outgoing.text.trim() && files.eq(message.attachments.iter().map(|file| &file.filename))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ChannelId, ConversationRef, conformance::channel::text};

    use super::*;

    #[test]
    fn a_nonce_is_short_and_a_deliverys_own() {
        let conversation = ConversationRef::new(ChannelId::new("discord", "main"), "1");
        let (first, second) = (text(&conversation, "a").build(), text(&conversation, "a").build());

        assert!(nonce(&first).len() <= 25, "{}", nonce(&first));
        assert_eq!(nonce(&first), nonce(&first));
        assert_ne!(nonce(&first), nonce(&second));
        assert_eq!(made_at(&first), made_at(&second), "made at the start of the suite's clock");
    }
}
