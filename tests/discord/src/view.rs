//! What a test looks at.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// A message as it stands in its channel. A deleted one is gone.
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own that a person sees")]
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// The channel, thread or direct chat it is in.
    pub channel_id: String,
    /// Discord's message type: 0 is an ordinary one, 19 a reply, 20 the answer to a command; 18 and
    /// 21 are Discord's own.
    pub kind: u8,
    /// Who said it.
    pub author: String,
    /// Their id.
    pub author_id: String,
    /// Whether the bot said it.
    pub ours: bool,
    /// The text.
    pub content: String,
    /// All texts it has had, oldest first: more than one after edits.
    pub versions: Vec<String>,
    /// Whether it carries the mark of an edited message.
    pub edited: bool,
    /// The message it replies to.
    pub reply_to: Option<String>,
    /// Whether it still says "is thinking".
    pub loading: bool,
    /// The only person who sees it, if it is for one.
    pub ephemeral_to: Option<String>,
    /// Whether previews of its links are suppressed.
    pub embeds_suppressed: bool,
    /// The nonce it was sent with.
    pub nonce: Option<String>,
    /// The people that it notified.
    pub pings: Vec<String>,
    /// Whether it notified everyone.
    pub pings_everyone: bool,
    /// The thread that was started from it.
    pub thread: Option<String>,
    /// What people and the bot reacted with.
    pub reactions: Vec<Reaction>,
    /// Its files.
    pub attachments: Vec<Attachment>,
    /// Its buttons, in order.
    pub buttons: Vec<Button>,
}

/// One emoji under a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Reaction {
    /// The emoji; a custom one is `name:id`.
    pub emoji: String,
    /// The ids of those who reacted with it.
    pub by: Vec<String>,
    /// Whether the bot is one of them.
    pub ours: bool,
}

/// A file of a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Where it can be fetched.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub content_type: String,
}

/// A button under a message.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Button {
    /// What it says.
    pub label: String,
    /// What the bot knows it by.
    pub custom_id: String,
    /// Whether it cannot be pressed.
    pub disabled: bool,
}

/// One REST call.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// Its number, from 1.
    pub number: u64,
    /// When it came, in seconds since the server's start.
    pub at: f64,
    /// The method.
    pub method: String,
    /// The path below `/api/v10`.
    pub path: String,
    /// The query.
    pub query: HashMap<String, String>,
    /// The JSON body, of a form too; null when there is none or it was not read.
    pub body: Value,
    /// The files of a form.
    pub files: Vec<File>,
    /// The status that was answered; none when the connection was cut, or it is not answered yet.
    pub status: Option<u16>,
    /// Whether it had its effect.
    pub executed: bool,
    /// The kind of fault that hit it.
    pub fault: Option<String>,
}

/// A file that was uploaded.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// How an interaction stands.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Interaction {
    /// Its id.
    #[serde(rename = "interaction_id")]
    pub id: String,
    /// Whether the bot has acknowledged it.
    pub acknowledged: bool,
    /// How: `message`, `deferred` (until its message is there), `deferred_update`, `update`, `modal`.
    pub response: Option<String>,
    /// The message that answers it.
    pub message_id: Option<String>,
    /// Whether only the person sees that.
    pub ephemeral: bool,
    /// Whether the person was told that it failed.
    pub failed: bool,
}
