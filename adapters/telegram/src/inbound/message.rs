//! Reads messages and channel posts, new or edited.

use std::time::Duration;

use rejoinder_core::{
    Amends, Author, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Quote, Sender, SenderKind, Timestamp,
};

use super::{
    Reader, chat_kind,
    files::{attachments, voice},
    text::{ReadText, read_text},
};
use crate::payload::{Location, Message, Origin, User};

/// How long to wait for the next part of an album. Telegram sends the parts as separate messages, one right after the
/// other, and never says how many there are.
const ALBUM_PAUSE: Duration = Duration::from_secs(1);

impl Reader<'_> {
    pub(super) fn message(&self, message: &Message, number: i64, is_edit: bool) -> InboundEvent {
        let chat = chat_kind(&message.chat);
        let external_id = format!("{}:{}", message.chat.id, message.message_id);
        let event = InboundEvent {
            message_id: Some(message.message_id.to_string()),
            sent_at: Some(Timestamp::from_millis(message.date.saturating_mul(1000))),
            language: message.from.as_ref().and_then(User::language),
            ..self.event(self.conversation(message), chat, external_id, self.sender(message))
        };
        if let Some(moved) = self.moved(message) {
            return moved;
        }
        let read = self.text_of(message);
        let text = read.text.clone().or_else(|| describe_content(message));
        let attachments = attachments(message);
        if text.is_none() && attachments.is_empty() {
            // A service message: somebody joined, something was pinned, a topic was renamed.
            return InboundEvent { kind: EventKind::Other, external_id: format!("update:{number}"), ..event };
        }
        let replied_to = message.reply_to_message.as_deref().filter(|it| it.forum_topic_created.is_none());
        let event = InboundEvent {
            directed: self.directed(message, chat, &read),
            quoted: self.quoted(message, replied_to),
            forwarded: message.forward_origin.as_ref().map(|origin| self.origin(origin)),
            text: text.unwrap_or_default(),
            attachments,
            voice: voice(message),
            ..event
        };
        revised(event, message, is_edit)
    }

    fn sender(&self, message: &Message) -> Sender {
        if message.is_automatic_forward
            && let Some(channel) = &message.sender_chat
        {
            return Sender {
                kind: SenderKind::OtherAgent,
                ..Self::chat_as_sender(channel, &message.chat, message.author_signature.as_deref())
            };
        }
        match (&message.sender_chat, &message.from) {
            (Some(chat), _) => Self::chat_as_sender(chat, &message.chat, message.author_signature.as_deref()),
            (None, Some(user)) => self.user(user),
            (None, None) => Self::chat_as_sender(&message.chat, &message.chat, message.author_signature.as_deref()),
        }
    }

    /// The event for a group that became a supergroup with a new id. Telegram reports it in both chats; both reports have
    /// the same external id.
    fn moved(&self, message: &Message) -> Option<InboundEvent> {
        let (from, to) = match (message.migrate_to_chat_id, message.migrate_from_chat_id) {
            (Some(to), _) => (message.chat.id, to),
            (None, Some(from)) => (from, message.chat.id),
            (None, None) => return None,
        };
        let conversation = ConversationRef::new(self.channel.clone(), &from.to_string());
        let external_id = format!("moved:{from}:{to}");
        Some(InboundEvent {
            kind: EventKind::Moved { chat: to.to_string() },
            ..self.event(conversation, ChatKind::Group, external_id, self.sender(message))
        })
    }

    fn text_of(&self, message: &Message) -> ReadText {
        match (&message.text, &message.caption) {
            (Some(text), _) => read_text(text, &message.entities, self.me),
            (None, Some(caption)) => read_text(caption, &message.caption_entities, self.me),
            (None, None) => ReadText::default(),
        }
    }

    fn directed(&self, message: &Message, chat: ChatKind, read: &ReadText) -> Directed {
        let is_reply_to_us = || {
            let to = message.reply_to_message.as_deref().filter(|it| it.forum_topic_created.is_none());
            to.and_then(|it| it.from.as_ref()).is_some_and(|from| from.id == self.me.id)
        };
        match chat {
            ChatKind::Direct if read.is_command => Directed::Command,
            ChatKind::Direct => Directed::DirectChat,
            ChatKind::Group if message.chat.kind == "channel" || read.is_anothers_command => Directed::Ambient,
            ChatKind::Group if read.is_command => Directed::Command,
            ChatKind::Group if read.mentions_us => Directed::Mention,
            ChatKind::Group if is_reply_to_us() => Directed::ReplyToUs,
            ChatKind::Group => Directed::Ambient,
        }
    }

    /// What the message replies to: the part of its text that the person quoted, or all of it.
    fn quoted(&self, message: &Message, replied_to: Option<&Message>) -> Option<Quote> {
        let author = match (replied_to, &message.external_reply) {
            (Some(it), _) => it.forward_origin.as_ref().map_or_else(|| self.sender(it).into(), |it| self.origin(it)),
            (None, Some(it)) => self.origin(&it.origin),
            (None, None) => Author::unknown(),
        };
        let part = message.quote.as_ref().map(|quote| quote.text.clone());
        let text = part.or_else(|| {
            let replied_to = replied_to?;
            self.text_of(replied_to).text.or_else(|| describe_content(replied_to))
        });
        let attachments = replied_to.map(attachments).unwrap_or_default();
        let message_id = replied_to.map(|it| it.message_id.to_string());
        let quote = Quote { author, text: text.unwrap_or_default(), attachments, message_id };
        (!quote.is_empty()).then_some(quote)
    }

    /// Who first wrote a message that was forwarded.
    fn origin(&self, origin: &Origin) -> Author {
        let signature = origin.author_signature.as_deref();
        match (&origin.sender_user, origin.sender_chat.as_ref().or(origin.chat.as_ref())) {
            (Some(user), _) => Author::from(self.user(user)).elsewhere(),
            (None, Some(chat)) => Author::from(Self::chat_as_sender(chat, chat, signature)).elsewhere(),
            (None, None) => Author { name: origin.sender_user_name.clone(), ..Author::unknown() },
        }
    }
}

