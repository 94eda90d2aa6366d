//! Reads a reaction that was added or removed.

use rejoinder_core::{ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Quote, Sender, SenderKind};

use super::{Reader, chat_kind};
use crate::payload::{MessageReaction, Reaction, User};

impl Reader<'_> {
    pub(super) fn reaction(&self, reaction: &MessageReaction) -> InboundEvent {
        let sender = match (&reaction.user, &reaction.actor_chat) {
            (Some(user), _) => self.user(user),
            (None, Some(chat)) => Self::chat_as_sender(chat, &reaction.chat, None),
            (None, None) => Sender { id: "0".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent },
        };
        let chat = chat_kind(&reaction.chat);
        let message = reaction.message_id.to_string();
        let ours = self.sent.get(&(reaction.chat.id, reaction.message_id));
        let (old, new) = (&reaction.old_reaction, &reaction.new_reaction);
        let emoji = new.iter().find(|it| !old.contains(it)).map(named).unwrap_or_default();
        let removed = old.iter().find(|it| !new.contains(it)).map(named);
        let external_id = format!("reaction:{}:{message}:{}:{}:{emoji}", reaction.chat.id, sender.id, reaction.date);
        let mut conversation = ConversationRef::new(self.channel.clone(), &reaction.chat.id.to_string());
        if let Some(thread) = ours.as_ref().and_then(|ours| ours.thread.as_deref()) {
            conversation = conversation.in_thread(thread);
        }
        let event = self.event(conversation, chat, external_id, sender);
        // Telegram does not say whose message it is.
        let Some(ours) = ours else {
            return InboundEvent { kind: EventKind::Other, message_id: Some(message), ..event };
        };
        InboundEvent {
            kind: EventKind::Reaction { message: message.clone(), emoji, removed },
            message_id: Some(message),
            directed: if chat == ChatKind::Direct { Directed::DirectChat } else { Directed::ReplyToUs },
            quoted: Some(Quote::of_ours(&ours.text)),
            language: reaction.user.as_ref().and_then(User::language),
            ..event
        }
    }
}

/// A custom emoji has no character.
fn named(reaction: &Reaction) -> String {
    reaction.emoji.clone().unwrap_or_else(|| "[custom emoji]".to_owned())
}
