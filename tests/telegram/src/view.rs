//! What is visible: to a person in a chat, and to a test in the transcript.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::{
    calls::Call,
    text::Entity,
    world::{
        World,
        chat::Chat,
        message::{Author, Message},
    },
};

/// A message as a chat shows it now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VisibleMessage {
    /// Unique within its chat.
    pub id: i64,
    /// Whether the bot sent it.
    pub ours: bool,
    /// The sender's id; the chat's id for a channel's posts.
    pub from: i64,
    /// The text or the caption.
    pub text: String,
    /// Formatting of the text.
    pub entities: Vec<Entity>,
    /// The id of the message that it replies to.
    pub reply_to: Option<i64>,
    /// The topic's id.
    pub thread: Option<i64>,
    /// The inline keyboard's rows.
    pub buttons: Vec<Vec<Button>>,
    /// The kind of media: `photo`, `document`, `location`, ...
    pub media: Option<String>,
    /// The `media_group_id` of its album.
    pub album: Option<String>,
    /// Unix times in seconds.
    pub edits: Vec<i64>,
    /// All emoji reactions.
    pub reactions: Vec<String>,
    /// The bot's emoji reactions.
    pub our_reactions: Vec<String>,
    /// Whether link previews are enabled.
    pub link_preview: bool,
    /// When it was sent.
    #[serde(skip)]
    pub at: Instant,
}

/// A button under a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Button {
    pub text: String,
    /// The callback data that a press sends to the bot.
    pub data: Option<String>,
    pub url: Option<String>,
}

/// A draft that the bot streamed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Draft {
    /// The draft's id: changes under the same id are animated.
    pub id: i64,
    /// The topic's id.
    pub thread: Option<i64>,
    pub text: String,
    /// Formatting of the text.
    pub entities: Vec<Entity>,
    /// When it was sent.
    #[serde(skip)]
    pub at: Instant,
}

/// A chat action such as "is typing".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypingNotice {
    /// `typing`, `upload_photo`, ...
    pub action: String,
    /// The topic's id.
    pub thread: Option<i64>,
    /// When it was sent.
    #[serde(skip)]
    pub at: Instant,
    /// Whether it is still shown: less than five seconds old, and no message since.
    pub shown: bool,
}

/// Access to the whole state at one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    world: &'a World,
}

/// How long a chat action is shown, in seconds.
const NOTICE_SECONDS: u64 = 5;

impl<'a> View<'a> {
    pub(crate) fn of(world: &'a World) -> Self {
        Self { world }
    }

    /// A chat's messages, oldest first; empty for an unknown chat.
    #[must_use]
    pub fn visible(&self, chat: i64) -> Vec<VisibleMessage> {
        let bot = self.world.bot.id;
        self.chat(chat).map_or_else(Vec::new, |chat| chat.messages.values().map(|it| visible(chat, it, bot)).collect())
    }

    /// The texts of the bot's messages, oldest first.
    #[must_use]
    pub fn bot_texts(&self, chat: i64) -> Vec<String> {
        let ours = Author::User(self.world.bot.id);
        let messages = self.chat(chat).into_iter().flat_map(|chat| chat.messages.values());
        let words = |message: &Message| message.content.words().map(|words| words.text.clone()).unwrap_or_default();
        messages.filter(|message| message.author == ours).map(words).collect()
    }

    #[must_use]
    pub fn message(&self, chat: i64, id: i64) -> Option<VisibleMessage> {
        let chat = self.chat(chat)?;
        Some(visible(chat, chat.messages.get(&id)?, self.world.bot.id))
    }

    /// When a message was sent.
    pub(crate) fn arrived(self, chat: i64, id: i64) -> Option<Instant> {
        self.world.chats.get(&chat)?.messages.get(&id).map(|message| message.arrived)
    }

    /// The draft that a chat shows now.
    #[must_use]
    pub fn draft(&self, chat: i64, thread: Option<i64>) -> Option<Draft> {
        self.chat(chat)?.drafts.get(&thread).cloned()
    }

    /// The last 200 states of all drafts in a chat.
    #[must_use]
    pub fn past_drafts(&self, chat: i64) -> Vec<Draft> {
        self.chat(chat).map_or_else(Vec::new, |chat| chat.past_drafts.iter().cloned().collect())
    }

