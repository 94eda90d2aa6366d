//! The methods of the Bot API.
//!
//! To add one: a function from the world and the parameters to an answer in the module of its kind, and a
//! line in [`find`]. What it returns must be what aiogram's model of it takes (`judges/validate.py`).

mod callback;
mod chats;
mod commands;
mod drafts;
mod edit;
mod files;
mod keyboard;
mod media;
mod reaction;
mod send;
mod updates;

use serde_json::Value;

use crate::{error::Answer, params::Params, world::World};

pub(crate) use self::{media::Kind, updates::Poll};

/// A method that answers at once.
type Method = fn(&mut World, &Params) -> Answer;

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) enum Known {
    /// With its name as it is written.
    Method(&'static str, Method),
    /// It waits for updates.
    GetUpdates,
}

/// A method by its name, in any case.
pub(crate) fn find(name: &str) -> Option<Known> {
    if name.eq_ignore_ascii_case("getUpdates") {
        return Some(Known::GetUpdates);
    }
    let (name, method) = METHODS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(Known::Method(name, *method))
}

const METHODS: [(&str, Method); 34] = [
    // The ones that are called most come first.
    ("sendMessage", send::message),
    ("sendChatAction", chats::action),
    ("editMessageText", edit::text),
    ("setMessageReaction", reaction::set),
    ("answerCallbackQuery", callback::answer),
    ("deleteMessage", edit::delete),
    ("sendMessageDraft", drafts::send),
    ("deleteMessages", edit::delete_many),
    ("editMessageCaption", edit::caption),
    ("editMessageReplyMarkup", edit::markup),
    ("sendPhoto", media::photo),
    ("sendDocument", media::document),
    ("sendVoice", media::voice),
    ("sendAudio", media::audio),
    ("sendVideo", media::video),
    ("sendAnimation", media::animation),
    ("sendSticker", media::sticker),
    ("sendMediaGroup", media::group),
    ("sendLocation", send::location),
    ("sendContact", send::contact),
    ("getFile", files::get),
    ("getMe", me),
    ("getChat", chats::get),
    ("getChatMember", chats::member),
    ("leaveChat", chats::leave),
    ("createForumTopic", chats::create_topic),
    ("setMyCommands", commands::set),
    ("getMyCommands", commands::get),
    ("deleteMyCommands", commands::delete),
    ("setWebhook", updates::set_webhook),
    ("deleteWebhook", updates::delete_webhook),
    ("getWebhookInfo", updates::webhook_info),
    ("copyMessage", send::copy),
    ("forwardMessage", send::forward),
];

#[expect(clippy::unnecessary_wraps, reason = "the shape of a method")]
fn me(world: &mut World, _: &Params) -> Answer {
    Ok(world.bot.profile(world.privacy, world.private_topics))
}

/// Most methods answer so.
#[expect(clippy::unnecessary_wraps, reason = "the shape of a method")]
fn done() -> Answer {
    Ok(Value::Bool(true))
}
