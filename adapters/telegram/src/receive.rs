//! Receives updates by polling or by webhook. Each is read and stored, and only then acknowledged.

mod albums;
mod polling;
mod webhook;

use std::sync::Arc;

use rejoinder_core::{Accepted, InboundEvent, store::SentText};
use rejoinder_kit::{Receiver, ShuttingDown};
use serde::de::IgnoredAny;
use teloxide::{payloads::AnswerCallbackQuery, types::CallbackQueryId};

pub use self::webhook::webhook_routes;
pub(crate) use self::{albums::Albums, polling::stale_after, webhook::WebhookSecret};
use crate::{
    Telegram,
    check::BotProfile,
    closing::{Closing, closing},
    format::plain,
    inbound::{ReadUpdate, Reader},
};

impl Telegram {
    /// Reads updates, in the order in which they arrived.
    pub(crate) async fn read_updates(
        &self,
        me: &BotProfile,
        receiver: &Receiver<'_>,
        raw: &[&str],
    ) -> Result<Vec<ReadUpdate>, ShuttingDown> {
        let reader = Reader { channel: &self.channel, me, sent: &self.sent, now: self.clock.now() };
        let mut read = Vec::with_capacity(raw.len());
        for raw in raw {
            let update = reader.read(raw);
            let is_ours = match update.unknown {
                Some(message) => self.recall(receiver, &update.event, message).await?,
                None => false,
            };
            read.push(if is_ours { reader.read(raw) } else { update });
        }
        let mut events: Vec<&mut InboundEvent> = read.iter_mut().map(|read| &mut read.event).collect();
        self.albums.share_direction(&mut events);
        Ok(read)
    }

    /// Recalls the message that somebody reacts to, if we sent it before the start. Nothing is looked up for those who may not talk
    /// to the agent.
    async fn recall(
        &self,
        receiver: &Receiver<'_>,
        InboundEvent { conversation, sender, chat, .. }: &InboundEvent,
        (number, message): (i64, i64),
    ) -> Result<bool, ShuttingDown> {
        if !receiver.intake.lets_in(&sender.id, sender.username.as_deref(), *chat, conversation) {
            return Ok(false);
        }
        let sent = receiver.sent_text(&conversation.chat, &message.to_string()).await?;
        let is_ours = sent.is_some();
        if let Some(SentText { thread, text }) = sent {
            self.sent.note((number, message), &plain(&text), thread);
        }
        Ok(is_ours)
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
