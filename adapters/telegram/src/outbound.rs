//! Performs one delivery with calls to the Bot API, and returns its receipt.

mod address;
mod classify;
pub(crate) mod files;

use std::time::Duration;

use rejoinder_core::{Action, Content, Delivery, DeliveryError, Receipt, Scope, TurnId, Via};
use rejoinder_kit::pick_data;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use teloxide::{
    payloads::{DeleteMessage, EditMessageText, SendChatAction, SendMessage, SetMessageReaction},
    types::{
        ChatAction, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageEntity, ReactionType,
        ReplyMarkup, ReplyParameters,
    },
};

use self::{address::Address, classify::Repeat};
use crate::{
    Telegram,
    capabilities::Drafts,
    check,
    errors::ApiError,
    format::{Formatted, MESSAGE_UNITS, PART_UNITS, format, parts, utf16_len},
    payload::SentMessage,
};

/// The timeout of an ephemeral, which is useless later.
const EPHEMERAL_TIMEOUT: Duration = Duration::from_secs(8);

/// A delivery, and where it goes.
struct Sending<'a> {
    telegram: &'a Telegram,
    delivery: &'a Delivery,
    address: Address,
}

impl Telegram {
    pub(crate) async fn perform(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let sending = Sending { telegram: self, delivery, address: Address::of(delivery.conversation())? };
        match delivery.action() {
            Action::Send { content, reply_to } => sending.send(content, reply_to.as_deref()).await,
            Action::Edit { message, content, .. } => sending.edit(message, content).await,
            Action::React { message, emoji } => sending.react(message.as_deref(), emoji).await,
            Action::Mark { message, emoji, on } => sending.set_reaction(message, on.then_some(emoji)).await,
            Action::Draft { text, message, .. } => sending.draft(text, message.as_deref()).await,
            Action::Typing { on: true } => sending.typing().await,
            Action::Typing { on: false } => Err(DeliveryError::Unsupported("typing ends by itself".to_owned())),
            Action::Delete { message } => sending.delete(message).await,
        }
    }

    pub(crate) fn link_previews(&self) -> Option<LinkPreviewOptions> {
        (!self.options.link_previews).then_some(LinkPreviewOptions {
            is_disabled: true,
            url: None,
            prefer_small_media: false,
            prefer_large_media: false,
            show_above_text: false,
        })
    }
}

