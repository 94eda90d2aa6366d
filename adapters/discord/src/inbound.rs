//! Turns a Gateway event into an event of the core. Pure, except that it reads the [`Directory`].
//!
//! Messages, commands, pressed buttons and reactions to our messages become events. An unreadable one becomes
//! [`EventKind::Other`], stored with its payload. Our own messages and all other Gateway events become nothing.

mod interaction;
mod message;
mod reaction;
#[cfg(test)]
mod tests;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

use rejoinder_core::{
    ChannelId, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Sender, SenderKind, Timestamp, json_error,
};
use rejoinder_kit::SentMessages;
use serde_json::Value;

use crate::{
    check::Identity,
    directory::{ChannelInfo, Directory},
    interactions::InteractionRecord,
    payload::{Member, User},
    section::DiscordSection,
    snowflake::Snowflake,
};

/// The prefix of a person's id in the thread of a private conversation.
const PRIVATE: &str = "private:";

/// The prefix of an interaction's id that takes the place of a message's id.
const INTERACTION: &str = "interaction:";

/// The event of a reaction that is added.
const REACTION_ADDED: &str = "MESSAGE_REACTION_ADD";

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) channel: &'a ChannelId,
    pub(crate) me: Identity,
    pub(crate) options: &'a DiscordSection,
    pub(crate) directory: &'a Directory,
    pub(crate) sent: &'a SentMessages<Snowflake>,
    pub(crate) now: Timestamp,
}

#[derive(Debug)]
pub(crate) struct ReadEvent {
    pub(crate) event: InboundEvent,
    /// Its id, if it is a message.
    pub(crate) message: Option<Snowflake>,
    /// Its interaction, which must be acknowledged.
    pub(crate) interaction: Option<InteractionRecord>,
    /// Discord hides its text from us.
    pub(crate) is_hidden: bool,
}

impl ReadEvent {
    const fn of(event: InboundEvent, message: Snowflake) -> Self {
        Self { event, message: Some(message), interaction: None, is_hidden: false }
    }

    /// Whether it is a readable message that is not directed at us.
    pub(crate) fn is_ambient(&self) -> bool {
        let event = &self.event;
        event.kind == EventKind::Message
            && event.chat == ChatKind::Group
            && event.directed == Directed::Ambient
            && !event.text.is_empty()
    }
}

/// The person of a private conversation; `None` for any other conversation.
pub(crate) fn private_to(conversation: &ConversationRef) -> Option<Snowflake> {
    Snowflake::parse(conversation.thread.as_deref()?.strip_prefix(PRIVATE)?)
}

/// The interaction id in the place of a message id, if there is one.
pub(crate) fn interaction_in(message: &str) -> Option<Snowflake> {
    Snowflake::parse(message.strip_prefix(INTERACTION)?)
}

impl Reader<'_> {
    /// Reads an event; `None` if it is not for the core.
    pub(crate) fn read(&self, kind: &str, data: &str, seq: u64) -> Option<ReadEvent> {
        // A bug in this code must not block the events behind this one.
        let read = catch_unwind(AssertUnwindSafe(|| self.try_to_read(kind, data, seq)));
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => Some(self.unreadable(kind, data, &json_error(&error))),
            Err(_) => Some(self.unreadable(kind, data, "the parser panicked")),
        }
    }

    fn try_to_read(&self, kind: &str, data: &str, seq: u64) -> Result<Option<ReadEvent>, serde_json::Error> {
        let read = match kind {
            "MESSAGE_CREATE" => self.message(&serde_json::from_str(data)?, false),
            "MESSAGE_UPDATE" => self.message(&serde_json::from_str(data)?, true),
            "INTERACTION_CREATE" => self.interaction(serde_json::from_str(data)?),
            REACTION_ADDED => self.reaction(&serde_json::from_str(data)?, seq, true),
            "MESSAGE_REACTION_REMOVE" => self.reaction(&serde_json::from_str(data)?, seq, false),
            "MESSAGE_REACTION_REMOVE_ALL" | "MESSAGE_REACTION_REMOVE_EMOJI" => {
                Some(self.removed_reactions(&serde_json::from_str(data)?, seq))
            }
            _ => None,
        };
        Ok(read.map(|mut read| {
            read.event.raw = match &read.interaction {
                // The token lets its holder send messages in our name for 15 minutes.
                Some(record) => data.replace(&record.token, "…"),
                None => data.to_owned(),
            };
            read
        }))
    }

    /// Keeps an event that does not fit our types.
    fn unreadable(&self, kind: &str, data: &str, why: &str) -> ReadEvent {
        let mut value: Value = serde_json::from_str(data).unwrap_or_default();
        let id = |name: &str| value.get(name).and_then(Value::as_str).and_then(Snowflake::parse).unwrap_or_default();
        let (id, channel) = (id("id"), id("channel_id"));
        tracing::warn!(channel = %self.channel, kind, %id, why, "an event cannot be read, storing it as it is");
        if let Some(token) = value.get_mut("token") {
            *token = Value::Null;
        }
        let sender = Sender { id: "0".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent };
        let external_id = format!("{}:{channel}:{id}", kind.to_lowercase());
        let event = InboundEvent {
            kind: EventKind::Other,
            raw: value.to_string(),
            ..self.event(self.conversation(channel, None), ChatKind::Group, external_id, sender)
        };
        ReadEvent { event, message: None, interaction: None, is_hidden: false }
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

    /// A channel is a chat; a thread is a thread in its parent channel's chat.
    fn conversation(&self, channel: Snowflake, info: Option<&ChannelInfo>) -> ConversationRef {
        let conversation = |chat: Snowflake| ConversationRef::new(self.channel.clone(), &chat.to_string());
        match info.and_then(ChannelInfo::thread_of) {
            Some(parent) => conversation(parent).in_thread(&channel.to_string()),
            None => conversation(channel),
        }
    }

    /// The conversation of private answers to a person, so that they cannot go elsewhere.
    fn private(public: &ConversationRef, user: Snowflake) -> ConversationRef {
        ConversationRef { thread: None, ..public.clone() }.in_thread(&format!("{PRIVATE}{user}"))
    }

    fn sender(&self, user: &User, member: Option<&Member>, webhook: Option<Snowflake>) -> Sender {
        let is_bot = user.bot || webhook.is_some();
        let kind = if user.id == self.me.user || webhook == Some(self.me.application) {
            SenderKind::Ourselves
        } else if is_bot {
            SenderKind::OtherAgent
        } else {
            SenderKind::Person
        };
        let nick = member.and_then(|member| member.nick.as_deref());
        let name = nick.or(user.global_name.as_deref()).unwrap_or(&user.username);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        // A webhook chooses its name with each message, and the names of bots are not unique.
        let username = some(&user.username).filter(|_| !is_bot);
        Sender { id: user.id.to_string(), name: some(name), username, kind }
    }
}
