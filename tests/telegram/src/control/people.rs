//! The actions of people.

use std::sync::Arc;

use axum::{Json, extract::State};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ControlError, ControlResult, control_error};
use crate::{
    methods::MediaKind,
    people::{Group, OutgoingFile, Person, Press},
    shared::Shared,
    text::{Entity, Formatted},
    world::{
        ANONYMOUS,
        chat::{ChatKind, Membership},
        message::Content,
    },
};

#[derive(Deserialize)]
pub(super) struct NewPerson {
    name: String,
    username: Option<String>,
    #[serde(default)]
    bot: bool,
    /// Whether the private chat is open.
    #[serde(default = "yes")]
    started: bool,
}

fn yes() -> bool {
    true
}

pub(super) async fn add(State(shared): State<Arc<Shared>>, Json(new): Json<NewPerson>) -> ControlResult {
    let membership = if new.started && !new.bot { Membership::Member } else { Membership::NotStarted };
    let id = shared.lock().add_person(&new.name, new.username.as_deref(), new.bot, membership);
    Ok(Json(json!({ "id": id })))
}

#[derive(Deserialize)]
pub(super) struct NewChat {
    kind: ChatKind,
    title: String,
    username: Option<String>,
}

pub(super) async fn add_chat(State(shared): State<Arc<Shared>>, Json(new): Json<NewChat>) -> ControlResult {
    if new.kind == ChatKind::Private {
        return control_error("a private chat comes with its person");
    }
    let id = shared.lock().add_group(new.kind, &new.title, new.username.as_deref());
    Ok(Json(json!({ "id": id })))
}

/// Who acts, and where; by default in the private chat.
#[derive(Deserialize)]
pub(super) struct Actor {
    person: i64,
    chat: Option<i64>,
    thread: Option<i64>,
}

impl Actor {
    fn find(&self, shared: &Arc<Shared>) -> Result<Person, ControlError> {
        let chat = self.chat.unwrap_or(self.person);
        let world = shared.lock();
        if !world.users.contains_key(&self.person) {
            return control_error(format!("there is no person {}", self.person));
        }
        if !world.chats.contains_key(&chat) {
            return control_error(format!("there is no chat {chat}"));
        }
        drop(world);
        let person = Person::new(Arc::clone(shared), self.person).at_chat(chat);
        Ok(self.thread.map_or_else(|| person.clone(), |thread| person.topic(thread)))
    }

    /// As [`Actor::find`], for an action on a message.
    fn at_message(&self, shared: &Arc<Shared>, message: i64) -> Result<Person, ControlError> {
        let person = self.find(shared)?;
        if !shared.lock().chat(person.chat()).messages.contains_key(&message) {
            return control_error(format!("there is no message {message} in the chat {}", person.chat()));
        }
        Ok(person)
    }
}

fn group(shared: &Arc<Shared>, id: i64) -> Result<Group, ControlError> {
    if !shared.lock().chats.contains_key(&id) {
        return control_error(format!("there is no chat {id}"));
    }
    Ok(Group::new(Arc::clone(shared), id))
}

#[derive(Deserialize)]
pub(super) struct NewTopic {
    chat: i64,
    name: String,
}

pub(super) async fn add_topic(State(shared): State<Arc<Shared>>, Json(new): Json<NewTopic>) -> ControlResult {
    Ok(Json(json!({ "thread": group(&shared, new.chat)?.topic(&new.name) })))
}