impl Sending<'_> {
    async fn send(&self, content: &Content, reply_to: Option<&str>) -> Result<Receipt, DeliveryError> {
        if self.delivery.attempt() > 1 || self.delivery.label().is_some() {
            self.check_reachable().await?;
        }
        let reply = self.reply(reply_to);
        let text = labelled(&content.text, self.delivery.label());
        if !content.attachments.is_empty() {
            return self.send_files(&content.attachments, &text, reply).await;
        }
        let mut payload = self.message(formatted(&text));
        payload.reply_parameters = reply;
        payload.reply_markup = buttons(&content.choices, self.delivery.turn()).map(ReplyMarkup::InlineKeyboard);
        self.send_message(payload, Repeat::Duplicates).await
    }

    /// Checks that Telegram responds, before a message that may have arrived is sent again. During an outage, each such
    /// attempt could add a copy.
    async fn check_reachable(&self) -> Result<(), DeliveryError> {
        match check::who_am_i(&self.telegram.api).await {
            Ok(_) => Ok(()),
            Err(ApiError::NoAnswer(detail)) => Err(DeliveryError::NotSent { retry_after: None, detail }),
            Err(error) => Err(self.classify(error, Repeat::Idempotent)),
        }
    }

    fn message(&self, formatted: Formatted) -> SendMessage {
        let mut payload = SendMessage::new(self.address.chat.clone(), formatted.text);
        payload.message_thread_id = self.address.thread;
        payload.entities = entities(formatted.entities);
        payload.link_preview_options = self.telegram.link_previews();
        payload
    }

    /// Sends a message. If Telegram rejects its entities, sends it without them; if its topic is closed, to the chat.
    async fn send_message(&self, mut payload: SendMessage, repeat: Repeat) -> Result<Receipt, DeliveryError> {
        loop {
            let error = match self.telegram.api.call::<_, SentMessage>(&payload).await {
                Ok(sent) => {
                    self.note_sent(sent.message_id, &payload.text);
                    return Ok(Receipt::of(sent.message_id.to_string()));
                }
                Err(error) => error,
            };
            match error.refusal() {
                Some(refusal) if refusal.is_about_entities() && payload.entities.is_some() => payload.entities = None,
                Some(refusal) if refusal.is_about_topic() && payload.message_thread_id.is_some() => {
                    // A reply would go to the topic of the message that it replies to.
                    (payload.message_thread_id, payload.reply_parameters) = (None, None);
                }
                _ => return Err(self.classify(error, repeat)),
            }
            tracing::debug!(channel = %self.telegram.channel, delivery = %self.delivery.id(), %error, "message rejected, retrying without its entities or topic");
        }
    }

    async fn edit(&self, message: &str, content: &Content) -> Result<Receipt, DeliveryError> {
        let formatted = formatted(&labelled(&content.text, self.delivery.label()));
        self.edit_message(message, formatted, buttons(&content.choices, self.delivery.turn())).await
    }

    async fn edit_message(
        &self,
        message: &str,
        formatted: Formatted,
        keyboard: Option<InlineKeyboardMarkup>,
    ) -> Result<Receipt, DeliveryError> {
        let id = address::message_id(message).map_err(DeliveryError::Gone)?;
        let mut payload = EditMessageText::new(self.address.chat.clone(), id, formatted.text);
        payload.entities = entities(formatted.entities);
        payload.link_preview_options = self.telegram.link_previews();
        payload.reply_markup = keyboard;
        let mut result = self.telegram.api.call::<_, IgnoredAny>(&payload).await;
        if payload.entities.is_some() && is_refused(&result, crate::errors::Refusal::is_about_entities) {
            payload.entities = None;
            result = self.telegram.api.call(&payload).await;
        }
        match result {
            Ok(_) => {}
            Err(ApiError::Refused(refusal)) if refusal.is_not_modified() => {}
            Err(ApiError::Refused(refusal)) if refusal.is_gone() => {
                return Err(DeliveryError::Gone(refusal.to_string()));
            }
            Err(error) => return Err(self.classify(error, Repeat::Idempotent)),
        }
        self.note_sent(id.0.into(), &payload.text);
        Ok(Receipt::of(message))
    }

    async fn react(&self, message: Option<&str>, emoji: &str) -> Result<Receipt, DeliveryError> {
        let message = message.ok_or_else(|| DeliveryError::Refused("there is no message to react to".to_owned()))?;
        self.set_reaction(message, Some(emoji)).await
    }

    /// Replaces the reaction of ours on a message, of which Telegram shows one. `None`: there is none then.
    async fn set_reaction(&self, message: &str, emoji: Option<&str>) -> Result<Receipt, DeliveryError> {
        let refused = |why: String| DeliveryError::Refused(why);
        let id = address::message_id(message).map_err(refused)?;
        let to_reaction = |emoji: &str| {
            let known = self.telegram.reactions.of(emoji);
            let emoji = known.ok_or_else(|| refused(format!("`{emoji}` is not a reaction here")))?;
            Ok(ReactionType::Emoji { emoji })
        };
        let mut payload = SetMessageReaction::new(self.address.chat.clone(), id);
        payload.reaction = Some(emoji.map(to_reaction).transpose()?.into_iter().collect());
        let reacted = self.telegram.api.call::<_, bool>(&payload).await;
        reacted.map(|_| Receipt::of(message)).map_err(|error| self.classify(error, Repeat::Idempotent))
    }

    async fn draft(&self, text: &str, message: Option<&str>) -> Result<Receipt, DeliveryError> {
        self.check_not_limited()?;
        match (self.telegram.drafts(self.address.is_private), message) {
            (Drafts::No, _) => Err(DeliveryError::Unsupported("drafts are off in this chat".to_owned())),
            (Drafts::Bubbles, _) => self.draft_bubble(text).await,
            (Drafts::Messages, Some(message)) => self.edit_message(message, format(&first_part(text)), None).await,
            (Drafts::Messages, None) => Err(DeliveryError::Unsupported("the first draft must be a message".to_owned())),
        }
    }

    /// Shows a draft with `sendMessageDraft`, which teloxide does not support yet
    /// (<https://core.telegram.org/bots/api#sendmessagedraft>).
    async fn draft_bubble(&self, text: &str) -> Result<Receipt, DeliveryError> {
        // The last part is the one being written.
        let formatted = format(&parts(text).pop().unwrap_or_default());
        let id = draft_id(self.delivery.turn());
        let mut parameters = json!({ "chat_id": self.address.chat, "draft_id": id, "text": formatted.text });
        if let (Some(thread), Value::Object(parameters)) = (self.address.thread, &mut parameters) {
            parameters.insert("message_thread_id".to_owned(), json!(thread));
        }
        if !formatted.entities.is_empty() {
            parameters["entities"] = json!(formatted.entities);
        }
        match self.telegram.api.ask::<IgnoredAny>("sendMessageDraft", &parameters, EPHEMERAL_TIMEOUT).await {
            Ok(_) => Ok(Receipt::of(id.to_string())),
            Err(ApiError::Refused(refusal)) if refusal.code == 404 => {
                tracing::info!(channel = %self.telegram.channel, "the Bot API server does not support drafts, so none are shown");
                self.telegram.lacks_drafts.store(true, std::sync::atomic::Ordering::Relaxed);
                Err(DeliveryError::Unsupported("the server does not support drafts".to_owned()))
            }
            Err(error) => Err(self.classify(error, Repeat::Idempotent)),
        }
    }

    async fn typing(&self) -> Result<Receipt, DeliveryError> {
        self.check_not_limited()?;
        let mut payload = SendChatAction::new(self.address.chat.clone(), ChatAction::Typing);
        payload.message_thread_id = self.address.thread;
        let shown = self.telegram.api.ask::<bool>("sendChatAction", &payload, EPHEMERAL_TIMEOUT).await;
        shown
            .map(|_| Receipt::of(self.delivery.id().to_string()))
            .map_err(|error| self.classify(error, Repeat::Idempotent))
    }

    async fn delete(&self, message: &str) -> Result<Receipt, DeliveryError> {
        let id = address::message_id(message).map_err(DeliveryError::Refused)?;
        match self.telegram.api.call::<_, bool>(&DeleteMessage::new(self.address.chat.clone(), id)).await {
            Ok(_) => Ok(Receipt::of(message)),
            Err(ApiError::Refused(refusal)) if refusal.is_removed() => Ok(Receipt::of(message)),
            Err(error) => Err(self.classify(error, Repeat::Idempotent)),
        }
    }

    fn note_sent(&self, message: i64, text: &str) {
        self.telegram.sent.note((self.address.number, message), text, self.delivery.conversation().thread.clone());
    }

    /// Rejects an ephemeral while its chat is limited: sending it would prolong the limit.
    fn check_not_limited(&self) -> Result<(), DeliveryError> {
        match self.telegram.limited.remaining(self.address.number, self.telegram.clock.now()) {
            None => Ok(()),
            Some(retry_after) => Err(DeliveryError::Limited {
                retry_after,
                scope: Scope::Conversation,
                detail: "the chat is still rate limited".to_owned(),
            }),
        }
    }

    /// The reply link of a message. A private chat needs none, except for an answer that comes late.
    fn reply(&self, message: Option<&str>) -> Option<ReplyParameters> {
        let delivery = self.delivery;
        let is_late = delivery.is_overtaken() || matches!(delivery.via(), Some(Via::LateAnswer));
        let is_linked = !self.address.is_private || is_late;
        let id = address::message_id(message.filter(|_| is_linked)?).ok()?;
        Some(ReplyParameters::new(id).allow_sending_without_reply())
    }

    fn classify(&self, error: ApiError, repeat: Repeat) -> DeliveryError {
        self.telegram.classify(&self.address, error, repeat)
    }
}

