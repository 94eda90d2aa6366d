//! The actions of people.

use serde_json::{Value, json};

use crate::{
    control::{Control, id},
    place::Channel,
    server::PATIENCE,
    view::{Interaction, Message},
};

/// A person, or another bot. Joins the guilds it writes in.
#[derive(Clone, Debug)]
pub struct Person {
    pub(crate) control: Control,
    pub(crate) id: String,
    pub(crate) username: String,
    pub(crate) bot_mention: String,
}

impl Person {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The user name: the display name in lower case, with underscores for spaces.
    #[must_use]
    pub fn username(&self) -> &str {
        &self.username
    }

    /// Sends a message.
    pub async fn says(&self, channel: &Channel, content: &str) -> Message {
        self.message(channel, json!({ "content": content })).await
    }

    /// Sends a message that mentions the bot to a channel.
    pub async fn mentions(&self, channel: &Channel, content: &str) -> Message {
        self.says(channel, &format!("{} {content}", self.bot_mention)).await
    }

    /// Sends a message to the direct chat with the bot.
    pub async fn dm(&self, content: &str) -> Message {
        self.says(&self.direct().await, content).await
    }

    /// The direct chat with the bot.
    pub async fn direct(&self) -> Channel {
        let answer = self.control.post("dm", &json!({ "user_id": self.id })).await;
        Channel { control: self.control.clone(), id: id(&answer, "channel_id") }
    }

    /// Replies to a message.
    pub async fn replies(&self, to: &Message, content: &str) -> Message {
        self.message(&self.place_of(to), json!({ "content": content, "reply_to": to.id })).await
    }

    /// Sends a message with files, given as names and contents.
    pub async fn sends_files(&self, channel: &Channel, content: &str, files: &[(&str, &[u8])]) -> Message {
        let files: Vec<Value> =
            files.iter().map(|(name, data)| json!({ "name": name, "hex": hexadecimal(data) })).collect();
        self.message(channel, json!({ "content": content, "files": files })).await
    }

    /// Sends a voice message of so many seconds.
    pub async fn sends_voice(&self, channel: &Channel, data: &[u8], seconds: f64) -> Message {
        let file = json!({ "name": "voice-message.ogg", "hex": hexadecimal(data) });
        self.message(channel, json!({ "files": [file], "voice": seconds })).await
    }

    /// Sends a sticker without text.
    pub async fn sends_sticker(&self, channel: &Channel, name: &str) -> Message {
        self.message(channel, json!({ "sticker": name })).await
    }

    /// Sends a message through a webhook of the channel.
    pub async fn posts_by_webhook(&self, channel: &Channel, content: &str) -> Message {
        self.message(channel, json!({ "content": content, "webhook": true })).await
    }

    /// Edits a message.
    pub async fn edits(&self, message: &Message, content: &str) -> Message {
        let given = json!({ "channel_id": message.channel_id, "message_id": message.id, "content": content });
        self.control.post("edit", &given).await
    }

    /// Deletes a message.
    pub async fn deletes(&self, message: &Message) {
        let given = json!({ "channel_id": message.channel_id, "message_id": message.id });
        self.control.act("delete", &given).await;
    }

    /// Reacts with an emoji.
    pub async fn reacts(&self, message: &Message, emoji: &str) {
        self.reaction(message, emoji, false).await;
    }

    /// Removes a reaction.
    pub async fn removes_reaction(&self, message: &Message, emoji: &str) {
        self.reaction(message, emoji, true).await;
    }

    /// Sends a typing notice.
    pub async fn types(&self, channel: &Channel) {
        self.control.act("typing", &json!({ "channel_id": channel.id, "user_id": self.id })).await;
    }

    /// Opens a thread in a channel, without a message to start from.
    pub async fn opens_thread(&self, channel: &Channel, name: &str) -> Channel {
        self.thread(json!({ "channel_id": channel.id, "name": name })).await
    }

    /// Opens a private thread; the bot needs `manage_threads` to see it.
    pub async fn opens_private_thread(&self, channel: &Channel, name: &str) -> Channel {
        self.thread(json!({ "channel_id": channel.id, "name": name, "private": true })).await
    }

    /// Opens a thread from a message.
    pub async fn opens_thread_from(&self, message: &Message, name: &str) -> Channel {
        self.thread(json!({ "channel_id": message.channel_id, "message_id": message.id, "name": name })).await
    }

    /// Creates a forum post, which is a thread.
    pub async fn posts(&self, forum: &Channel, title: &str, content: &str) -> Channel {
        self.thread(json!({ "channel_id": forum.id, "name": title, "content": content })).await
    }

    /// Uses a slash command, as soon as it is registered.
    ///
    /// # Panics
    /// If it is not registered in time, or has other options.
    pub async fn slash(&self, channel: &Channel, command: &str, options: Value) -> Interaction {
        let given = json!({
            "channel_id": channel.id,
            "user_id": self.id,
            "name": command,
            "options": options,
            "within": PATIENCE.as_secs_f64(),
        });
        self.control.post("slash", &given).await
    }

    /// Presses the button of a message with this label or custom id.
    ///
    /// # Panics
    /// If there is no such button that is enabled.
    pub async fn clicks(&self, message: &Message, button: &str) -> Interaction {
        let found = message.buttons.iter().find(|each| each.label == button || each.custom_id == button);
        let found = found.unwrap_or_else(|| panic!("no button `{button}`: {:?}", message.buttons));
        let given = json!({
            "channel_id": message.channel_id,
            "user_id": self.id,
            "message_id": message.id,
            "custom_id": found.custom_id,
        });
        self.control.post("click", &given).await
    }

    /// Stops accepting direct messages, or accepts them again.
    pub async fn closes_dms(&self, closed: bool) {
        self.control.act("close_dms", &json!({ "user_id": self.id, "closed": closed })).await;
    }

    /// The messages that this person sees in a channel, oldest first.
    pub async fn sees(&self, channel: &Channel) -> Vec<Message> {
        crate::server::messages(&self.control, channel, Some(&self.id)).await
    }

    async fn message(&self, channel: &Channel, mut given: Value) -> Message {
        given["channel_id"] = json!(channel.id);
        given["user_id"] = json!(self.id);
        self.control.post("message", &given).await
    }

    async fn thread(&self, mut given: Value) -> Channel {
        given["user_id"] = json!(self.id);
        let answer = self.control.post("thread", &given).await;
        Channel { control: self.control.clone(), id: id(&answer, "channel_id") }
    }

    async fn reaction(&self, message: &Message, emoji: &str, remove: bool) {
        let given = json!({
            "channel_id": message.channel_id,
            "message_id": message.id,
            "user_id": self.id,
            "emoji": emoji,
            "remove": remove,
        });
        self.control.act("react", &given).await;
    }

    fn place_of(&self, message: &Message) -> Channel {
        Channel { control: self.control.clone(), id: message.channel_id.clone() }
    }
}

fn hexadecimal(data: &[u8]) -> String {
    use std::fmt::Write;
    data.iter().fold(String::with_capacity(data.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string succeeds");
        text
    })
}
