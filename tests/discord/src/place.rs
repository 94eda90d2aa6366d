//! The places where people talk.

use serde_json::json;

use crate::control::{Control, id};

/// A Discord server, called guild in the API, that the bot is in.
#[derive(Clone, Debug)]
pub struct Guild {
    pub(crate) control: Control,
    pub(crate) id: String,
    pub(crate) bot_role: String,
}

impl Guild {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the bot's own role, which people can mention.
    #[must_use]
    pub fn bot_role(&self) -> &str {
        &self.bot_role
    }

    /// Creates a text channel.
    pub async fn channel(&self, name: &str) -> Channel {
        self.open(name, "text").await
    }

    /// Creates a forum.
    pub async fn forum(&self, name: &str) -> Channel {
        self.open(name, "forum").await
    }

    /// Creates an announcement channel.
    pub async fn announcements(&self, name: &str) -> Channel {
        self.open(name, "announcement").await
    }

    /// Removes the bot from the guild.
    pub async fn kicks_the_bot(&self) {
        self.control.act("kick", &json!({ "guild_id": self.id })).await;
    }

    async fn open(&self, name: &str, kind: &str) -> Channel {
        let given = json!({ "guild_id": self.id, "name": name, "type": kind });
        let answer = self.control.post("channel", &given).await;
        Channel { control: self.control.clone(), id: id(&answer, "channel_id") }
    }
}

/// A channel, a thread, a forum or a direct chat.
#[derive(Clone, Debug)]
pub struct Channel {
    pub(crate) control: Control,
    pub(crate) id: String,
}

impl Channel {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Denies the bot these permissions here (`view_channel`, `send_messages`, `send_messages_in_threads`,
    /// `read_message_history`, `add_reactions`, `attach_files`, …), in place of those that an earlier call denied.
    pub async fn denies(&self, permissions: &[&str]) {
        self.control.act("permissions", &json!({ "channel_id": self.id, "deny": permissions })).await;
    }

    /// Archives the thread; a message in it unarchives it unless it is `locked`.
    pub async fn is_archived(&self, locked: bool) {
        self.control.act("archive", &json!({ "channel_id": self.id, "locked": locked })).await;
    }

    pub async fn is_deleted(&self) {
        self.control.act("delete_channel", &json!({ "channel_id": self.id })).await;
    }
}
