//! Handles for people and groups.

#![expect(clippy::must_use_candidate, reason = "people act for the effect, and the returned id is often not needed")]

use std::{fmt, sync::Arc, time::Instant};

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use crate::{
    methods::MediaKind,
    shared::{PATIENCE, Shared},
    text::{Entity, Formatted},
    view::{Button, View, VisibleMessage},
    world::{
        ANONYMOUS, World,
        chat::{ChatKind, Membership},
        message::{Author, Content, NewMessage},
    },
};

/// A person in one chat, by default their private chat with the bot.
///
/// ```
/// # use rejoinder_telegram_double::TelegramDouble;
/// # async fn example(telegram: &TelegramDouble) {
/// let ada = telegram.person("Ada");
/// let family = telegram.forum("Family");
/// let trips = family.topic("Trips");
/// ada.says("hello");
/// ada.at(&family).topic(trips).says("where are we going?");
/// # }
/// ```
#[derive(Clone)]
pub struct Person {
    shared: Arc<Shared>,
    id: i64,
    chat: i64,
    thread: Option<i64>,
}

/// Which button to press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    /// By its index from 0, row by row.
    Index(usize),
    /// By its callback data, or else by its text.
    Data(String),
}

impl From<usize> for Press {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl From<&str> for Press {
    fn from(data: &str) -> Self {
        Self::Data(data.to_owned())
    }
}

/// A file to send.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingFile<'a> {
    pub(crate) kind: MediaKind,
    pub(crate) name: Option<&'a str>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) bytes: &'a [u8],
    pub(crate) caption: &'a str,
    /// The declared size, if it differs from that of `bytes`.
    pub(crate) size: Option<u64>,
}

impl<'a> OutgoingFile<'a> {
    pub(crate) fn new(kind: MediaKind, bytes: &'a [u8]) -> Self {
        Self { kind, name: None, media_type: None, bytes, caption: "", size: None }
    }
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Person")
            .field("id", &self.id)
            .field("chat", &self.chat)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl Person {
    pub(crate) fn new(shared: Arc<Shared>, id: i64) -> Self {
        Self { shared, id, chat: id, thread: None }
    }

    /// The user id, which is also the private chat's id.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The chat that this handle acts in.
    #[must_use]
    pub fn chat(&self) -> i64 {
        self.chat
    }

    /// The topic that this handle acts in.
    #[must_use]
    pub fn thread(&self) -> Option<i64> {
        self.thread
    }

    /// The same person in this group.
    #[must_use]
    pub fn at(&self, group: &Group) -> Self {
        self.at_chat(group.id)
    }

    pub(crate) fn at_chat(&self, chat: i64) -> Self {
        Self { chat, thread: None, ..self.clone() }
    }

    /// The same person in this topic of the chat.
    #[must_use]
    pub fn topic(&self, thread: i64) -> Self {
        Self { thread: Some(thread), ..self.clone() }
    }

    /// Opens a topic in the chat; returns its thread id.
    pub fn opens_topic(&self, name: &str) -> i64 {
        self.shared.lock().add_topic(self.chat, self.id, name)
    }

    /// Sends a text; commands, mentions and links in it are detected. Returns the message's id, as all sending methods do.
    pub fn says(&self, text: &str) -> i64 {
        self.says_marked(text, Vec::new())
    }

    /// Sends a text with these entities and the detected ones.
    pub fn says_marked(&self, text: &str, entities: Vec<Entity>) -> i64 {
        self.posts(Content::text(Formatted::typed(text, entities)), None, None)
    }

    /// Replies to a message.
    pub fn replies(&self, message: i64, text: &str) -> i64 {
        self.posts(Content::text(Formatted::typed(text, Vec::new())), Some(message), None)
    }

    /// Replies to a message and quotes a part of it.
    pub fn quotes(&self, message: i64, quote: &str, text: &str) -> i64 {
        let content = Content::text(Formatted::typed(text, Vec::new()));
        let quote = json!({ "text": quote, "position": 0, "is_manual": true });
        let mut new = self.new_message(content);
        new.reply_to = Some(message);
        new.quote = Some(quote);
        self.shared.lock().posts(self.chat, new)
    }

    /// Changes a message's text or caption.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn edits(&self, message: i64, text: &str) {
        self.shared.lock().edits(self.chat, message, Formatted::typed(text, Vec::new()));
    }

    /// Deletes a message; the bot gets no update.
    pub fn deletes(&self, message: i64) {
        self.shared.lock().removes(self.chat, message);
    }

