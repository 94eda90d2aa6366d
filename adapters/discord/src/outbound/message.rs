//! Builds the payload of a message: to send in a channel, to edit, or to follow up on an interaction.

use rejoinder_core::{Content, Delivery, DeliveryError, TurnId};
use rejoinder_kit::pick_data;
use serde_json::Value;
use serenity::{
    all::{ButtonStyle, ChannelId, MessageFlags, MessageId, MessageReference, MessageReferenceKind, Nonce},
    builder::{CreateActionRow, CreateAllowedMentions, CreateButton, CreateMessage, EditMessage},
};

use crate::{
    Discord,
    api::{Body, Upload, json},
    format::{MESSAGE_UNITS, formatted, parts, units},
    interactions::EPHEMERAL,
    snowflake::Snowflake,
};

/// The most buttons in a row, and the most rows
/// (<https://discord.com/developers/docs/components/reference#action-row>).
const BUTTONS_PER_ROW: usize = 5;
const MAX_ROWS: usize = 5;

const MAX_LABEL: usize = 80;

/// The name of the file that a text is sent as if it is too long for a message; Discord's own clients use it.
const LONG_TEXT: &str = "message.txt";

/// A message to send or to edit.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) text: String,
    pub(super) rows: Vec<CreateActionRow>,
    pub(super) files: Vec<Upload>,
    pub(super) suppress_embeds: bool,
}

impl Discord {
    pub(super) async fn outgoing(&self, delivery: &Delivery, content: &Content) -> Result<Outgoing, DeliveryError> {
        let (mut files, mut lines) = self.files(&content.attachments).await?;
        lines.insert(0, formatted(&content.text).into_owned());
        let (rows, rest) = buttons(delivery.turn(), &content.choices);
        lines.extend(rest);
        lines.retain(|line| !line.is_empty());
        let text = fitted(&lines.join("\n"), &mut files);
        let labelled = delivery.label().map(|label| format!("{label}\n{text}"));
        let text = labelled.filter(|text| units(text) <= MESSAGE_UNITS).unwrap_or(text);
        if text.is_empty() && files.is_empty() {
            return Err(DeliveryError::Refused("the message is empty".to_owned()));
        }
        Ok(Outgoing { text, rows, files, suppress_embeds: self.options.suppress_embeds })
    }
}

impl Outgoing {
    /// The payload of a new message in a channel.
    pub(super) fn create_payload(&self, nonce: &str, channel: Snowflake, reply_to: Option<Snowflake>) -> Value {
        let mut message = CreateMessage::new()
            .content(&self.text)
            .nonce(Nonce::String(nonce.to_owned()))
            .enforce_nonce(true)
            .allowed_mentions(no_mentions())
            .components(self.rows.clone());
        if self.suppress_embeds {
            message = message.flags(MessageFlags::SUPPRESS_EMBEDS);
        }
        if let (Some(reply_to), Some(channel)) = (reply_to.and_then(number), number(channel)) {
            let reference = MessageReference::new(MessageReferenceKind::Default, ChannelId::new(channel))
                .message_id(MessageId::new(reply_to))
                .fail_if_not_exists(false);
            message = message.reference_message(reference);
        }
        without_empty_fields(json(&message))
    }

    pub(super) fn edit_payload(&self) -> Value {
        let mut message =
            EditMessage::new().content(&self.text).allowed_mentions(no_mentions()).components(self.rows.clone());
        if self.suppress_embeds {
            message = message.flags(MessageFlags::SUPPRESS_EMBEDS);
        }
        without_empty_fields(json(&message))
    }

    /// The payload of a further answer to an interaction.
    pub(super) fn follow_up_payload(&self, is_private: bool) -> Value {
        let mut message = self.edit_payload();
        let flags = message.get("flags").and_then(Value::as_u64).unwrap_or_default();
        if is_private {
            message["flags"] = (flags | EPHEMERAL).into();
        }
        message
    }

    pub(super) fn body(&self, message: Value) -> Body {
        if self.files.is_empty() { Body::Json(message) } else { Body::Files(message, self.files.clone()) }
    }
}

/// The text of a message. If `text` is too long for one, that is its beginning, and all of it is added to the files.
fn fitted(text: &str, files: &mut Vec<Upload>) -> String {
    if units(text) <= MESSAGE_UNITS {
        return text.to_owned();
    }
    let media_type = "text/plain; charset=utf-8".to_owned();
    files.push(Upload { name: LONG_TEXT.to_owned(), media_type, bytes: text.as_bytes().to_vec() });
    parts(text).swap_remove(0)
}

