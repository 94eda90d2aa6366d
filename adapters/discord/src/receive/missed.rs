//! Stores the missed messages that a page of [`Backfill`](super::backfill::Backfill) has read.

use rejoinder_kit::ShuttingDown;
use serde_json::value::RawValue;

use super::{
    EventStorer,
    backfill::{EndedChannel, PAGE, Page},
};
use crate::{
    payload::{Message, SentMessage},
    snowflake::Snowflake,
};

impl EventStorer<'_> {
    /// Stores the missed messages of a page, oldest first. Stored ones are recognised as duplicates.
    pub(super) async fn handle_page(&mut self, page: Page) -> Result<(), ShuttingDown> {
        let Page { channel, messages } = page;
        let ended = match messages {
            Ok(page) => {
                let mut messages: Vec<(Snowflake, &RawValue)> = page
                    .iter()
                    .filter_map(|raw| Some((serde_json::from_str::<SentMessage>(raw.get()).ok()?.id, raw.as_ref())))
                    .collect();
                messages.sort_unstable_by_key(|(id, _)| *id);
                let last = messages.last().map(|(last, _)| *last);
                if self.position.is_new && self.backfill.is_untouched(channel) {
                    // An earlier installation has answered what is before our own last message.
                    let is_ours = |raw: &RawValue| {
                        let message = serde_json::from_str::<Message>(raw.get()).ok();
                        message.and_then(|message| message.author).is_some_and(|author| author.id == self.me.user)
                    };
                    let answered = messages.iter().rposition(|(_, raw)| is_ours(raw)).map_or(0, |index| index + 1);
                    messages.drain(..answered);
                }
                let reader = self.reader();
                let read: Vec<_> =
                    messages.iter().filter_map(|(_, raw)| reader.read("MESSAGE_CREATE", raw.get(), 0)).collect();
                if !read.is_empty() {
                    self.store_events(read).await?;
                }
                self.backfill.page_stored(channel, last, page.len() >= PAGE)
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(channel = %self.discord.channel, in_channel = %channel, %error, "missed messages cannot be read yet, retrying");
                self.backfill.retry(channel, error.pause().unwrap_or_default());
                None
            }
            Err(error) => {
                // The channel is closed to us.
                tracing::debug!(channel = %self.discord.channel, in_channel = %channel, %error, "a channel cannot be read, skipping it");
                self.backfill.end(channel)
            }
        };
        self.backfill.report();
        let Some(EndedChannel { scope, held }) = ended else { return Ok(()) };
        self.release(held).await?;
        self.close_gap_if_read(&scope).await
    }

    /// Closes a gap, once all its channels are read.
    pub(super) async fn close_gap_if_read(&mut self, scope: &str) -> Result<(), ShuttingDown> {
        if !self.backfill.is_read(scope) {
            return Ok(());
        }
        self.position.close_gap(scope);
        self.store_position().await
    }
}
