//! Closes a question that was answered or has expired: removes its buttons and says so below its text. Pure.
//!
//! A callback query carries the message as it is now, so closing is idempotent.

use serde::Deserialize;
use serde_json::Value;
use teloxide::{
    payloads::{EditMessageReplyMarkup, EditMessageText},
    types::{ChatId, LinkPreviewOptions, MessageEntity, MessageId},
};

use crate::format::{MESSAGE_UNITS, utf16_len};

#[derive(Debug)]
pub(crate) enum Closing {
    /// Appends a line to the text and removes the buttons.
    Text(Box<EditMessageText>),
    /// Only removes the buttons: the line does not fit, or the update lacks the text of an old message.
    Buttons(EditMessageReplyMarkup),
}

/// The call that closes the question whose button was pressed in the update `raw`, with `line` below it.
pub(crate) fn closing(raw: &str, line: &str, previews: Option<LinkPreviewOptions>) -> Option<Closing> {
    let update: Value = serde_json::from_str(raw).ok()?;
    let question = update.pointer("/callback_query/message")?;
    let chat = ChatId(question.pointer("/chat/id")?.as_i64()?);
    let id = MessageId(i32::try_from(question.get("message_id")?.as_i64()?).ok()?);
    let end = format!("\n\n{line}");
    let text = question.get("text").and_then(Value::as_str).filter(|text| !line.is_empty() && !text.ends_with(&end));
    let text = text.map(|text| format!("{text}{end}")).filter(|text| utf16_len(text) <= MESSAGE_UNITS);
    let Some(text) = text else { return Some(Closing::Buttons(EditMessageReplyMarkup::new(chat, id))) };
    let mut edit = EditMessageText::new(chat, id, text);
    // The line is appended, so the entities keep their offsets. If one is of an unknown kind, all are dropped.
    edit.entities = question.get("entities").and_then(|entities| Vec::<MessageEntity>::deserialize(entities).ok());
    edit.link_preview_options = previews;
    Some(Closing::Text(Box::new(edit)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn pressed(message: &Value) -> String {
        json!({"update_id": 1, "callback_query": {"id": "1", "message": message}}).to_string()
    }

    fn question(text: &str) -> Value {
        let keyboard = json!({"inline_keyboard": [[{"text": "More", "callback_data": "pick:1:0"}]]});
        json!({"message_id": 7, "chat": {"id": -5}, "text": text, "reply_markup": keyboard,
            "entities": [{"type": "bold", "offset": 0, "length": 5}, {"type": "url", "offset": 6, "length": 4}]})
    }

    #[test]
    fn a_question_says_what_was_picked_and_keeps_its_marks() {
        let Some(Closing::Text(edit)) = closing(&pressed(&question("Which a.bc?")), "✓ More", None) else { panic!() };

        let edit = serde_json::to_value(edit).expect("JSON");
        assert_eq!((&edit["chat_id"], &edit["message_id"]), (&json!(-5), &json!(7)));
        assert_eq!(edit["text"], "Which a.bc?\n\n✓ More");
        assert_eq!(edit["entities"].as_array().map(Vec::len), Some(2));
        assert!(edit.get("reply_markup").is_none());
    }

    #[rstest]
    #[case::it_says_so_already(question("Which?\n\n✓ More"))]
    #[case::there_is_no_room(question(&"x".repeat(4090)))]
    #[case::it_is_too_old(json!({"message_id": 7, "chat": {"id": -5}, "date": 0}))]
    fn the_buttons_go_in_any_case(#[case] question: Value) {
        assert!(matches!(closing(&pressed(&question), "✓ More", None), Some(Closing::Buttons(_))));
    }

    #[test]
    fn what_is_no_pressed_button_closes_nothing() {
        assert!(closing("{}", "✓ More", None).is_none());
        assert!(closing(&pressed(&Value::Null), "✓ More", None).is_none());
    }
}
