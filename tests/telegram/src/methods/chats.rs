//! Methods on chats.

use serde_json::{Value, json};

use super::done;
use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::{
        World,
        chat::{ChatKind, Membership},
        message::{Author, Content, NewMessage},
    },
};

const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

pub(super) fn action(world: &mut World, params: &Params) -> Answer {
    let action = params.text("action").unwrap_or_default().to_ascii_lowercase();
    if !ACTIONS.contains(&&*action) {
        return Err(ApiError::bad_request("wrong parameter action in request"));
    }
    let chat = world.writable(params)?;
    let thread = params.integer("message_thread_id");
    world.chat(chat).check_thread(thread)?;
    world.chat_mut(chat).remember_notice(&action, thread);
    world.notify_changed(chat);
    done()
}

pub(super) fn get(world: &mut World, params: &Params) -> Answer {
    let chat = world.chat(world.chat_id(params, "chat_id")?);
    match chat.membership {
        // In private chats `getChat` works even without the right to write.
        Membership::Kicked if chat.kind != ChatKind::Private => {
            Err(ApiError::forbidden(format!("bot was kicked from the {} chat", chat.kind.name())))
        }
        _ => Ok(chat.full_info()),
    }
}

pub(super) fn member(world: &mut World, params: &Params) -> Answer {
    let chat = world.chat_id(params, "chat_id")?;
    let user = params.integer("user_id").filter(|id| world.users.contains_key(id));
    let user = user.ok_or_else(|| ApiError::bad_request("PARTICIPANT_ID_INVALID"))?;
    let membership = if user == world.bot.id { world.chat(chat).membership } else { Membership::Member };
    Ok(world.member_json(user, membership))
}

pub(super) fn leave(world: &mut World, params: &Params) -> Answer {
    let chat = world.writable(params)?;
    if world.chat(chat).kind == ChatKind::Private {
        return Err(ApiError::bad_request("chat member status can't be changed in private chats"));
    }
    let bot = world.bot.id;
    world.set_membership(chat, bot, Membership::Left);
    done()
}

pub(super) fn create_topic(world: &mut World, params: &Params) -> Answer {
    let chat = world.writable(params)?;
    let name = params.text("name").filter(|name| !name.is_empty());
    let name: String = name.ok_or_else(|| ApiError::bad_request("forum topic name is empty"))?.into_owned();
    let allowed = match world.chat(chat).kind {
        ChatKind::Forum => world.chat(chat).membership == Membership::Administrator,
        ChatKind::Private => world.private_topics,
        _ => return Err(ApiError::bad_request("the chat is not a forum")),
    };
    if !allowed {
        return Err(ApiError::bad_request("not enough rights to create a topic"));
    }
    let created: Value = json!({ "name": name, "icon_color": 7_322_096 });
    let id = world.chat(chat).last_message + 1;
    world.chat_mut(chat).topics.insert(id, name);
    let content = Content::field("forum_topic_created", created.clone());
    let mut new = NewMessage::new(Author::User(world.bot.id), content);
    new.thread = Some(id);
    world.add_message(chat, new);
    Ok(json!({ "message_thread_id": id, "name": created["name"], "icon_color": created["icon_color"] }))
}