fn is_refused<T>(result: &Result<T, ApiError>, is: impl Fn(&crate::errors::Refusal) -> bool) -> bool {
    result.as_ref().err().and_then(ApiError::refusal).is_some_and(is)
}

fn entities(entities: Vec<MessageEntity>) -> Option<Vec<MessageEntity>> {
    (!entities.is_empty()).then_some(entities)
}

/// Puts the label, which marks a possible second copy, before the text.
fn labelled(text: &str, label: Option<&str>) -> String {
    match label {
        Some(label) if text.is_empty() => label.to_owned(),
        Some(label) => format!("{label}\n\n{text}"),
        None => text.to_owned(),
    }
}

fn formatted(markdown: &str) -> Formatted {
    let formatted = format(markdown);
    if utf16_len(&formatted.text) <= MESSAGE_UNITS { formatted } else { format(&first_part(markdown)) }
}

fn first_part(text: &str) -> String {
    if utf16_len(text) <= PART_UNITS {
        return text.to_owned();
    }
    parts(text).into_iter().next().unwrap_or_default()
}

/// The choices as buttons, each in its own row.
fn buttons(choices: &[String], turn: TurnId) -> Option<InlineKeyboardMarkup> {
    let row = |(index, choice): (usize, &String)| {
        vec![InlineKeyboardButton::callback(choice.clone(), pick_data(turn, index))]
    };
    (!choices.is_empty()).then(|| InlineKeyboardMarkup::new(choices.iter().enumerate().map(row)))
}

