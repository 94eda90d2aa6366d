//! What people do, and which updates the bot gets as a result.

use serde_json::{Value, json};

use super::{
    ANONYMOUS, Callback, World,
    chat::{Chat, ChatKind, Membership},
    message::{Author, Content, Message, NewMessage},
    user::User,
};
use crate::{clock::unix_seconds, text::Formatted};

impl World {
    /// Adds a person or a bot with a private chat; returns their id.
    pub(crate) fn add_person(
        &mut self,
        name: &str,
        username: Option<&str>,
        is_bot: bool,
        membership: Membership,
    ) -> i64 {
        let id = 1_000_000 + self.next_id();
        let username = username.map(str::to_owned);
        let mut chat = Chat::new(id, ChatKind::Private, name, username.as_deref());
        chat.membership = membership;
        self.add_user(User { id, is_bot, first_name: name.to_owned(), username });
        self.add_chat(chat);
        id
    }

    /// Adds a group or channel that the bot is in.
    pub(crate) fn add_group(&mut self, kind: ChatKind, title: &str, username: Option<&str>) -> i64 {
        let number = 5_000_000 + self.next_id();
        let id = if kind == ChatKind::Group { -number } else { -1_000_000_000_000 - number };
        self.add_chat(Chat::new(id, kind, title, username));
        id
    }

    /// Adds a topic; its id is that of the service message about it.
    pub(crate) fn add_topic(&mut self, chat: i64, author: i64, name: &str) -> i64 {
        let topic = json!({ "name": name, "icon_color": 7_322_096 });
        let content = Content::field("forum_topic_created", topic);
        let id = self.chat(chat).last_message + 1;
        let mut new = NewMessage::new(Author::User(author), content);
        new.thread = Some(id);
        self.chat_mut(chat).topics.insert(id, name.to_owned());
        self.posts(chat, new)
    }

    /// Adds a message from somebody other than the bot.
    pub(crate) fn posts(&mut self, chat: i64, new: NewMessage) -> i64 {
        if self.chat(chat).membership == Membership::NotStarted {
            self.chat_mut(chat).membership = Membership::Member;
        }
        let id = self.add_message(chat, new);
        let post = self.chat(chat).kind == ChatKind::Channel;
        self.push_message_update(if post { "channel_post" } else { "message" }, chat, id);
        id
    }

    /// Changes the text of a message.
    ///
    /// # Panics
    /// If there is no such message.
    pub(crate) fn edits(&mut self, chat: i64, id: i64, words: Formatted) {
        let message = self.message_mut(chat, id);
        if message.content.text.is_some() {
            message.content.text = Some(words);
        } else {
            message.content.caption = Some(words);
        }
        message.edits.push(unix_seconds());
        let post = self.chat(chat).kind == ChatKind::Channel;
        self.push_message_update(if post { "edited_channel_post" } else { "edited_message" }, chat, id);
        self.notify_changed(chat);
    }

    /// Removes a message; bots get no update about it.
    pub(crate) fn removes(&mut self, chat: i64, id: i64) {
        self.chat_mut(chat).messages.remove(&id);
        self.notify_changed(chat);
    }

    /// Presses the button with this data; returns the query's id.
    ///
    /// # Panics
    /// If there is no such message.
    pub(crate) fn presses(&mut self, person: i64, chat: i64, message: i64, data: &str) -> String {
        let number = self.next_id();
        let id = format!("{}{number:09}", self.bot.id);
        let _ = self.message_mut(chat, message);
        let query = json!({
            "id": id,
            "from": self.user_json(person),
            "message": self.message_json(chat, message),
            "chat_instance": format!("{}", chat.wrapping_mul(7_919)),
            "data": data,
        });
        self.callbacks.insert(id.clone(), Callback { chat, answer: None, expired: false });
        self.push_update("callback_query", chat, &query);
        id
    }

    /// Replaces the person's reactions to a message.
    ///
    /// # Panics
    /// If there is no such message.
    pub(crate) fn reacts(&mut self, person: i64, chat: i64, id: i64, emoji: &[&str]) {
        let new: Vec<Value> = emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect();
        let reactions = &mut self.message_mut(chat, id).reactions;
        let old = if new.is_empty() { reactions.remove(&person) } else { reactions.insert(person, new.clone()) };
        let at = self.chat(chat);
        // In groups only administrators get reactions.
        let is_reported =
            if at.kind.is_group() { at.membership == Membership::Administrator } else { bot_is_present(at) };
        let update = json!({
            "chat": at.to_json(),
            "message_id": id,
            "user": self.user_json(person),
            "date": unix_seconds(),
            "old_reaction": old.unwrap_or_default(),
            "new_reaction": new,
        });
        if is_reported {
            self.push_update("message_reaction", chat, &update);
        }
        self.notify_changed(chat);
    }

