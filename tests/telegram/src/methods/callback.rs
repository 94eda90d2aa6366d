//! Answers to pressed buttons.

use serde_json::json;

use super::done;
use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::World,
};

pub(super) fn answer(world: &mut World, params: &Params) -> Answer {
    let id = params.text("callback_query_id").unwrap_or_default();
    let callback =
        world.callbacks.get_mut(&*id).filter(|callback| !callback.expired).ok_or_else(|| {
            ApiError::bad_request("query is too old and response timeout expired or query ID is invalid")
        })?;
    let text = params.text("text");
    if text.as_ref().is_some_and(|text| text.chars().count() > 200) {
        return Err(ApiError::bad_request("MESSAGE_TOO_LONG"));
    }
    callback.answer = Some(json!({ "text": text, "show_alert": params.flag("show_alert") }));
    let chat = callback.chat;
    world.notify_changed(chat);
    done()
}
