//! Reads a pressed button as a choice.

use rejoinder_core::{ConversationRef, Directed, EventKind, InboundEvent};
use rejoinder_kit::picked;

use super::{Reader, chat_kind};
use crate::payload::{CallbackQuery, Message};

impl Reader<'_> {
    pub(super) fn choice(&self, query: &CallbackQuery) -> InboundEvent {
        let sender = self.user(&query.from);
        let external_id = format!("callback:{}", query.id);
        let Some(message) = query.message.as_deref() else {
            // The button is on an inline query's message, which we never send.
            let conversation = ConversationRef::new(self.channel.clone(), &sender.id);
            let event = self.event(conversation, rejoinder_core::ChatKind::Direct, external_id, sender);
            return InboundEvent { kind: EventKind::Other, ..event };
        };
        let event = InboundEvent {
            message_id: Some(message.message_id.to_string()),
            language: query.from.language(),
            ..self.event(self.conversation(message), chat_kind(&message.chat), external_id, sender)
        };
        let data = query.data.as_deref().unwrap_or_default();
        let Some((turn, index)) = picked(data) else { return InboundEvent { kind: EventKind::Other, ..event } };
        let text = label_of(message, data).unwrap_or_else(|| (index + 1).to_string());
        // A press on our button is directed at us.
        InboundEvent { kind: EventKind::Choice { turn }, directed: Directed::ReplyToUs, text, ..event }
    }
}

/// The button's label; `None` for an old message, which arrives without its buttons.
fn label_of(message: &Message, data: &str) -> Option<String> {
    let buttons = message.reply_markup.as_ref()?.inline_keyboard.iter().flatten();
    buttons.into_iter().find(|button| button.callback_data.as_deref() == Some(data)).map(|button| button.text.clone())
}
