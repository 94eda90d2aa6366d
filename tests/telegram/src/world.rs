//! The server's whole state. It is behind one lock, which is never held across an await: a call takes it once, for
//! microseconds, and reads only the chat that it names.

pub(crate) mod chat;
pub(crate) mod file;
pub(crate) mod message;
mod people;
mod render;
pub(crate) mod update;
pub(crate) mod user;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Instant,
};

use axum::body::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

use self::{
    chat::{Chat, ChatKind},
    file::File,
    message::{Message, NewMessage},
    update::{Pauses, Updates},
    user::{Bot, User},
};
use crate::{
    calls::Calls,
    clock::{unix_millis, unix_seconds},
    error::ApiError,
    fault::Faults,
    limits::{Limits, Spent, refusal},
    params::{Params, integer},
};

/// The sender of messages without a particular author.
pub(crate) const ANONYMOUS: i64 = 1_087_968_824;

/// Notifications of changes.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Anything changed.
    pub(crate) changed: Notify,
    /// An update arrived, or a poll must end.
    pub(crate) poll: Notify,
    /// An update arrived, or the webhook changed.
    pub(crate) hook: Notify,
    /// The faults were removed.
    pub(crate) faults_cleared: Notify,
}

/// A pressed button.
#[derive(Debug)]
pub(crate) struct Callback {
    /// The chat of its message.
    pub(crate) chat: i64,
    pub(crate) answer: Option<Value>,
    pub(crate) expired: bool,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) bot: Bot,
    /// Privacy mode: in groups, the bot gets only messages directed at it.
    pub(crate) privacy: bool,
    /// Whether private chats have topics.
    pub(crate) private_topics: bool,
    /// How many messages of each chat are kept.
    pub(crate) kept_messages: usize,
    pub(crate) users: HashMap<i64, User>,
    pub(crate) chats: HashMap<i64, Chat>,
    usernames: HashMap<String, i64>,
    last_id: i64,
    pub(crate) updates: Updates,
    pub(crate) pauses: Pauses,
    files: Vec<File>,
    pub(crate) callbacks: HashMap<String, Callback>,
    /// By scope and language.
    pub(crate) commands: BTreeMap<(String, String), Value>,
    pub(crate) limits: Limits,
    pub(crate) spent: Spent,
    pub(crate) faults: Faults,
    pub(crate) calls: Calls,
    pub(crate) signals: Arc<Signals>,
}

impl World {
    pub(crate) fn new(bot: Bot, signals: Arc<Signals>) -> Self {
        let anonymous = User {
            id: ANONYMOUS,
            is_bot: true,
            first_name: "Group".to_owned(),
            username: Some("GroupAnonymousBot".to_owned()),
        };
        // Starts at the current time, so that a restarted server does not repeat update ids.
        let first_update = unix_millis() / 100 % (1 << 30);
        Self {
            users: HashMap::from([(bot.id, bot.to_user()), (ANONYMOUS, anonymous)]),
            bot,
            privacy: true,
            private_topics: false,
            kept_messages: usize::MAX,
            chats: HashMap::new(),
            usernames: HashMap::new(),
            last_id: 0,
            updates: Updates::new(first_update),
            pauses: Pauses::default(),
            files: Vec::new(),
            callbacks: HashMap::new(),
            commands: BTreeMap::new(),
            limits: Limits::default(),
            spent: Spent::default(),
            faults: Faults::default(),
            calls: Calls::default(),
            signals,
        }
    }

    /// A number that is unique in this world.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// The chat that the parameter `key` names: an id, or the `@username` of a public chat.
    ///
    /// # Errors
    /// 400 if there is no such chat.
    pub(crate) fn chat_id(&self, params: &Params, key: &str) -> Result<i64, ApiError> {
        let given = params.text(key).filter(|text| !text.is_empty());
        let given = given.ok_or_else(|| ApiError::bad_request(format!("{key} is empty")))?;
        self.find_chat(&given).ok_or_else(|| ApiError::bad_request("chat not found"))
    }

    /// As [`World::chat_id`] for the transcript: returns an id even if there is no such chat.
    pub(crate) fn named_chat(&self, params: &Params) -> Option<i64> {
        params.integer("chat_id").or_else(|| self.find_chat(&params.text("chat_id")?))
    }

    fn find_chat(&self, given: &str) -> Option<i64> {
        if let Some(name) = given.strip_prefix('@') {
            let id = *self.usernames.get(&name.to_ascii_lowercase())?;
            return self.chats.get(&id).filter(|chat| chat.kind != ChatKind::Private).map(|chat| chat.id);
        }
        let id = integer(&Value::from(given))?;
        self.chats.contains_key(&id).then_some(id)
    }

