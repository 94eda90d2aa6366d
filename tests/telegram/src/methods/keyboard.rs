//! Inline keyboards.

use serde_json::{Value, json};

use crate::{error::ApiError, params::Params};

/// The longest callback data, in bytes.
const MAX_DATA: usize = 64;

/// The actions of a button, which must have exactly one.
const ACTIONS: [&str; 11] = [
    "callback_data",
    "url",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
    "disabled",
];

/// The inline keyboard of a call. Other kinds of markup do not belong to a message and are ignored.
///
/// # Errors
/// 400 if a button is invalid.
pub(super) fn of(params: &Params) -> Result<Option<Value>, ApiError> {
    let Some(markup) = params.json("reply_markup", "reply keyboard markup")? else { return Ok(None) };
    if !markup.is_object() {
        return Err(ApiError::bad_request("object expected as reply markup"));
    }
    let Some(rows) = markup.get("inline_keyboard") else { return Ok(None) };
    let rows = rows.as_array().ok_or_else(|| {
        ApiError::bad_request("can't parse inline keyboard: Field \"inline_keyboard\" must be of type Array")
    })?;
    let mut kept = Vec::new();
    for row in rows {
        let buttons = row
            .as_array()
            .ok_or_else(|| ApiError::bad_request("can't parse inline keyboard: Row must be of type Array"))?;
        buttons.iter().try_for_each(check)?;
        if !buttons.is_empty() {
            kept.push(row.clone());
        }
    }
    Ok((!kept.is_empty()).then(|| json!({ "inline_keyboard": kept })))
}

fn check(button: &Value) -> Result<(), ApiError> {
    let wrong = |what: &str| ApiError::bad_request(format!("can't parse inline keyboard button: {what}"));
    let text = button.get("text").and_then(Value::as_str).unwrap_or_default();
    if text.trim().is_empty() {
        return Err(wrong("InlineKeyboardButton must have a non-empty text"));
    }
    match ACTIONS.iter().filter(|action| button.get(**action).is_some_and(|it| !it.is_null())).count() {
        0 => return Err(wrong("Text buttons are unallowed in the inline keyboard")),
        1 => (),
        _ => return Err(wrong("InlineKeyboardButton must have exactly one action")),
    }
    match button.get("callback_data") {
        Some(Value::String(data)) if data.is_empty() || data.len() > MAX_DATA => {
            Err(ApiError::bad_request("BUTTON_DATA_INVALID"))
        }
        Some(Value::String(_)) | None => Ok(()),
        Some(_) => Err(wrong("Field \"callback_data\" must be of type String")),
    }
}
