//! The parts of incoming payloads that are read (<https://core.telegram.org/bots/api#update>).
//!
//! teloxide's types reject a whole message if they do not know one entity or one kind of content, and then a person gets
//! no answer. The types here require only what an answer needs, and ignore unknown fields.

#![expect(clippy::struct_field_names, reason = "the names are the Bot API's")]

use rejoinder_core::Language;
use serde::{Deserialize, de::IgnoredAny};

/// One update. At most one optional field is set; none for a kind that is not read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Update {
    pub(crate) update_id: i64,
    pub(crate) message: Option<Box<Message>>,
    pub(crate) edited_message: Option<Box<Message>>,
    pub(crate) channel_post: Option<Box<Message>>,
    pub(crate) edited_channel_post: Option<Box<Message>>,
    pub(crate) callback_query: Option<Box<CallbackQuery>>,
    pub(crate) message_reaction: Option<MessageReaction>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) is_bot: bool,
    #[serde(default)]
    pub(crate) first_name: String,
    pub(crate) last_name: Option<String>,
    pub(crate) username: Option<String>,
    /// The language of the app, as a tag such as `de` or `pt-br`.
    pub(crate) language_code: Option<String>,
}

impl User {
    pub(crate) fn language(&self) -> Option<Language> {
        Language::of(self.language_code.as_deref()?)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Chat {
    pub(crate) id: i64,
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    pub(crate) title: Option<String>,
    pub(crate) username: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) message_id: i64,
    pub(crate) message_thread_id: Option<i64>,
    #[serde(default)]
    pub(crate) is_topic_message: bool,
    pub(crate) from: Option<User>,
    pub(crate) sender_chat: Option<Chat>,
    pub(crate) author_signature: Option<String>,
    #[serde(default)]
    pub(crate) is_automatic_forward: bool,
    #[serde(default)]
    pub(crate) date: i64,
    pub(crate) edit_date: Option<i64>,
    pub(crate) chat: Chat,
    pub(crate) forward_origin: Option<Origin>,
    pub(crate) reply_to_message: Option<Box<Message>>,
    /// A reply to a message of another chat.
    pub(crate) external_reply: Option<ExternalReply>,
    pub(crate) quote: Option<Quote>,
    pub(crate) media_group_id: Option<String>,
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) entities: Vec<Entity>,
    pub(crate) caption: Option<String>,
    #[serde(default)]
    pub(crate) caption_entities: Vec<Entity>,
    #[serde(default)]
    pub(crate) photo: Vec<File>,
    pub(crate) animation: Option<File>,
    pub(crate) document: Option<File>,
    pub(crate) audio: Option<File>,
    pub(crate) video: Option<File>,
    pub(crate) video_note: Option<File>,
    pub(crate) voice: Option<File>,
    pub(crate) sticker: Option<Sticker>,
    pub(crate) location: Option<Location>,
    pub(crate) venue: Option<Venue>,
    pub(crate) contact: Option<Contact>,
    pub(crate) dice: Option<Dice>,
    pub(crate) poll: Option<Poll>,
    pub(crate) migrate_to_chat_id: Option<i64>,
    pub(crate) migrate_from_chat_id: Option<i64>,
    pub(crate) forum_topic_created: Option<IgnoredAny>,
    pub(crate) reply_markup: Option<Keyboard>,
}

/// Who first wrote a message (<https://core.telegram.org/bots/api#messageorigin>). Which field is set depends on its type.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Origin {
    pub(crate) sender_user: Option<User>,
    /// The name of a person who hides their account.
    pub(crate) sender_user_name: Option<String>,
    pub(crate) sender_chat: Option<Chat>,
    /// A channel.
    pub(crate) chat: Option<Chat>,
    pub(crate) author_signature: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ExternalReply {
    #[serde(default)]
    pub(crate) origin: Origin,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Quote {
    pub(crate) text: String,
}

/// A style or link on a part of a text. `kind` is a string, because new kinds appear with every version of the API.
#[derive(Debug, Deserialize)]
pub(crate) struct Entity {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// In UTF-16 units, as is `length`.
    pub(crate) offset: usize,
    pub(crate) length: usize,
    pub(crate) url: Option<String>,
    pub(crate) user: Option<User>,
    pub(crate) language: Option<String>,
}

/// Any file, or one size of a photo.
#[derive(Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) file_id: String,
    pub(crate) file_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    /// In seconds.
    pub(crate) duration: Option<f64>,
    #[serde(default)]
    pub(crate) width: i64,
    #[serde(default)]
    pub(crate) height: i64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Sticker {
    pub(crate) emoji: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Location {
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Venue {
    pub(crate) location: Location,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) address: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Contact {
    pub(crate) phone_number: String,
    #[serde(default)]
    pub(crate) first_name: String,
    pub(crate) last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dice {
    pub(crate) emoji: String,
    pub(crate) value: i64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Poll {
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) options: Vec<PollOption>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PollOption {
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Keyboard {
    #[serde(default)]
    pub(crate) inline_keyboard: Vec<Vec<Button>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Button {
    pub(crate) text: String,
    pub(crate) callback_data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallbackQuery {
    pub(crate) id: String,
    pub(crate) from: User,
    /// Lacks its content if it is too old.
    pub(crate) message: Option<Box<Message>>,
    pub(crate) data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MessageReaction {
    pub(crate) chat: Chat,
    pub(crate) message_id: i64,
    pub(crate) user: Option<User>,
    pub(crate) actor_chat: Option<Chat>,
    #[serde(default)]
    pub(crate) date: i64,
    #[serde(default)]
    pub(crate) old_reaction: Vec<Reaction>,
    #[serde(default)]
    pub(crate) new_reaction: Vec<Reaction>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Reaction {
    pub(crate) emoji: Option<String>,
    pub(crate) custom_emoji_id: Option<String>,
}

/// A sent message: the part that a receipt needs.
#[derive(Debug, Deserialize)]
pub(crate) struct SentMessage {
    pub(crate) message_id: i64,
}

/// The result of `getFile`.
#[derive(Debug, Deserialize)]
pub(crate) struct FilePath {
    pub(crate) file_path: Option<String>,
    pub(crate) file_size: Option<u64>,
}

/// The result of `getWebhookInfo`.
#[derive(Debug, Deserialize)]
pub(crate) struct WebhookInfo {
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) pending_update_count: u64,
    pub(crate) last_error_date: Option<i64>,
    pub(crate) last_error_message: Option<String>,
}