    /// The chat that a call writes to, if the bot may write there.
    ///
    /// # Errors
    /// The server's error: not found, blocked, kicked, migrated.
    pub(crate) fn writable(&self, params: &Params) -> Result<i64, ApiError> {
        let id = self.chat_id(params, "chat_id")?;
        self.chat(id).writable()?;
        Ok(id)
    }

    /// A chat that exists.
    pub(crate) fn chat(&self, id: i64) -> &Chat {
        self.chats.get(&id).expect("the chat was looked up")
    }

    /// A chat that exists.
    pub(crate) fn chat_mut(&mut self, id: i64) -> &mut Chat {
        self.chats.get_mut(&id).expect("the chat was looked up")
    }

    pub(crate) fn add_chat(&mut self, chat: Chat) {
        if let Some(username) = &chat.username {
            self.usernames.insert(username.to_ascii_lowercase(), chat.id);
        }
        self.chats.insert(chat.id, chat);
    }

    pub(crate) fn add_user(&mut self, user: User) {
        self.users.insert(user.id, user);
    }

    /// Counts a message against the rate limits, or rejects it.
    ///
    /// # Errors
    /// 429 with the time to wait.
    pub(crate) fn spend(&mut self, chat: i64) -> Result<(), ApiError> {
        let now = Instant::now();
        let Self { chats, limits, spent, .. } = self;
        let chat = chats.get_mut(&chat).expect("the chat was looked up");
        let group = if chat.kind.is_group() { limits.group } else { None };
        let waits = [spent.wait(&[limits.bot], now), chat.spent.wait(&[limits.chat, group], now)];
        if let Some(wait) = waits.into_iter().flatten().max() {
            return Err(refusal(wait));
        }
        if !limits.none() {
            spent.spend(now);
            chat.spent.spend(now);
        }
        Ok(())
    }

    /// Adds a message to a chat and returns its id.
    pub(crate) fn add_message(&mut self, chat: i64, new: NewMessage) -> i64 {
        let kept = self.kept_messages;
        let chat = self.chat_mut(chat);
        while chat.messages.len() >= kept.max(1) {
            chat.messages.pop_first();
        }
        chat.last_message += 1;
        let id = chat.last_message;
        let NewMessage { author, thread, reply_to, quote, album, content, markup, link_preview } = new;
        // In a supergroup without topics, a reply belongs to the thread of the message that it replies to.
        let answered = reply_to.filter(|_| chat.kind == ChatKind::Supergroup);
        let thread =
            thread.or_else(|| answered.map(|it| chat.messages.get(&it).and_then(|it| it.thread).unwrap_or(it)));
        let message = Message {
            id,
            date: unix_seconds(),
            arrived: Instant::now(),
            edits: Vec::new(),
            author,
            thread,
            reply_to,
            quote,
            album,
            content,
            markup,
            link_preview,
            reactions: BTreeMap::new(),
        };
        chat.messages.insert(id, message);
        let chat = chat.id;
        self.notify_changed(chat);
        id
    }

    /// Notifies those that wait for a change.
    pub(crate) fn notify_changed(&self, chat: i64) {
        if let Some(chat) = self.chats.get(&chat) {
            chat.changed.notify_waiters();
        }
        self.signals.changed.notify_waiters();
    }

    /// Queues an update if the bot wants its kind; returns whether it does.
    pub(crate) fn push_update(&mut self, kind: &str, chat: i64, payload: &Value) -> bool {
        let pushed = self.updates.push(kind, chat, payload);
        if pushed {
            self.signal_update();
        }
        pushed
    }

    pub(crate) fn push_raw_update(&mut self, body: &str) {
        self.updates.push_raw(body);
        self.signal_update();
    }

    fn signal_update(&self) {
        if self.updates.hook.is_some() {
            self.signals.hook.notify_one();
        } else {
            self.signals.poll.notify_waiters();
        }
        self.signals.changed.notify_waiters();
    }

    pub(crate) fn add_file(
        &mut self,
        folder: &'static str,
        name: Option<&str>,
        media_type: Option<&str>,
        bytes: Bytes,
    ) -> &mut File {
        let number = self.files.len();
        self.files.push(File {
            number,
            folder,
            name: name.map(str::to_owned),
            media_type: media_type.map(str::to_owned),
            size: bytes.len() as u64,
            bytes,
        });
        &mut self.files[number]
    }

    /// Finds a file by the `file_id` in messages.
    pub(crate) fn file(&self, id: &str) -> Option<&File> {
        let number: usize = id.get(id.len().checked_sub(12)?..)?.parse().ok()?;
        self.files.get(number).filter(|file| file.id() == id)
    }

    /// Finds a file by the path that `getFile` returns.
    pub(crate) fn file_at(&self, path: &str) -> Option<&File> {
        let name = path.rsplit('/').next()?.strip_prefix("file_")?;
        let number: usize = name.split('.').next()?.parse().ok()?;
        self.files.get(number).filter(|file| file.path() == path)
    }
}
