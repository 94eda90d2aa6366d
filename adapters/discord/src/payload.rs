//! The parts of incoming payloads that are read (<https://discord.com/developers/docs/resources/message>,
//! <https://discord.com/developers/docs/interactions/receiving-and-responding>).
//!
//! serenity's types reject a whole message if they do not know one kind of embed or component, and then a person gets no
//! answer. The types here require only what an answer needs, and ignore unknown fields.

use std::collections::HashMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use crate::snowflake::Snowflake;

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct User {
    pub(crate) id: Snowflake,
    #[serde(default)]
    pub(crate) username: String,
    pub(crate) global_name: Option<String>,
    #[serde(default)]
    pub(crate) bot: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Member {
    pub(crate) user: Option<User>,
    pub(crate) nick: Option<String>,
    #[serde(default)]
    pub(crate) roles: Vec<Snowflake>,
}

#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "they are Discord's names")]
pub(crate) struct Message {
    pub(crate) id: Snowflake,
    pub(crate) channel_id: Snowflake,
    /// Only in events of the Gateway.
    pub(crate) guild_id: Option<Snowflake>,
    /// Missing in an event about a change by Discord itself.
    pub(crate) author: Option<User>,
    pub(crate) member: Option<Member>,
    #[serde(rename = "type", default)]
    pub(crate) kind: u64,
    #[serde(default)]
    pub(crate) flags: u64,
    #[serde(default)]
    pub(crate) content: String,
    pub(crate) edited_timestamp: Option<String>,
    pub(crate) webhook_id: Option<Snowflake>,
    #[serde(default)]
    pub(crate) mentions: Vec<User>,
    #[serde(default)]
    pub(crate) mention_roles: Vec<Snowflake>,
    #[serde(default)]
    pub(crate) attachments: Vec<File>,
    #[serde(default)]
    pub(crate) sticker_items: Vec<Sticker>,
    #[serde(default)]
    pub(crate) embeds: Vec<IgnoredAny>,
    #[serde(default)]
    pub(crate) components: Vec<Value>,
    pub(crate) poll: Option<Poll>,
    #[serde(default)]
    pub(crate) message_snapshots: Vec<Snapshot>,
    pub(crate) message_reference: Option<Reference>,
    pub(crate) referenced_message: Option<Box<Message>>,
    pub(crate) nonce: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    pub(crate) message_id: Option<Snowflake>,
    /// 1: forwarded.
    #[serde(rename = "type", default)]
    pub(crate) kind: u64,
}

/// A forwarded message.
#[derive(Debug, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) message: Forwarded,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Forwarded {
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) attachments: Vec<File>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) filename: String,
    pub(crate) content_type: Option<String>,
    pub(crate) url: String,
    /// Of a voice message.
    pub(crate) duration_secs: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Sticker {
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Poll {
    pub(crate) question: PollText,
    #[serde(default)]
    pub(crate) answers: Vec<PollAnswer>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PollAnswer {
    pub(crate) poll_media: PollText,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PollText {
    #[serde(default)]
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Reaction {
    pub(crate) user_id: Snowflake,
    pub(crate) channel_id: Snowflake,
    pub(crate) message_id: Snowflake,
    pub(crate) guild_id: Option<Snowflake>,
    pub(crate) member: Option<Member>,
    pub(crate) message_author_id: Option<Snowflake>,
    pub(crate) emoji: Emoji,
}

/// All reactions to a message were removed, or all with one emoji
/// (<https://discord.com/developers/docs/events/gateway-events#message-reaction-remove-all>). It says neither whose message it is nor
/// who removed them.
#[derive(Debug, Deserialize)]
pub(crate) struct RemovedReactions {
    pub(crate) channel_id: Snowflake,
    pub(crate) message_id: Snowflake,
    pub(crate) guild_id: Option<Snowflake>,
    pub(crate) emoji: Option<Emoji>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Emoji {
    pub(crate) id: Option<Snowflake>,
    pub(crate) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Interaction {
    pub(crate) id: Snowflake,
    pub(crate) application_id: Snowflake,
    /// 2: a command; 3: a component.
    #[serde(rename = "type")]
    pub(crate) kind: u64,
    pub(crate) data: Option<InteractionData>,
    pub(crate) guild_id: Option<Snowflake>,
    pub(crate) channel_id: Option<Snowflake>,
    pub(crate) channel: Option<Channel>,
    pub(crate) member: Option<Member>,
    pub(crate) user: Option<User>,
    pub(crate) token: String,
    pub(crate) message: Option<Box<Message>>,
    /// The language of the person's app, as a tag such as `de` or `es-419`.
    pub(crate) locale: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct InteractionData {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) options: Vec<CommandOption>,
    #[serde(default)]
    pub(crate) custom_id: String,
    #[serde(default)]
    pub(crate) resolved: Resolved,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Resolved {
    #[serde(default)]
    pub(crate) attachments: HashMap<String, File>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CommandOption {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) value: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Channel {
    pub(crate) id: Snowflake,
    #[serde(rename = "type", default)]
    pub(crate) kind: u64,
    pub(crate) guild_id: Option<Snowflake>,
    pub(crate) parent_id: Option<Snowflake>,
    pub(crate) name: Option<String>,
    pub(crate) owner_id: Option<Snowflake>,
    pub(crate) last_message_id: Option<Snowflake>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) user: User,
    #[serde(default)]
    pub(crate) guilds: Vec<GuildId>,
    pub(crate) application: Option<ApplicationId>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApplicationId {
    pub(crate) id: Snowflake,
}

#[derive(Debug, Deserialize)]
pub(crate) struct GuildId {
    pub(crate) id: Snowflake,
    #[serde(default)]
    pub(crate) unavailable: bool,
}

/// The payload of `GUILD_CREATE`. Its lists are parsed item by item, so that an invalid item is skipped.
#[derive(Debug, Deserialize)]
pub(crate) struct Guild<'a> {
    pub(crate) id: Snowflake,
    pub(crate) joined_at: Option<String>,
    #[serde(default)]
    pub(crate) unavailable: bool,
    #[serde(default, borrow)]
    pub(crate) channels: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    pub(crate) threads: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    pub(crate) roles: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    pub(crate) members: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Role {
    pub(crate) id: Snowflake,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) tags: RoleTags,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct RoleTags {
    pub(crate) bot_id: Option<Snowflake>,
}

/// `THREAD_LIST_SYNC`.
#[derive(Debug, Deserialize)]
pub(crate) struct Threads {
    #[serde(default)]
    pub(crate) threads: Vec<Channel>,
}

/// `GUILD_ROLE_CREATE` and `GUILD_ROLE_UPDATE`.
#[derive(Debug, Deserialize)]
pub(crate) struct RoleChange {
    pub(crate) role: Role,
}

/// A sent message: the part that a receipt needs.
#[derive(Debug, Deserialize)]
pub(crate) struct SentMessage {
    pub(crate) id: Snowflake,
}
