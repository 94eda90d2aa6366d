//! Faults, outages, rate limits and settings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Json, extract::State};
use serde::Deserialize;
use serde_json::json;

use super::{ControlResult, control_error};
use crate::{
    fault::Fault,
    limits::Limits,
    shared::{Outage, Shared},
    world::update::Pauses,
};

/// Absent fields stay as they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    privacy: Option<bool>,
    private_topics: Option<bool>,
    keep_calls: Option<bool>,
    keep_messages: Option<usize>,
    limits: Option<Limits>,
    /// True sets the documented limits, false removes all.
    documented_limits: Option<bool>,
    /// The first and the longest pause.
    webhook_pauses_ms: Option<(u64, u64)>,
    available_reactions: Option<Reactions>,
}

#[derive(Deserialize)]
pub(super) struct Reactions {
    chat: i64,
    /// None allows all.
    emoji: Option<Vec<String>>,
}

pub(super) async fn set(State(shared): State<Arc<Shared>>, Json(settings): Json<Settings>) -> ControlResult {
    let mut world = shared.lock();
    if let Some(privacy) = settings.privacy {
        world.privacy = privacy;
    }
    if let Some(topics) = settings.private_topics {
        world.private_topics = topics;
    }
    if let Some(keep) = settings.keep_calls {
        world.calls.keep(keep);
    }
    if let Some(kept) = settings.keep_messages {
        world.kept_messages = kept;
    }
    if let Some(limits) = settings.limits {
        world.limits = limits;
    }
    if let Some(documented) = settings.documented_limits {
        world.limits = if documented { Limits::documented() } else { Limits::default() };
    }
    if let Some((first, longest)) = settings.webhook_pauses_ms {
        world.pauses = Pauses { first: Duration::from_millis(first), longest: Duration::from_millis(longest) };
    }
    if let Some(reactions) = settings.available_reactions {
        let Some(chat) = world.chats.get_mut(&reactions.chat) else { return control_error("there is no such chat") };
        chat.available_reactions = reactions.emoji;
    }
    Ok(Json(json!({})))
}

pub(super) async fn add(State(shared): State<Arc<Shared>>, Json(fault): Json<Fault>) -> ControlResult {
    shared.lock().faults.add(fault);
    Ok(Json(json!({})))
}

pub(super) async fn clear_faults(State(shared): State<Arc<Shared>>) -> ControlResult {
    shared.clear_faults();
    Ok(Json(json!({})))
}

#[derive(Deserialize)]
pub(super) struct NewOutage {
    kind: Outage,
    /// The duration. Required for `refuse`, as the server cannot be reached to end it.
    ms: Option<u64>,
}

pub(super) async fn start_outage(State(shared): State<Arc<Shared>>, Json(new): Json<NewOutage>) -> ControlResult {
    if new.kind == Outage::Refuse && new.ms.is_none() {
        return control_error("`ms` is required: for how long connections are refused");
    }
    let later = Arc::clone(&shared);
    // Delayed, so that the response to this call is written first.
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        later.start_outage(new.kind);
        if let Some(ms) = new.ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            later.end_outage();
        }
    });
    Ok(Json(json!({})))
}

pub(super) async fn end_outage(State(shared): State<Arc<Shared>>) -> ControlResult {
    shared.end_outage();
    Ok(Json(json!({})))
}

/// Rate limits a chat, or the whole bot, for a time.
#[derive(Deserialize)]
pub(super) struct Closing {
    chat: Option<i64>,
    ms: u64,
}

pub(super) async fn close(State(shared): State<Arc<Shared>>, Json(closing): Json<Closing>) -> ControlResult {
    let time = Duration::from_millis(closing.ms);
    let mut world = shared.lock();
    match closing.chat {
        None => world.spent.close(time, Instant::now()),
        Some(chat) => match world.chats.get_mut(&chat) {
            Some(chat) => chat.spent.close(time, Instant::now()),
            None => return control_error("there is no such chat"),
        },
    }
    Ok(Json(json!({})))
}

pub(super) async fn expire(State(shared): State<Arc<Shared>>) -> ControlResult {
    shared.lock().callbacks.values_mut().for_each(|callback| callback.expired = true);
    Ok(Json(json!({})))
}
