//! New messages.

use serde_json::{Value, json};

use super::keyboard;
use crate::{
    clock::unix_seconds,
    error::{Answer, ApiError},
    params::{Params, flag, integer},
    text::{Formatted, MAX_CAPTION, MAX_TEXT},
    world::{
        World,
        chat::ChatKind,
        message::{Author, Content, NewMessage},
    },
};

pub(super) fn message(world: &mut World, params: &Params) -> Answer {
    let text = text(world, params, "text", "entities")?;
    if text.is_empty() {
        return Err(ApiError::bad_request("message text is empty"));
    }
    send(world, params, Content::text(text))
}

pub(super) fn location(world: &mut World, params: &Params) -> Answer {
    let number = |key| params.text(key).and_then(|text| text.parse::<f64>().ok());
    let (Some(latitude), Some(longitude)) = (number("latitude"), number("longitude")) else {
        return Err(ApiError::bad_request("latitude is empty"));
    };
    send(world, params, Content::field("location", json!({ "latitude": latitude, "longitude": longitude })))
}

pub(super) fn contact(world: &mut World, params: &Params) -> Answer {
    let (Some(number), Some(name)) = (params.text("phone_number"), params.text("first_name")) else {
        return Err(ApiError::bad_request("phone number is empty"));
    };
    send(world, params, Content::field("contact", json!({ "phone_number": number, "first_name": name })))
}

pub(super) fn copy(world: &mut World, params: &Params) -> Answer {
    let (_, content) = original(world, params, "message to copy not found")?;
    let sent = send(world, params, content)?;
    Ok(json!({ "message_id": sent["message_id"] }))
}

pub(super) fn forward(world: &mut World, params: &Params) -> Answer {
    let ((author, date), mut content) = original(world, params, "message to forward not found")?;
    if let Author::User(id) = author {
        let origin = json!({ "type": "user", "date": date, "sender_user": world.user_json(id) });
        content.fields.insert("forward_origin".to_owned(), origin);
    }
    send(world, params, content)
}

fn original(world: &World, params: &Params, missing: &str) -> Result<((Author, i64), Content), ApiError> {
    let from = world.chat_id(params, "from_chat_id")?;
    let message = params.integer("message_id").and_then(|id| world.chat(from).messages.get(&id));
    let message = message.ok_or_else(|| ApiError::bad_request(missing))?;
    Ok(((message.author, message.date), message.content.clone()))
}

/// A text of a call, with the users of its `text_mention` entities filled in.
pub(super) fn text(world: &World, params: &Params, key: &str, entities: &str) -> Result<Formatted, ApiError> {
    let mut text = Formatted::of_params(params, key, entities)?;
    text.entities.retain_mut(|entity| {
        if entity.kind != "text_mention" {
            return true;
        }
        let id = entity.user.as_ref().and_then(|user| integer(user.get("id")?));
        entity.user = id.and_then(|id| world.users.get(&id)).map(crate::world::user::User::to_json);
        entity.user.is_some()
    });
    Ok(text)
}

/// The caption of a call; may be empty.
pub(super) fn caption(world: &World, params: &Params) -> Result<Formatted, ApiError> {
    text(world, params, "caption", "caption_entities")
}

/// # Errors
/// 400 if the text or the caption is too long.
pub(super) fn check_length(content: &Content) -> Result<(), ApiError> {
    if content.text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
        return Err(ApiError::bad_request("message is too long"));
    }
    if content.caption.as_ref().is_some_and(|caption| caption.len() > MAX_CAPTION) {
        return Err(ApiError::bad_request("message caption is too long"));
    }
    Ok(())
}

/// The destination and options of a new message.
pub(super) struct Place {
    pub(super) chat: i64,
    thread: Option<i64>,
    reply_to: Option<i64>,
    quote: Option<Value>,
    pub(super) markup: Option<Value>,
    link_preview: Option<Value>,
}

/// Reads the parameters that all sending methods share.
///
/// # Errors
/// The server's error.
pub(super) fn place(world: &World, params: &Params) -> Result<Place, ApiError> {
    let markup = keyboard::of(params)?;
    let link_preview = match params.json("link_preview_options", "link preview options")? {
        None if params.flag("disable_web_page_preview") => Some(json!({ "is_disabled": true })),
        given => given,
    };
    let chat = world.writable(params)?;
    let given_thread = params.integer("message_thread_id").filter(|thread| *thread != 0);
    world.chat(chat).check_thread(given_thread)?;
    let (reply_to, quote) = reply(world, params, chat)?;
    // A reply goes to the topic of the message that it replies to.
    let answered = reply_to.and_then(|it| world.chat(chat).messages.get(&it)).and_then(|it| it.thread);
    let has_topics = matches!(world.chat(chat).kind, ChatKind::Forum | ChatKind::Private);
    let thread = given_thread.or(answered.filter(|_| has_topics));
    Ok(Place { chat, thread, reply_to, quote, markup, link_preview })
}

/// The message that a call replies to, and its quote.
fn reply(world: &World, params: &Params, chat: i64) -> Result<(Option<i64>, Option<Value>), ApiError> {
    let given = match params.json("reply_parameters", "reply parameters")? {
        Some(given) => given,
        None if params.has("reply_to_message_id") => json!({
            "message_id": params.integer("reply_to_message_id"),
            "allow_sending_without_reply": params.flag("allow_sending_without_reply"),
        }),
        None => return Ok((None, None)),
    };
    let Some(id) = given.get("message_id").and_then(integer).filter(|id| *id != 0) else { return Ok((None, None)) };
    let elsewhere = given.get("chat_id").and_then(integer).is_some_and(|it| it != chat);
    let answered = world.chat(chat).messages.get(&id).filter(|_| !elsewhere);
    let Some(answered) = answered else {
        let lenient = given.get("allow_sending_without_reply").is_some_and(flag);
        return if lenient { Ok((None, None)) } else { Err(ApiError::bad_request("message to be replied not found")) };
    };
    let Some(quoted) = given.get("quote").and_then(Value::as_str).filter(|quote| !quote.is_empty()) else {
        return Ok((Some(id), None));
    };
    let words = answered.content.words().map(|words| words.text.as_str()).unwrap_or_default();
    let at = words.find(quoted).ok_or_else(|| ApiError::bad_request("QUOTE_TEXT_INVALID"))?;
    let position = words[..at].encode_utf16().count();
    Ok((Some(id), Some(json!({ "text": quoted, "position": position, "is_manual": true }))))
}

/// Sends one message.
pub(super) fn send(world: &mut World, params: &Params, content: Content) -> Answer {
    let place = place(world, params)?;
    check_length(&content)?;
    world.spend(place.chat)?;
    let id = put(world, &place, content, None);
    Ok(world.message_json(place.chat, id))
}

/// Adds a message of the bot to a chat.
pub(super) fn put(world: &mut World, place: &Place, content: Content, album: Option<String>) -> i64 {
    let channel = world.chat(place.chat).kind == ChatKind::Channel;
    let author = if channel { Author::Channel } else { Author::User(world.bot.id) };
    world.chat_mut(place.chat).bot_wrote(place.thread);
    world.add_message(
        place.chat,
        NewMessage {
            author,
            thread: place.thread,
            reply_to: place.reply_to,
            quote: place.quote.clone(),
            album,
            content,
            markup: place.markup.clone(),
            link_preview: place.link_preview.clone(),
        },
    )
}

/// The current time, for an edit.
pub(super) fn now() -> i64 {
    unix_seconds()
}