/// The number of a turn's draft: never zero, and the same for every draft of the turn.
fn draft_id(turn: TurnId) -> u32 {
    let digest = Sha256::digest(turn.to_string());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    (number >> 1).max(1)
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    #[test]
    fn a_label_stands_before_the_words_and_never_makes_them_too_long() {
        assert_eq!(formatted(&labelled("hello", Some("*(again)*"))).text, "(again)\n\nhello");

        let long = labelled(&"word ".repeat(799), Some(&"label ".repeat(60)));
        assert!(utf16_len(&formatted(&long).text) <= MESSAGE_UNITS);
    }

    #[test]
    fn choices_are_buttons_of_their_turn() {
        let turn = TurnId::new(Timestamp::from_millis(1));
        let options = ["yes".to_owned(), "no".to_owned()];

        let keyboard = buttons(&options, turn);

        assert_eq!(
            serde_json::to_value(keyboard).expect("JSON"),
            json!({"inline_keyboard": [
                [{"text": "yes", "callback_data": format!("pick:{turn}:0")}],
                [{"text": "no", "callback_data": format!("pick:{turn}:1")}],
            ]})
        );
    }

    #[test]
    fn a_draft_has_the_number_of_its_turn() {
        let (one, other) = (TurnId::new(Timestamp::from_millis(1)), TurnId::new(Timestamp::from_millis(2)));

        assert_eq!(draft_id(one), draft_id(one));
        assert_ne!(draft_id(one), draft_id(other));
        assert!(draft_id(one) > 0);
    }

    #[test]
    fn a_draft_that_grew_too_long_shows_its_beginning() {
        let long = "word ".repeat(2000);

        assert!(utf16_len(&format(&first_part(&long)).text) <= MESSAGE_UNITS);
        assert_eq!(first_part("short"), "short");
    }
}
