//! Receives updates by polling or by webhook. Each is read and stored, and only then acknowledged.

mod albums;
mod polling;
mod webhook;

use std::sync::Arc;

use rejoinder_core::{Accepted, InboundEvent};
use rejoinder_kit::{Receiver, ShuttingDown};
use serde::de::IgnoredAny;
use teloxide::{payloads::AnswerCallbackQuery, types::CallbackQueryId};

pub use self::webhook::webhook_routes;
pub(crate) use self::{albums::Albums, polling::stale_after, webhook::WebhookSecret};
use crate::{
    Telegram,
    check::BotProfile,
    closing::{Closing, closing},
    inbound::{ReadUpdate, Reader},
};

impl Telegram {
    /// Reads updates, in the order in which they arrived.
    pub(crate) fn read_updates<'a>(&self, me: &BotProfile, raw: impl Iterator<Item = &'a str>) -> Vec<ReadUpdate> {
        let reader = Reader { channel: &self.channel, me, sent: &self.sent, now: self.clock.now() };
        let mut read: Vec<ReadUpdate> = raw.map(|raw| reader.read(raw)).collect();
        let mut events: Vec<&mut InboundEvent> = read.iter_mut().map(|read| &mut read.event).collect();
        self.albums.share_direction(&mut events);
        read
    }

    /// Stores updates, retrying until the store accepts them, and acknowledges pressed buttons.
    pub(crate) async fn store(
        &self,
        receiver: &Receiver<'_>,
        read: &[ReadUpdate],
        cursor: Option<(&str, &str)>,
    ) -> Result<(), ShuttingDown> {
        let events: Vec<InboundEvent> = read.iter().map(|read| read.event.clone()).collect();
        let accepted = receiver.accept(&events, cursor).await?;
        self.acknowledge_buttons(read, &accepted);
        Ok(())
    }

    fn acknowledge_buttons(&self, read: &[ReadUpdate], accepted: &[Accepted]) {
        for (read, accepted) in read.iter().zip(accepted) {
            if let Some(query) = &read.query {
                let line = accepted.closing(&read.event);
                let closing = line.and_then(|(_, line)| closing(&read.event.raw, &line, self.link_previews()));
                self.answer(query.clone(), closing);
            }
        }
    }

    /// Acknowledges a pressed button, on which Telegram shows a spinner until then, and closes an answered question.
    fn answer(&self, query: String, closing: Option<Closing>) {
        let (api, channel) = (Arc::clone(&self.api), self.channel.clone());
        self.tasks.spawn(async move {
            let answer = AnswerCallbackQuery::new(CallbackQueryId(query));
            if let Err(error) = api.call::<_, bool>(&answer).await {
                // The choice itself is stored.
                tracing::debug!(%channel, %error, "a pressed button could not be acknowledged");
            }
            let closed = match closing {
                None => return,
                Some(Closing::Text(edit)) => api.call::<_, IgnoredAny>(&*edit).await,
                Some(Closing::Buttons(edit)) => api.call::<_, IgnoredAny>(&edit).await,
            };
            if let Err(error) = closed {
                // Pressing a button again closes it and changes nothing else.
                tracing::debug!(%channel, %error, "the buttons of an answered question could not be removed");
            }
        });
    }
}