    /// Presses a button; returns the callback query's id.
    ///
    /// # Panics
    /// If the message has no such button.
    pub fn presses(&self, message: i64, button: impl Into<Press>) -> String {
        self.try_press(message, &button.into()).unwrap_or_else(|why| panic!("{why}"))
    }

    /// As [`Person::presses`], with an error instead of a panic.
    pub(crate) fn try_press(&self, message: i64, press: &Press) -> Result<String, String> {
        let mut world = self.shared.lock();
        let seen = View::of(&world).message(self.chat, message);
        let seen = seen.ok_or_else(|| format!("there is no message {message} in the chat {}", self.chat))?;
        let buttons: Vec<Button> = seen.buttons.into_iter().flatten().collect();
        let found = match press {
            Press::Index(index) => buttons.get(*index),
            Press::Data(data) => {
                let by_data = buttons.iter().find(|button| button.data.as_ref() == Some(data));
                by_data.or_else(|| buttons.iter().find(|button| button.text == *data))
            }
        };
        let data = found.and_then(|button| button.data.as_deref());
        let data = data.ok_or_else(|| format!("no button {press:?} under message {message}: {buttons:?}"))?;
        Ok(world.presses(self.id, self.chat, message, data))
    }

    /// Replaces the reaction to a message; an empty `emoji` removes it.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn reacts(&self, message: i64, emoji: &str) {
        let emoji: &[&str] = if emoji.is_empty() { &[] } else { &[emoji] };
        self.shared.lock().reacts(self.id, self.chat, message, emoji);
    }

    /// Sends a photo; the caption may be empty.
    pub fn sends_photo(&self, bytes: &[u8], caption: &str) -> i64 {
        self.sends_file(&OutgoingFile { caption, ..OutgoingFile::new(MediaKind::Photo, bytes) })
    }

    /// Sends several photos as an album: one message each, with the caption on the first.
    pub fn sends_album(&self, photos: &[&[u8]], caption: &str) -> Vec<i64> {
        let album = self.shared.lock().next_id().to_string();
        let send = |(at, bytes): (usize, &&[u8])| {
            let caption = if at == 0 { caption } else { "" };
            let mut world = self.shared.lock();
            let content = content(&mut world, &OutgoingFile { caption, ..OutgoingFile::new(MediaKind::Photo, bytes) });
            let mut new = self.new_message(content);
            new.album = Some(album.clone());
            world.posts(self.chat, new)
        };
        photos.iter().enumerate().map(send).collect()
    }

    /// Sends a file; the caption may be empty.
    pub fn sends_document(&self, name: &str, media_type: &str, bytes: &[u8], caption: &str) -> i64 {
        let sent = OutgoingFile::new(MediaKind::Document, bytes);
        self.sends_file(&OutgoingFile { name: Some(name), media_type: Some(media_type), caption, ..sent })
    }

    /// Sends a file with this declared size.
    pub fn sends_large_document(&self, name: &str, size: u64) -> i64 {
        self.sends_file(&OutgoingFile {
            name: Some(name),
            size: Some(size),
            ..OutgoingFile::new(MediaKind::Document, b"large")
        })
    }

    /// Sends a voice message.
    pub fn sends_voice(&self, bytes: &[u8]) -> i64 {
        self.sends_file(&OutgoingFile { media_type: Some("audio/ogg"), ..OutgoingFile::new(MediaKind::Voice, bytes) })
    }

    /// Sends a sticker with this emoji.
    pub fn sends_sticker(&self, emoji: &str) -> i64 {
        let mut content = content(&mut self.shared.lock(), &OutgoingFile::new(MediaKind::Sticker, b"webp"));
        if let Some(sticker) = content.fields.get_mut("sticker") {
            sticker["emoji"] = emoji.into();
        }
        self.posts(content, None, None)
    }

    pub fn sends_location(&self, latitude: f64, longitude: f64) -> i64 {
        let place = json!({ "latitude": latitude, "longitude": longitude });
        self.posts(Content::field("location", place), None, None)
    }

    pub fn sends_contact(&self, name: &str, phone: &str) -> i64 {
        let contact = json!({ "first_name": name, "phone_number": phone });
        self.posts(Content::field("contact", contact), None, None)
    }

    /// Sends a message with these additional fields of the Bot API's `Message`.
    pub fn sends(&self, fields: Map<String, Value>) -> i64 {
        self.posts(Content { fields, ..Content::default() }, None, None)
    }

    pub(crate) fn sends_file(&self, sent: &OutgoingFile<'_>) -> i64 {
        let mut world = self.shared.lock();
        let content = content(&mut world, sent);
        world.posts(self.chat, self.new_message(content))
    }

    pub(crate) fn posts(&self, content: Content, reply_to: Option<i64>, quote: Option<Value>) -> i64 {
        let mut new = self.new_message(content);
        (new.reply_to, new.quote) = (reply_to, quote);
        self.shared.lock().posts(self.chat, new)
    }

    fn new_message(&self, content: Content) -> NewMessage {
        let mut new = NewMessage::new(Author::User(self.id), content);
        new.thread = self.thread;
        new
    }

    /// Blocks the bot.
    pub fn blocks(&self) {
        self.shared.lock().set_membership(self.id, self.id, Membership::Kicked);
    }

    /// Unblocks the bot.
    pub fn unblocks(&self) {
        self.shared.lock().set_membership(self.id, self.id, Membership::Member);
    }

    /// All messages in the chat, oldest first.
    #[must_use]
    pub fn sees(&self) -> Vec<VisibleMessage> {
        View::of(&self.shared.lock()).visible(self.chat)
    }

    /// Waits for a message of the bot with exactly this text.
    ///
    /// # Panics
    /// If there is none within [`PATIENCE`], listing the messages.
    pub async fn hears(&self, text: &str) -> VisibleMessage {
        self.finds(text, |message| message.ours && message.text == text).await
    }

    /// Waits for the message after `message` and returns its time. Reads nothing else, for benchmarks with crowds.
    ///
    /// # Panics
    /// If there is none within [`PATIENCE`].
    pub async fn next_after(&self, message: i64) -> Instant {
        let changed = Arc::clone(&self.shared.lock().chat(self.chat).changed);
        let find = |view: View<'_>| view.arrived(self.chat, message + 1);
        let found = self.shared.wait(&changed, PATIENCE, find).await;
        found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for what comes after message {message}"))
    }

    /// Waits for a message for which `wanted` holds; returns the latest.
    ///
    /// # Panics
    /// If there is none within [`PATIENCE`], listing the messages.
    pub async fn finds(&self, about: &str, mut wanted: impl FnMut(&VisibleMessage) -> bool) -> VisibleMessage {
        let changed = Arc::clone(&self.shared.lock().chat(self.chat).changed);
        let find = |view: View<'_>| view.visible(self.chat).into_iter().rev().find(|message| wanted(message));
        let found = self.shared.wait(&changed, PATIENCE, find).await;
        found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for `{about}`; there is {:#?}", self.sees()))
    }
}