    /// The last 200 chat actions in a chat.
    #[must_use]
    pub fn typing(&self, chat: i64) -> Vec<TypingNotice> {
        let notices = self.chat(chat).into_iter().flat_map(|chat| &chat.notices);
        notices
            .map(|it| TypingNotice {
                action: it.action.clone(),
                thread: it.thread,
                at: it.at,
                shown: !it.ended && it.at.elapsed().as_secs() < NOTICE_SECONDS,
            })
            .collect()
    }

    /// The calls of a method, oldest first.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.world.calls.kept().filter(|call| call.method.eq_ignore_ascii_case(method)).cloned().collect()
    }

    /// All calls, oldest first.
    #[must_use]
    pub fn all_calls(&self) -> Vec<Call> {
        self.world.calls.kept().cloned().collect()
    }

    /// How many calls there were, kept or not.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.world.calls.total()
    }

    /// How many updates the bot has not confirmed.
    #[must_use]
    pub fn pending_updates(&self) -> usize {
        self.world.updates.pending()
    }

    /// How many faults still wait for a call.
    #[must_use]
    pub fn pending_faults(&self) -> usize {
        self.world.faults.len()
    }

    /// The bot's answer to a callback query.
    #[must_use]
    pub fn callback_answer(&self, id: &str) -> Option<Value> {
        self.world.callbacks.get(id)?.answer.clone()
    }

    /// The result of `getMyCommands` without a scope: names and descriptions.
    #[must_use]
    pub fn commands(&self) -> Vec<(String, String)> {
        let listed = self.world.commands.get(&(String::new(), String::new())).and_then(Value::as_array);
        let text = |command: &Value, key: &str| command[key].as_str().unwrap_or_default().to_owned();
        listed.into_iter().flatten().map(|it| (text(it, "command"), text(it, "description"))).collect()
    }

    /// The content of a message's file: of the largest size for a photo.
    #[must_use]
    pub fn file(&self, chat: i64, message: i64) -> Option<Vec<u8>> {
        let fields = &self.chat(chat)?.messages.get(&message)?.content.fields;
        let id = fields.values().find_map(|field| {
            let field = field.as_array().map_or(Some(field), |sizes| sizes.last())?;
            field.get("file_id")?.as_str()
        });
        self.world.file(id?).map(|file| file.bytes.to_vec())
    }

    fn chat(self, id: i64) -> Option<&'a Chat> {
        self.world.chats.get(&id)
    }
}

fn visible(chat: &Chat, message: &Message, bot: i64) -> VisibleMessage {
    let words = message.content.words();
    let from = match message.author {
        Author::User(id) => id,
        Author::Channel => chat.id,
    };
    let emoji = |reactions: &Vec<Value>| {
        reactions.iter().filter_map(|it| it["emoji"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let preview = message.link_preview.as_ref().and_then(|options| options.get("is_disabled"));
    VisibleMessage {
        id: message.id,
        ours: from == bot,
        from,
        text: words.map(|words| words.text.clone()).unwrap_or_default(),
        entities: words.map(|words| words.entities.clone()).unwrap_or_default(),
        reply_to: message.reply_to,
        thread: message.thread,
        buttons: message.markup.as_ref().map(buttons).unwrap_or_default(),
        media: message.content.fields.keys().next().cloned(),
        album: message.album.clone(),
        edits: message.edits.clone(),
        reactions: message.reactions.values().flat_map(emoji).collect(),
        our_reactions: message.reactions.get(&bot).map(emoji).unwrap_or_default(),
        link_preview: preview.and_then(Value::as_bool) != Some(true),
        at: message.arrived,
    }
}

/// The rows of an inline keyboard.
pub(crate) fn buttons(markup: &Value) -> Vec<Vec<Button>> {
    let text = |button: &Value, key: &str| button[key].as_str().map(str::to_owned);
    let button = |it: &Value| Button {
        text: text(it, "text").unwrap_or_default(),
        data: text(it, "callback_data"),
        url: text(it, "url"),
    };
    let rows = markup["inline_keyboard"].as_array().into_iter().flatten();
    rows.map(|row| row.as_array().into_iter().flatten().map(button).collect()).collect()
}
