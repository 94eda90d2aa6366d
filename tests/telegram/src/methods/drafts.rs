//! Drafts: a text that grows while a person watches, and that is not a message.

use std::time::Instant;

use super::{done, send};
use crate::{
    error::{Answer, ApiError},
    params::Params,
    text::MAX_TEXT,
    view::Draft,
    world::{World, chat::ChatKind},
};

pub(super) fn send(world: &mut World, params: &Params) -> Answer {
    let text = send::text(world, params, "text", "entities")?;
    let chat = world.writable(params)?;
    if world.chat(chat).kind != ChatKind::Private {
        return Err(ApiError::bad_request("TEXTDRAFT_PEER_INVALID"));
    }
    let thread = params.integer("message_thread_id");
    world.chat(chat).check_thread(thread)?;
    let id = params.integer("draft_id").filter(|id| *id != 0);
    let id = id.ok_or_else(|| ApiError::bad_request("draft_id must be non-zero"))?;
    if text.len() > MAX_TEXT {
        return Err(ApiError::bad_request("message is too long"));
    }
    let draft = Draft { id, thread, text: text.text, entities: text.entities, at: Instant::now() };
    world.chat_mut(chat).remember_draft(draft);
    world.notify_changed(chat);
    done()
}
