//! Edits and deletions.

use serde_json::Value;

use super::{done, keyboard, send};
use crate::{
    error::{Answer, ApiError},
    params::{Params, integer},
    world::{
        World,
        chat::{ChatKind, Membership},
        message::{Author, Content, Message},
    },
};

const NOT_MODIFIED: &str = "message is not modified: specified new message content and reply markup are exactly \
                            the same as a current content and reply markup of the message";

pub(super) fn text(world: &mut World, params: &Params) -> Answer {
    let text = send::text(world, params, "text", "entities")?;
    if text.is_empty() {
        return Err(ApiError::bad_request("message text is empty"));
    }
    let link_preview = params.json("link_preview_options", "link preview options")?;
    edit(world, params, |message| {
        if message.content.text.is_none() {
            return Err(ApiError::bad_request("there is no text in the message to edit"));
        }
        message.content.text = Some(text);
        message.link_preview = link_preview;
        Ok(())
    })
}

pub(super) fn caption(world: &mut World, params: &Params) -> Answer {
    let caption = send::caption(world, params)?;
    edit(world, params, |message| {
        if message.content.text.is_some() {
            return Err(ApiError::bad_request("there is no caption in the message to edit"));
        }
        message.content.caption = (!caption.is_empty()).then_some(caption);
        Ok(())
    })
}

pub(super) fn markup(world: &mut World, params: &Params) -> Answer {
    edit(world, params, |_| Ok(()))
}

/// Changes a message of the bot; its keyboard is always replaced by the call's.
fn edit(world: &mut World, params: &Params, change: impl FnOnce(&mut Message) -> Result<(), ApiError>) -> Answer {
    let markup = keyboard::of(params)?;
    let chat = world.writable(params)?;
    let id =
        params.integer("message_id").ok_or_else(|| ApiError::bad_request("message identifier is not specified"))?;
    let message = world.chat(chat).messages.get(&id);
    let message = message.ok_or_else(|| ApiError::bad_request("message to edit not found"))?;
    if !is_ours(world, message) {
        return Err(ApiError::bad_request("message can't be edited"));
    }
    let mut edited = message.clone();
    change(&mut edited)?;
    edited.markup = markup;
    if edited.content == message.content && edited.markup == message.markup {
        return Err(ApiError::bad_request(NOT_MODIFIED));
    }
    send::check_length(&edited.content)?;
    world.spend(chat)?;
    edited.edits.push(send::now());
    world.chat_mut(chat).messages.insert(id, edited);
    world.notify_changed(chat);
    Ok(world.message_json(chat, id))
}

fn is_ours(world: &World, message: &Message) -> bool {
    match message.author {
        Author::User(id) => id == world.bot.id && !is_service(&message.content),
        Author::Channel => true,
    }
}

fn is_service(content: &Content) -> bool {
    content.fields.contains_key("forum_topic_created")
}

pub(super) fn delete(world: &mut World, params: &Params) -> Answer {
    let chat = world.writable(params)?;
    let id =
        params.integer("message_id").ok_or_else(|| ApiError::bad_request("message identifier is not specified"))?;
    let message = world.chat(chat).messages.get(&id);
    let message = message.ok_or_else(|| ApiError::bad_request("message to delete not found"))?;
    if !deletable(world, chat, message) {
        return Err(ApiError::bad_request("message can't be deleted"));
    }
    world.removes(chat, id);
    done()
}

pub(super) fn delete_many(world: &mut World, params: &Params) -> Answer {
    let chat = world.writable(params)?;
    let ids = params.json("message_ids", "message identifiers")?;
    let ids = ids.as_ref().and_then(Value::as_array).filter(|ids| (1..=100).contains(&ids.len()));
    let ids = ids.ok_or_else(|| ApiError::bad_request("message identifiers are not specified"))?;
    let found: Vec<i64> = ids.iter().filter_map(integer).collect();
    for id in found {
        if world.chat(chat).messages.get(&id).is_some_and(|message| deletable(world, chat, message)) {
            world.removes(chat, id);
        }
    }
    done()
}

/// Whether the bot may delete a message: its own anywhere, others' in private chats and as an administrator.
fn deletable(world: &World, chat: i64, message: &Message) -> bool {
    let chat = world.chat(chat);
    chat.kind == ChatKind::Private || chat.membership == Membership::Administrator || is_ours(world, message)
}