    /// Changes the bot's membership in a chat on behalf of `by`.
    pub(crate) fn set_membership(&mut self, chat: i64, by: i64, membership: Membership) {
        let old = std::mem::replace(&mut self.chat_mut(chat).membership, membership);
        if old == membership {
            return;
        }
        let bot = self.bot.id;
        let update = json!({
            "chat": self.chat(chat).to_json(),
            "from": self.user_json(by),
            "date": unix_seconds(),
            "old_chat_member": self.member_json(bot, old),
            "new_chat_member": self.member_json(bot, membership),
        });
        self.push_update("my_chat_member", chat, &update);
        self.notify_changed(chat);
    }

    /// Upgrades a group to a supergroup and returns the new id.
    pub(crate) fn migrate(&mut self, group: i64) -> i64 {
        let (title, membership) = (self.chat(group).title.clone(), self.chat(group).membership);
        let to = self.add_group(ChatKind::Supergroup, &title, None);
        self.chat_mut(to).membership = membership;
        let by = Author::User(ANONYMOUS);
        self.posts(group, NewMessage::new(by, Content::field("migrate_to_chat_id", to.into())));
        self.chat_mut(group).migrated_to = Some(to);
        self.posts(to, NewMessage::new(by, Content::field("migrate_from_chat_id", group.into())));
        to
    }

    /// A message that exists.
    fn message_mut(&mut self, chat: i64, id: i64) -> &mut Message {
        let found = self.chat_mut(chat).messages.get_mut(&id);
        found.unwrap_or_else(|| panic!("there is no message {id} in the chat {chat}"))
    }

    fn push_message_update(&mut self, kind: &str, chat: i64, id: i64) {
        if self.bot_receives(chat, id) {
            let message = self.message_json(chat, id);
            self.push_update(kind, chat, &message);
        }
    }

    /// Whether the bot gets a message: in a group with privacy mode, only if it is directed at the bot
    /// (<https://core.telegram.org/bots/features#privacy-mode>).
    fn bot_receives(&self, chat: i64, id: i64) -> bool {
        let chat = self.chat(chat);
        if !bot_is_present(chat) {
            return false;
        }
        if !chat.kind.is_group() || chat.membership == Membership::Administrator || !self.privacy {
            return true;
        }
        let Some(message) = chat.messages.get(&id) else { return false };
        let ours = Author::User(self.bot.id);
        let answers_us =
            message.reply_to.and_then(|it| chat.messages.get(&it)).is_some_and(|answered| answered.author == ours);
        let about_the_chat = message.content.fields.keys().any(|key| SERVICE.contains(&&**key));
        answers_us || about_the_chat || message.content.words().is_some_and(|words| self.addressed(words))
    }

    /// Whether a text contains a command for the bot, or mentions it.
    fn addressed(&self, words: &Formatted) -> bool {
        let units: Vec<u16> = words.text.encode_utf16().collect();
        let own_name = format!("@{}", self.bot.username).to_lowercase();
        words.entities.iter().any(|entity| {
            let marked = units.get(entity.offset..entity.offset + entity.length).unwrap_or_default();
            let marked = String::from_utf16_lossy(marked).to_lowercase();
            match &*entity.kind {
                "bot_command" => marked.find('@').is_none_or(|at| marked[at..] == own_name),
                "mention" => marked == own_name,
                "text_mention" => entity.user.as_ref().is_some_and(|user| user["id"] == self.bot.id),
                _ => false,
            }
        })
    }
}

/// Service messages, which privacy mode lets through.
const SERVICE: [&str; 9] = [
    "new_chat_members",
    "left_chat_member",
    "new_chat_title",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "forum_topic_created",
    "forum_topic_edited",
    "pinned_message",
    "group_chat_created",
];

fn bot_is_present(chat: &Chat) -> bool {
    matches!(chat.membership, Membership::Member | Membership::Administrator)
}