fn content(world: &mut World, sent: &OutgoingFile<'_>) -> Content {
    let &OutgoingFile { kind, name, media_type, bytes, caption, size } = sent;
    let file = world.add_file(kind.folder(), name, media_type, Bytes::copy_from_slice(bytes));
    file.size = size.unwrap_or(file.size);
    let shown = kind.show(file);
    Content::field(kind.name(), shown).captioned(Formatted::typed(caption, Vec::new()))
}

/// A group, a supergroup, a forum or a channel.
#[derive(Clone)]
pub struct Group {
    shared: Arc<Shared>,
    id: i64,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Group {
    pub(crate) fn new(shared: Arc<Shared>, id: i64) -> Self {
        Self { shared, id }
    }

    #[must_use]
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Adds a topic; returns its thread id.
    pub fn topic(&self, name: &str) -> i64 {
        self.shared.lock().add_topic(self.id, ANONYMOUS, name)
    }

    /// Posts as the channel itself.
    ///
    /// # Panics
    /// If it is not a channel.
    pub fn posts(&self, text: &str) -> i64 {
        let mut world = self.shared.lock();
        assert_eq!(world.chat(self.id).kind, ChatKind::Channel, "only a channel posts by itself");
        let content = Content::text(Formatted::typed(text, Vec::new()));
        world.posts(self.id, NewMessage::new(Author::Channel, content))
    }

    /// Removes the bot from the group.
    pub fn kicks(&self) {
        self.set_membership(Membership::Kicked);
    }

    /// Makes the bot a member.
    pub fn admits(&self) {
        self.set_membership(Membership::Member);
    }

    /// Makes the bot an administrator.
    pub fn promotes(&self) {
        self.set_membership(Membership::Administrator);
    }

    fn set_membership(&self, membership: Membership) {
        self.shared.lock().set_membership(self.id, ANONYMOUS, membership);
    }

    /// Allows only these emoji as reactions.
    pub fn allows_reactions(&self, emoji: &[&str]) {
        let emoji = emoji.iter().map(|it| (*it).to_owned()).collect();
        self.shared.lock().chat_mut(self.id).available_reactions = Some(emoji);
    }

    /// All messages in the group, oldest first.
    #[must_use]
    pub fn visible(&self) -> Vec<VisibleMessage> {
        View::of(&self.shared.lock()).visible(self.id)
    }
}
