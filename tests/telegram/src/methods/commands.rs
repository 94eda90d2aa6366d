//! The bot's list of commands.

use serde_json::{Value, json};

use super::done;
use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::World,
};

/// The key of a list: its scope and language.
fn key(params: &Params) -> Result<(String, String), ApiError> {
    let scope = params.json("scope", "bot command scope")?;
    let scope = scope.filter(|scope| scope["type"] != "default").map(|scope| scope.to_string());
    let language = params.text("language_code").unwrap_or_default().into_owned();
    Ok((scope.unwrap_or_default(), language))
}

pub(super) fn set(world: &mut World, params: &Params) -> Answer {
    let commands = params.json("commands", "commands list")?.unwrap_or_default();
    let listed = commands.as_array().ok_or_else(|| ApiError::bad_request("can't parse commands list"))?;
    if listed.len() > 100 {
        return Err(ApiError::bad_request("BOT_COMMANDS_TOO_MUCH"));
    }
    let mut kept = Vec::with_capacity(listed.len());
    for it in listed {
        let name = it["command"].as_str().unwrap_or_default();
        let name = name.strip_prefix('/').unwrap_or(name);
        let description = it["description"].as_str().unwrap_or_default().trim();
        let plain = name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
        if !plain || !(1..=32).contains(&name.len()) {
            return Err(ApiError::bad_request("BOT_COMMAND_INVALID"));
        }
        if !(1..=256).contains(&description.chars().count()) {
            return Err(ApiError::bad_request("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
        kept.push(json!({ "command": name, "description": description }));
    }
    world.commands.insert(key(params)?, Value::Array(kept));
    world.signals.changed.notify_waiters();
    done()
}

pub(super) fn get(world: &mut World, params: &Params) -> Answer {
    Ok(world.commands.get(&key(params)?).cloned().unwrap_or_else(|| json!([])))
}

pub(super) fn delete(world: &mut World, params: &Params) -> Answer {
    world.commands.remove(&key(params)?);
    done()
}
