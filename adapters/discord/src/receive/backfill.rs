//! Reads missed messages over REST
//! (<https://discord.com/developers/docs/resources/message#get-channel-messages>).

use rejoinder_core::Backoff;
use rejoinder_kit::ShuttingDown;
use serde_json::value::RawValue;

use super::EventStorer;
use crate::{payload::SentMessage, snowflake::Snowflake};

/// The most messages per call.
const PAGE: usize = 100;

impl EventStorer<'_> {
    /// Accepts the messages of a channel after `from` that are not older than `backfill_max_age`, oldest first. Stored ones
    /// are recognised as duplicates.
    pub(crate) async fn fill(&mut self, channel: Snowflake, from: Snowflake) -> Result<(), ShuttingDown> {
        let max_age = i64::try_from(self.discord.options.backfill_max_age.as_millis()).unwrap_or(i64::MAX);
        let now = self.discord.clock.now().as_millis();
        let oldest = rejoinder_core::Timestamp::from_millis(now.saturating_sub(max_age).max(0));
        let mut after = from.max(Snowflake::at(oldest));
        let mut backoff = Backoff::default();
        loop {
            let path = format!("channels/{channel}/messages?after={after}&limit={PAGE}");
            let page = self.receiver.until_shutdown(self.discord.api.get::<Vec<Box<RawValue>>>(&path)).await?;
            let page = match page {
                Ok(page) => page,
                Err(error) if error.is_transient() => {
                    tracing::warn!(channel = %self.discord.channel, in_channel = %channel, %error, "missed messages cannot be read yet, retrying");
                    self.receiver.pause(backoff.pause().max(error.pause().unwrap_or_default())).await?;
                    continue;
                }
                Err(error) => {
                    // The channel is closed to us.
                    tracing::debug!(channel = %self.discord.channel, in_channel = %channel, %error, "a channel cannot be read, skipping it");
                    return Ok(());
                }
            };
            backoff.reset();
            let mut messages: Vec<(Snowflake, &RawValue)> = page
                .iter()
                .filter_map(|raw| Some((serde_json::from_str::<SentMessage>(raw.get()).ok()?.id, raw.as_ref())))
                .collect();
            messages.sort_unstable_by_key(|(id, _)| *id);
            let reader = self.reader();
            let read: Vec<_> =
                messages.iter().filter_map(|(_, raw)| reader.read("MESSAGE_CREATE", raw.get(), 0)).collect();
            if !read.is_empty() {
                self.store_events(read).await?;
            }
            match messages.last() {
                Some((last, _)) if page.len() >= PAGE && *last > after => after = *last,
                _ => return Ok(()),
            }
        }
    }
}
