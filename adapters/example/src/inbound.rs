//! A message of the server → [`InboundEvent`]. Pure.

use rejoinder_core::{
    ChannelId, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Sender, SenderKind, Timestamp,
};

use crate::payload::Message;

/// The event for a message. `line` is the raw message, `me` our own name.
pub(crate) fn normalise(message: Message, line: &str, channel: &ChannelId, me: &str, now: Timestamp) -> InboundEvent {
    let Message { id, chat, person, text } = message;
    let is_room = chat.starts_with('#');
    let directed = match &text {
        Some(_) if !is_room => Directed::DirectChat,
        Some(text) if mentions(text, me) => Directed::Mention,
        Some(_) | None => Directed::Ambient,
    };
    // Unknown events are stored and acknowledged as well; otherwise the server would resend them on each connection.
    let event_kind = if text.is_some() { EventKind::Message } else { EventKind::Other };
    let kind = if person == me { SenderKind::Ourselves } else { SenderKind::Person };
    let sender = Sender { id: person.clone(), name: Some(person), username: None, kind };
    let (conversation, chat) =
        (ConversationRef::new(channel.clone(), &chat), if is_room { ChatKind::Group } else { ChatKind::Direct });
    InboundEvent {
        message_id: Some(id.clone()),
        kind: event_kind,
        directed,
        text: text.unwrap_or_default(),
        raw: line.to_owned(),
        ..InboundEvent::new(conversation, chat, id, sender, now)
    }
}

/// Whether a text contains `@name` as a word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |character: char| !(character.is_alphanumeric() || matches!(character, '@' | '_' | '-'));
    text.split(is_part).any(|word| word.strip_prefix('@') == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_room_a_mention_is_directed_at_us() {
        let directed = |chat: &str, text: &str| {
            let [id, chat, person, text] = ["1", chat, "ada", text].map(str::to_owned);
            let (message, channel) =
                (Message { id, chat, person, text: Some(text) }, ChannelId::new("example", "main"));
            normalise(message, "", &channel, "agent", Timestamp::from_millis(0)).directed
        };

        assert_eq!(directed("ada", "hello"), Directed::DirectChat);
        assert_eq!(directed("#kitchen", "hello"), Directed::Ambient);
        assert_eq!(directed("#kitchen", "hello @agent!"), Directed::Mention);
        assert_eq!(directed("#kitchen", "hello @agents"), Directed::Ambient);
    }
}
