//! Turns an update into an event. Pure.
//!
//! Every update becomes an event. An update that is unreadable, or not meant for the agent, becomes
//! [`EventKind::Other`], stored with its payload.

mod choice;
mod files;
mod message;
mod reaction;
#[cfg(test)]
mod tests;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

use rejoinder_core::{
    ChannelId, ChatKind, ConversationRef, EventKind, InboundEvent, Sender, SenderKind, Timestamp, json_error,
};
use rejoinder_kit::SentMessages;
use serde_json::Value;

pub(crate) use self::files::file_id;
use crate::{
    check::BotProfile,
    payload::{Chat, Message, Update, User},
};

/// Our own messages, by chat id and message id.
pub(crate) type OwnMessages = SentMessages<(i64, i64)>;

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) channel: &'a ChannelId,
    pub(crate) me: &'a BotProfile,
    pub(crate) sent: &'a OwnMessages,
    pub(crate) now: Timestamp,
}

#[derive(Debug)]
pub(crate) struct ReadUpdate {
    /// The `update_id`; `None` if it is missing.
    pub(crate) number: Option<i64>,
    /// The id of its callback query, which must be answered.
    pub(crate) query: Option<String>,
    /// The chat and the message that it reacts to, if that is not known as ours.
    pub(crate) unknown: Option<(i64, i64)>,
    pub(crate) event: InboundEvent,
}

impl Reader<'_> {
    /// Reads an update. An unreadable one becomes [`EventKind::Other`].
    pub(crate) fn read(&self, raw: &str) -> ReadUpdate {
        // A bug in this code must not block the updates behind this one.
        let read = catch_unwind(AssertUnwindSafe(|| self.try_to_read(raw)));
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => self.unreadable(raw, &json_error(&error)),
            Err(_) => self.unreadable(raw, "the parser panicked"),
        }
    }

    fn try_to_read(&self, raw: &str) -> Result<ReadUpdate, serde_json::Error> {
        let update: Update = serde_json::from_str(raw)?;
        let number = update.update_id;
        let query = update.callback_query.as_ref().map(|query| query.id.clone());
        let reacts_to = update.message_reaction.as_ref().map(|reaction| (reaction.chat.id, reaction.message_id));
        let unknown = reacts_to.filter(|message| self.sent.get(message).is_none());
        let event = if let Some(message) = update.message.or(update.channel_post) {
            self.message(&message, number, false)
        } else if let Some(message) = update.edited_message.or(update.edited_channel_post) {
            self.message(&message, number, true)
        } else if let Some(query) = update.callback_query {
            self.choice(&query)
        } else if let Some(reaction) = update.message_reaction {
            self.reaction(&reaction)
        } else {
            self.other(raw, number)
        };
        Ok(ReadUpdate { number: Some(number), query, unknown, event: InboundEvent { raw: raw.to_owned(), ..event } })
    }

    /// Keeps an update that does not fit our types.
    fn unreadable(&self, raw: &str, why: &str) -> ReadUpdate {
        let value: Value = serde_json::from_str(raw).unwrap_or_default();
        let number = value.get("update_id").and_then(Value::as_i64);
        let query = value.pointer("/callback_query/id").and_then(Value::as_str).map(str::to_owned);
        if number.is_some() {
            tracing::warn!(channel = %self.channel, update = number, why, "an update cannot be read, storing it as it is");
        }
        let event = self.other(raw, number.unwrap_or_default());
        ReadUpdate { number, query, unknown: None, event }
    }

    /// An event that is stored but not given to the agent.
    fn other(&self, raw: &str, number: i64) -> InboundEvent {
        let conversation = ConversationRef::new(self.channel.clone(), &chat_of(raw).unwrap_or_default().to_string());
        let sender = Sender { id: "0".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent };
        InboundEvent {
            kind: EventKind::Other,
            raw: raw.to_owned(),
            ..self.event(conversation, ChatKind::Group, format!("update:{number}"), sender)
        }
    }

    /// An event without content.
    fn event(
        &self,
        conversation: ConversationRef,
        chat: ChatKind,
        external_id: String,
        sender: Sender,
    ) -> InboundEvent {
        InboundEvent::new(conversation, chat, external_id, sender, self.now)
    }

    /// The chat of a message, and its topic if it is in one. Reply threads are not topics.
    fn conversation(&self, message: &Message) -> ConversationRef {
        let conversation = ConversationRef::new(self.channel.clone(), &message.chat.id.to_string());
        match message.message_thread_id {
            Some(thread) if message.is_topic_message => conversation.in_thread(&thread.to_string()),
            _ => conversation,
        }
    }

    fn user(&self, user: &User) -> Sender {
        let kind = if user.id == self.me.id {
            SenderKind::Ourselves
        } else if user.is_bot {
            SenderKind::OtherAgent
        } else {
            SenderKind::Person
        };
        let name = [Some(user.first_name.as_str()), user.last_name.as_deref()].into_iter().flatten();
        let name = name.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" ");
        Sender {
            id: user.id.to_string(),
            name: (!name.is_empty()).then_some(name),
            username: user.username.clone(),
            kind,
        }
    }

    /// The sender of a message that was written in the name of `chat`. A group in itself is one of its anonymous
    /// administrators, so a person; anything else is a channel.
    fn chat_as_sender(chat: &Chat, place: &Chat, signature: Option<&str>) -> Sender {
        let is_same_chat = chat.id == place.id && place.kind != "channel";
        Sender {
            id: chat.id.to_string(),
            name: signature.or(chat.title.as_deref()).map(str::to_owned),
            username: chat.username.clone(),
            kind: if is_same_chat { SenderKind::Person } else { SenderKind::OtherAgent },
        }
    }
}

fn chat_kind(chat: &Chat) -> ChatKind {
    if chat.kind == "private" { ChatKind::Direct } else { ChatKind::Group }
}

/// The chat id of any update: `{"update_id": …, "<kind>": {"chat": {"id": …}}}`.
fn chat_of(raw: &str) -> Option<i64> {
    let value: Value = serde_json::from_str(raw).ok()?;
    value.as_object()?.values().find_map(|it| it.get("chat")?.get("id")?.as_i64())
}