/// A file with its content as text or in base64.
#[derive(Deserialize)]
pub(super) struct NewFile {
    kind: String,
    name: Option<String>,
    media_type: Option<String>,
    #[serde(default)]
    text: String,
    base64: Option<String>,
    size: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct NewMessage {
    #[serde(flatten)]
    actor: Actor,
    reply_to: Option<i64>,
    quote: Option<String>,
    /// The text, or a file's caption.
    text: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    file: Option<NewFile>,
    /// Other fields of the message: `location`, `contact`, ...
    #[serde(default)]
    fields: Map<String, Value>,
}

pub(super) async fn say(State(shared): State<Arc<Shared>>, Json(new): Json<NewMessage>) -> ControlResult {
    let person = new.actor.find(&shared)?;
    let text = new.text.unwrap_or_default();
    let id = if let Some(file) = new.file {
        let Some(kind) = MediaKind::named(&file.kind) else {
            return control_error(format!("no kind of file: {}", file.kind));
        };
        let bytes = match &file.base64 {
            Some(encoded) => BASE64_STANDARD.decode(encoded).map_err(|error| ControlError(error.to_string()))?,
            None => file.text.into_bytes(),
        };
        person.sends_file(&OutgoingFile {
            name: file.name.as_deref(),
            media_type: file.media_type.as_deref(),
            caption: &text,
            size: file.size,
            ..OutgoingFile::new(kind, &bytes)
        })
    } else {
        let words = Formatted::typed(&text, new.entities);
        let text = (!text.is_empty()).then_some(words);
        let quote = new.quote.map(|quote| json!({ "text": quote, "position": 0, "is_manual": true }));
        person.posts(Content { text, caption: None, fields: new.fields }, new.reply_to, quote)
    };
    Ok(Json(json!({ "message_id": id })))
}

#[derive(Deserialize)]
pub(super) struct NewAlbum {
    #[serde(flatten)]
    actor: Actor,
    #[serde(default)]
    caption: String,
    /// The content of each photo, as text.
    photos: Vec<String>,
}

pub(super) async fn send_album(State(shared): State<Arc<Shared>>, Json(new): Json<NewAlbum>) -> ControlResult {
    let photos: Vec<&[u8]> = new.photos.iter().map(String::as_bytes).collect();
    Ok(Json(json!({ "message_ids": new.actor.find(&shared)?.sends_album(&photos, &new.caption) })))
}

#[derive(Deserialize)]
pub(super) struct NewPost {
    chat: i64,
    text: String,
}

pub(super) async fn post(State(shared): State<Arc<Shared>>, Json(new): Json<NewPost>) -> ControlResult {
    let channel = group(&shared, new.chat)?;
    if shared.lock().chat(new.chat).kind != ChatKind::Channel {
        return control_error("only a channel posts by itself");
    }
    Ok(Json(json!({ "message_id": channel.posts(&new.text) })))
}

/// An action on a message.
#[derive(Deserialize)]
pub(super) struct MessageAction {
    #[serde(flatten)]
    actor: Actor,
    message: i64,
    #[serde(default)]
    text: String,
    #[serde(default)]
    emoji: String,
    /// The button's index, callback data or text.
    #[serde(default)]
    button: Value,
}

pub(super) async fn edit(State(shared): State<Arc<Shared>>, Json(action): Json<MessageAction>) -> ControlResult {
    action.actor.at_message(&shared, action.message)?.edits(action.message, &action.text);
    Ok(Json(json!({})))
}

pub(super) async fn delete(State(shared): State<Arc<Shared>>, Json(action): Json<MessageAction>) -> ControlResult {
    action.actor.at_message(&shared, action.message)?.deletes(action.message);
    Ok(Json(json!({})))
}

pub(super) async fn react(State(shared): State<Arc<Shared>>, Json(action): Json<MessageAction>) -> ControlResult {
    action.actor.at_message(&shared, action.message)?.reacts(action.message, &action.emoji);
    Ok(Json(json!({})))
}

pub(super) async fn press(State(shared): State<Arc<Shared>>, Json(action): Json<MessageAction>) -> ControlResult {
    let person = action.actor.at_message(&shared, action.message)?;
    let press = match &action.button {
        Value::String(data) => Press::Data(data.clone()),
        Value::Number(index) => Press::Index(index.as_u64().and_then(|it| it.try_into().ok()).unwrap_or(usize::MAX)),
        _ => Press::Index(0),
    };
    let id = person.try_press(action.message, &press).map_err(ControlError)?;
    Ok(Json(json!({ "callback_query_id": id })))
}

#[derive(Deserialize)]
pub(super) struct NewMembership {
    chat: i64,
    standing: Membership,
    by: Option<i64>,
}

pub(super) async fn set_membership(State(shared): State<Arc<Shared>>, Json(new): Json<NewMembership>) -> ControlResult {
    group(&shared, new.chat)?;
    let mut world = shared.lock();
    let private = world.chat(new.chat).kind == ChatKind::Private;
    let by = new.by.unwrap_or(if private { new.chat } else { ANONYMOUS });
    if !world.users.contains_key(&by) {
        return control_error(format!("there is no person {by}"));
    }
    world.set_membership(new.chat, by, new.standing);
    Ok(Json(json!({})))
}

#[derive(Deserialize)]
pub(super) struct Migration {
    chat: i64,
}

pub(super) async fn migrate(State(shared): State<Arc<Shared>>, Json(migration): Json<Migration>) -> ControlResult {
    group(&shared, migration.chat)?;
    let mut world = shared.lock();
    if world.chat(migration.chat).kind != ChatKind::Group {
        return control_error("only a group becomes a supergroup");
    }
    Ok(Json(json!({ "id": world.migrate(migration.chat) })))
}

#[derive(Deserialize)]
pub(super) struct NewUpdate {
    kind: String,
    payload: Value,
    #[serde(default)]
    chat: i64,
}

pub(super) async fn update(State(shared): State<Arc<Shared>>, Json(new): Json<NewUpdate>) -> ControlResult {
    Ok(Json(json!({ "sent": shared.lock().push_update(&new.kind, new.chat, &new.payload) })))
}
