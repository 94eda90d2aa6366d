//! Reads a pressed button as a choice.

use rejoinder_core::{ConversationRef, Directed, EventKind, InboundEvent, TurnId};

use super::{Reader, chat_kind};
use crate::payload::{CallbackQuery, Message};

/// A button's callback data: the turn whose answer was the question, and the index of the choice. Telegram allows 64
/// bytes (<https://core.telegram.org/bots/api#inlinekeyboardbutton>); these are 45 at most.
pub(crate) fn pick_data(turn: TurnId, index: usize) -> String {
    format!("pick:{turn}:{index}")
}

/// The turn and the index in a button's callback data.
fn picked(data: &str) -> Option<(TurnId, usize)> {
    let (turn, index) = data.strip_prefix("pick:")?.split_once(':')?;
    Some((turn.parse().ok()?, index.parse().ok()?))
}

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

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    #[test]
    fn a_button_carries_its_turn_and_its_place() {
        let turn = TurnId::new(Timestamp::from_millis(1_700_000_000_000));

        let data = pick_data(turn, 99);

        assert!(data.len() <= 64, "{data}");
        assert_eq!(picked(&data), Some((turn, 99)));
        assert_eq!(picked("pick:me"), None);
        assert_eq!(picked("else"), None);
    }
}