/// Pings nobody, whatever an agent writes.
fn no_mentions() -> CreateAllowedMentions {
    CreateAllowedMentions::new().replied_user(false)
}

/// Removes empty lists and null references, which serenity serialises. Discord would take some of them as a request to
/// remove something.
fn without_empty_fields(mut message: Value) -> Value {
    let Some(fields) = message.as_object_mut() else { return message };
    for name in ["embeds", "sticker_ids", "attachments"] {
        if fields.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            fields.remove(name);
        }
    }
    if let Some(mentions) = fields.get_mut("allowed_mentions").and_then(Value::as_object_mut) {
        mentions.remove("users");
        mentions.remove("roles");
    }
    if let Some(reference) = fields.get_mut("message_reference").and_then(Value::as_object_mut) {
        reference.retain(|_, value| !value.is_null());
    }
    message
}

/// The choices as buttons, and lines of text for those above the limit.
fn buttons(turn: TurnId, choices: &[String]) -> (Vec<CreateActionRow>, Vec<String>) {
    let (on_buttons, rest) = choices.split_at(choices.len().min(BUTTONS_PER_ROW * MAX_ROWS));
    let button = |(index, choice): (usize, &String)| {
        CreateButton::new(pick_data(turn, index)).label(label(choice)).style(ButtonStyle::Secondary)
    };
    let buttons: Vec<CreateButton> = on_buttons.iter().enumerate().map(button).collect();
    let rows = buttons.chunks(BUTTONS_PER_ROW).map(|row| CreateActionRow::Buttons(row.to_vec())).collect();
    (rows, rest.iter().map(|choice| format!("- {choice}")).collect())
}

fn label(choice: &str) -> String {
    if choice.chars().count() <= MAX_LABEL {
        return choice.to_owned();
    }
    choice.chars().take(MAX_LABEL - 1).chain(['…']).collect()
}

fn number(id: Snowflake) -> Option<u64> {
    id.to_string().parse().ok().filter(|id| *id != 0)
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    fn outgoing(choices: &[String]) -> Outgoing {
        let turn = TurnId::new(Timestamp::from_millis(1_700_000_000_000));
        let (rows, _) = buttons(turn, choices);
        Outgoing { text: "hello @everyone".to_owned(), rows, files: Vec::new(), suppress_embeds: true }
    }

    fn id(text: &str) -> Snowflake {
        Snowflake::parse(text).expect("an id")
    }

    #[test]
    fn a_message_calls_nobody_and_says_who_it_is() {
        let message = outgoing(&[]).create_payload("nonce", id("10"), Some(id("20")));

        assert_eq!(
            message,
            serde_json::json!({
                "content": "hello @everyone",
                "nonce": "nonce",
                "enforce_nonce": true,
                "tts": false,
                "allowed_mentions": {"parse": [], "replied_user": false},
                "message_reference": {
                    "type": 0, "message_id": "20", "channel_id": "10", "fail_if_not_exists": false
                },
                "components": [],
                "flags": 4,
            })
        );
    }

    #[test]
    fn a_change_removes_the_buttons() {
        let message = outgoing(&[]).edit_payload();

        assert_eq!(message["components"], serde_json::json!([]));
        assert_eq!(message["allowed_mentions"]["parse"], serde_json::json!([]));
        assert!(message.get("nonce").is_none());
    }

    #[test]
    fn choices_are_buttons_in_rows_of_five() {
        let choices: Vec<String> = (0..27).map(|number| format!("{number}{}", "x".repeat(100))).collect();

        let message = outgoing(&choices).create_payload("nonce", id("10"), None);

        let rows = message["components"].as_array().expect("rows");
        assert_eq!(rows.len(), 5);
        for row in rows {
            let buttons = row["components"].as_array().expect("buttons");
            assert_eq!(buttons.len(), 5);
            for button in buttons {
                let label = button["label"].as_str().expect("a label");
                assert!(label.chars().count() <= 80, "{label}");
            }
        }
        let turn = TurnId::new(Timestamp::from_millis(0));
        assert_eq!(buttons(turn, &choices).1.len(), 2, "the rest are lines of text");
    }
}
