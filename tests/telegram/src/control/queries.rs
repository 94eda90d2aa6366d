//! Queries of the visible state.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use serde_json::json;

use super::{ControlResult, control_error};
use crate::{
    shared::{PATIENCE, Shared},
    view::View,
};

pub(super) async fn bot(State(shared): State<Arc<Shared>>) -> ControlResult {
    let world = shared.lock();
    Ok(Json(world.bot.profile(world.privacy, world.private_topics)))
}

pub(super) async fn state(State(shared): State<Arc<Shared>>) -> ControlResult {
    let world = shared.lock();
    let view = View::of(&world);
    Ok(Json(json!({
        "pending_updates": view.pending_updates(),
        "pending_faults": view.pending_faults(),
        "calls": view.call_count(),
    })))
}

#[derive(Deserialize)]
pub(super) struct CallQuery {
    method: Option<String>,
}

pub(super) async fn calls(State(shared): State<Arc<Shared>>, Query(query): Query<CallQuery>) -> ControlResult {
    let world = shared.lock();
    let view = View::of(&world);
    Ok(Json(json!(query.method.map_or_else(|| view.all_calls(), |method| view.calls(&method)))))
}

pub(super) async fn forget(State(shared): State<Arc<Shared>>) -> ControlResult {
    shared.lock().calls.forget();
    Ok(Json(json!({})))
}

#[derive(Deserialize)]
pub(super) struct ChatQuery {
    chat: i64,
    thread: Option<i64>,
}

pub(super) async fn visible(State(shared): State<Arc<Shared>>, Query(at): Query<ChatQuery>) -> ControlResult {
    Ok(Json(json!(View::of(&shared.lock()).visible(at.chat))))
}

pub(super) async fn drafts(State(shared): State<Arc<Shared>>, Query(at): Query<ChatQuery>) -> ControlResult {
    let world = shared.lock();
    let view = View::of(&world);
    Ok(Json(json!({ "now": view.draft(at.chat, at.thread), "past": view.past_drafts(at.chat) })))
}

pub(super) async fn typing(State(shared): State<Arc<Shared>>, Query(at): Query<ChatQuery>) -> ControlResult {
    Ok(Json(json!(View::of(&shared.lock()).typing(at.chat))))
}

#[derive(Deserialize)]
pub(super) struct MessageQuery {
    chat: i64,
    message: i64,
}

pub(super) async fn file(State(shared): State<Arc<Shared>>, Query(of): Query<MessageQuery>) -> Response {
    match View::of(&shared.lock()).file(of.chat, of.message) {
        Some(bytes) => bytes.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[derive(Deserialize)]
pub(super) struct CallbackQuery {
    id: String,
}

pub(super) async fn callback(State(shared): State<Arc<Shared>>, Query(pressed): Query<CallbackQuery>) -> ControlResult {
    Ok(Json(json!({ "answer": View::of(&shared.lock()).callback_answer(&pressed.id) })))
}

/// Waits for the bot's message with this text, or any message, after the message `after`.
#[derive(Deserialize)]
pub(super) struct MessageWait {
    chat: i64,
    text: Option<String>,
    #[serde(default)]
    after: i64,
    timeout_ms: Option<u64>,
}

pub(super) async fn heard(State(shared): State<Arc<Shared>>, Query(heard): Query<MessageWait>) -> ControlResult {
    let Some(changed) = shared.lock().chats.get(&heard.chat).map(|chat| Arc::clone(&chat.changed)) else {
        return control_error("there is no such chat");
    };
    let patience = heard.timeout_ms.map_or(PATIENCE, Duration::from_millis);
    let find = |view: View<'_>| {
        let wanted = |text: &String| heard.text.as_ref().is_none_or(|wanted| wanted == text);
        let seen = view.visible(heard.chat);
        seen.into_iter().find(|message| message.ours && message.id > heard.after && wanted(&message.text))
    };
    match shared.wait(&changed, patience, find).await {
        Some(message) => Ok(Json(json!(message))),
        None => control_error(format!("no such message within {patience:?}")),
    }
}
