//! Renders objects as in the Bot API.

use serde_json::{Map, Value, json};

use super::{
    World,
    chat::{Chat, ChatKind, Membership},
    message::{Author, Message},
};

impl World {
    /// A message with the message that it replies to.
    pub(crate) fn message_json(&self, chat: i64, id: i64) -> Value {
        let chat = self.chat(chat);
        let message = chat.messages.get(&id).expect("the message was looked up");
        let mut rendered = self.plain(chat, message);
        if let Some(answered) = answered(chat, message) {
            rendered.insert("reply_to_message".to_owned(), Value::Object(self.plain(chat, answered)));
        }
        Value::Object(rendered)
    }

    pub(crate) fn user_json(&self, id: i64) -> Value {
        self.users.get(&id).expect("the user was added").to_json()
    }

    /// A message without the message that it replies to.
    fn plain(&self, chat: &Chat, message: &Message) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
        put("message_id", message.id.into());
        match message.author {
            Author::User(id) => put("from", self.user_json(id)),
            Author::Channel => put("sender_chat", chat.to_json()),
        }
        put("chat", chat.to_json());
        put("date", message.date.into());
        if let Some(date) = message.edits.last() {
            put("edit_date", (*date).into());
        }
        if let Some(thread) = message.thread {
            put("message_thread_id", thread.into());
            if chat.topics.contains_key(&thread) {
                put("is_topic_message", true.into());
            }
        }
        if let Some(quote) = &message.quote {
            put("quote", quote.clone());
        }
        if let Some(album) = &message.album {
            put("media_group_id", album.clone().into());
        }
        let content = &message.content;
        for (words, key, entities) in
            [(&content.text, "text", "entities"), (&content.caption, "caption", "caption_entities")]
        {
            let Some(words) = words else { continue };
            put(key, words.text.clone().into());
            if let Some(marked) = words.entities_json() {
                put(entities, marked);
            }
        }
        for (key, value) in &content.fields {
            put(key, value.clone());
        }
        if let Some(options) = &message.link_preview {
            put("link_preview_options", options.clone());
        }
        if let Some(markup) = &message.markup {
            put("reply_markup", markup.clone());
        }
        out
    }

    /// A membership as a `ChatMember`.
    pub(crate) fn member_json(&self, user: i64, membership: Membership) -> Value {
        let user = self.user_json(user);
        match membership {
            Membership::Member => json!({ "status": "member", "user": user }),
            Membership::Kicked => json!({ "status": "kicked", "user": user, "until_date": 0 }),
            Membership::Left | Membership::NotStarted => json!({ "status": "left", "user": user }),
            Membership::Administrator => json!({
                "status": "administrator", "user": user, "can_be_edited": false, "is_anonymous": false,
                "can_manage_chat": true, "can_delete_messages": true, "can_manage_video_chats": false,
                "can_restrict_members": false, "can_promote_members": false, "can_change_info": false,
                "can_invite_users": true, "can_post_stories": false, "can_edit_stories": false,
                "can_delete_stories": false, "can_send_welcome_messages": false, "can_pin_messages": true,
            }),
        }
    }
}

/// The message that this one replies to; in a topic, by default the topic's first message.
fn answered<'a>(chat: &'a Chat, message: &Message) -> Option<&'a Message> {
    let topic = message.thread.filter(|thread| chat.kind == ChatKind::Forum && *thread != message.id);
    chat.messages.get(&message.reply_to.or(topic)?)
}
