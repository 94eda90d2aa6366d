//! What tests read from the server.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// A message as its channel shows it now. Deleted messages are absent.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate visible property")]
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    /// The id of the channel, thread or direct chat that contains it.
    pub channel_id: String,
    /// Discord's message type: 0 is an ordinary message, 19 a reply, 20 the response to a command; 18 and 21 are created by
    /// Discord itself.
    pub kind: u8,
    /// The author's display name.
    pub author: String,
    pub author_id: String,
    /// Whether the bot sent it.
    pub ours: bool,
    pub content: String,
    /// All its texts, oldest first: more than one after edits.
    pub versions: Vec<String>,
    /// Whether it is marked as edited.
    pub edited: bool,
    /// The id of the message that it replies to.
    pub reply_to: Option<String>,
    /// Whether it still shows "is thinking".
    pub loading: bool,
    /// The id of the only user who sees it, for an ephemeral message.
    pub ephemeral_to: Option<String>,
    /// Whether its link previews are suppressed.
    pub embeds_suppressed: bool,
    pub nonce: Option<String>,
    /// The ids of the users that it notified.
    pub pings: Vec<String>,
    /// Whether it notified everyone.
    pub pings_everyone: bool,
    /// The id of the thread that was started from it.
    pub thread: Option<String>,
    pub reactions: Vec<Reaction>,
    pub attachments: Vec<Attachment>,
    /// In order.
    pub buttons: Vec<Button>,
}

/// One emoji under a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Reaction {
    /// The emoji; a custom one is `name:id`.
    pub emoji: String,
    /// The ids of the users who reacted with it.
    pub by: Vec<String>,
    /// Whether the bot is one of them.
    pub ours: bool,
}

/// A file of a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    pub url: String,
    /// In bytes.
    pub size: u64,
    pub content_type: String,
}

/// A button under a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Button {
    pub label: String,
    /// The id that a click sends to the bot.
    pub custom_id: String,
    pub disabled: bool,
}

/// A REST call.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// Counted from 1.
    pub number: u64,
    /// When it arrived, in seconds since the server's start.
    pub at: f64,
    pub method: String,
    /// The path below `/api/v10`.
    pub path: String,
    pub query: HashMap<String, String>,
    /// The JSON body, also of a form; null if there is none or it was not read.
    pub body: Value,
    /// The files of a form.
    pub files: Vec<File>,
    /// The status of the response; `None` if the connection was cut, or there is no response yet.
    pub status: Option<u16>,
    /// Whether it took effect.
    pub executed: bool,
    /// The kind of fault that affected it.
    pub fault: Option<String>,
}

/// An uploaded file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct File {
    pub name: String,
    /// In bytes.
    pub size: u64,
}

/// The state of an interaction.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Interaction {
    #[serde(rename = "interaction_id")]
    pub id: String,
    /// Whether the bot has acknowledged it.
    pub acknowledged: bool,
    /// `message`, `deferred` (until its message is sent), `deferred_update`, `update` or `modal`.
    pub response: Option<String>,
    /// The id of the message that responds to it.
    pub message_id: Option<String>,
    /// Whether only the person sees the response.
    pub ephemeral: bool,
    /// Whether the person sees that it failed.
    pub failed: bool,
}