/// Sets the album that the message is a part of, and how the event amends an earlier one.
fn revised(event: InboundEvent, message: &Message, is_edit: bool) -> InboundEvent {
    let part_of = message.media_group_id.as_ref().map(|group| format!("{}:{group}", message.chat.id));
    if is_edit {
        let revision = message.edit_date.unwrap_or(message.date);
        return InboundEvent { revision, amends: Some(Amends::Replaces), part_of, ..event };
    }
    let more_within = part_of.as_ref().map(|_| ALBUM_PAUSE);
    InboundEvent { part_of, more_within, ..event }
}

/// A text for content that is neither text nor file.
fn describe_content(message: &Message) -> Option<String> {
    let at = |location: &Location| format!("{}, {}", location.latitude, location.longitude);
    if let Some(sticker) = &message.sticker {
        return Some(sticker.emoji.clone().unwrap_or_else(|| "[sticker]".to_owned()));
    }
    if let Some(venue) = &message.venue {
        return Some(format!("[venue: {}, {} ({})]", venue.title, venue.address, at(&venue.location)));
    }
    if let Some(location) = &message.location {
        return Some(format!("[location: {}]", at(location)));
    }
    if let Some(contact) = &message.contact {
        let name = [contact.first_name.as_str(), contact.last_name.as_deref().unwrap_or_default()].join(" ");
        return Some(format!("[contact: {}, {}]", name.trim(), contact.phone_number));
    }
    if let Some(dice) = &message.dice {
        return Some(format!("[{}: {}]", dice.emoji, dice.value));
    }
    let poll = message.poll.as_ref()?;
    let options: Vec<&str> = poll.options.iter().map(|option| option.text.as_str()).collect();
    Some(format!("[poll: {} {}]", poll.question, options.join(" / ")))
}
