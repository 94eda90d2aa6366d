//! The methods of the Bot API.
//!
//! To add one, write a function from the world and the parameters to an answer in the module of its kind, and add a line to
//! [`find`]. Its result must satisfy aiogram's model (`judges/validate.py`).

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

pub(crate) use self::{media::MediaKind, updates::Poll};

/// A method that responds immediately.
type Method = fn(&mut World, &Params) -> Answer;

/// What a method name refers to.
#[derive(Clone, Copy)]
pub(crate) enum MethodKind {
    /// The method and its canonical name.
    Method(&'static str, Method),
    /// Waits for updates, so it is handled separately.
    GetUpdates,
}

/// Finds a method by its name, in any case.
pub(crate) fn find(name: &str) -> Option<MethodKind> {
    if name.eq_ignore_ascii_case("getUpdates") {
        return Some(MethodKind::GetUpdates);
    }
    let (name, method) = METHODS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(MethodKind::Method(name, *method))
}

const METHODS: [(&str, Method); 34] = [
    // The most frequent methods come first.
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

#[expect(clippy::unnecessary_wraps, reason = "the signature of a method")]
fn me(world: &mut World, _: &Params) -> Answer {
    Ok(world.bot.profile(world.privacy, world.private_topics))
}

/// The answer of most methods.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a method")]
fn done() -> Answer {
    Ok(Value::Bool(true))
}
