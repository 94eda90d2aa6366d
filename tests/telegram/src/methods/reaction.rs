//! Reactions of the bot.

use serde_json::Value;

use super::done;
use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::World,
};

/// All valid emoji (<https://core.telegram.org/bots/api#reactiontypeemoji>).
const EMOJI: [&str; 73] = [
    "❤",
    "👍",
    "👎",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤‍🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨‍💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷‍♂",
    "🤷",
    "🤷‍♀",
    "😡",
];

pub(super) fn set(world: &mut World, params: &Params) -> Answer {
    let chat = world.writable(params)?;
    let reaction = params.json("reaction", "reaction types")?.unwrap_or_default();
    let wanted = reaction.as_array().cloned().unwrap_or_default();
    let id = params.integer("message_id").filter(|id| world.chat(chat).messages.contains_key(id));
    let id = id.ok_or_else(|| ApiError::bad_request("message to react not found"))?;
    if wanted.len() > 1 {
        return Err(ApiError::bad_request("REACTIONS_TOO_MANY"));
    }
    if !wanted.iter().all(|reaction| allowed(reaction, world.chat(chat).available_reactions.as_deref())) {
        return Err(ApiError::bad_request("REACTION_INVALID"));
    }
    let bot = world.bot.id;
    if let Some(message) = world.chat_mut(chat).messages.get_mut(&id) {
        if wanted.is_empty() {
            message.reactions.remove(&bot);
        } else {
            message.reactions.insert(bot, wanted);
        }
    }
    world.notify_changed(chat);
    done()
}

fn allowed(reaction: &Value, available: Option<&[String]>) -> bool {
    let emoji = reaction["emoji"].as_str().filter(|_| reaction["type"] == "emoji");
    emoji.is_some_and(|emoji| {
        EMOJI.contains(&emoji) && available.is_none_or(|available| available.iter().any(|it| it == emoji))
    })
}
