//! Reads what the SDK knows about a room and its events.

use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
};
use rejoinder_core::ChatKind;

use crate::payload::Event;

/// Parses an event, without what an encrypted event may not claim. `None` if it is malformed.
pub(crate) fn read(event: &TimelineEvent) -> Option<Event> {
    let read: Event = serde_json::from_str(event.raw().json().get()).ok()?;
    let is_decrypted = matches!(event.kind, TimelineEventKind::Decrypted(_));
    Some(if is_decrypted { read.without_server_claims() } else { read })
}

/// The kind of chat: a room of at most two people is a direct chat. If the number of members is not known, the
/// account's direct marks decide.
pub(crate) fn chat_kind(room: &Room) -> ChatKind {
    let helpers = room.active_service_members_count().unwrap_or(0);
    match room.active_members_count() {
        0 if room.direct_targets_length() > 0 => ChatKind::Direct,
        0 => ChatKind::Group,
        // Service members (bridges and the like) declare themselves as such and do not count.
        count if count.saturating_sub(helpers) <= 2 => ChatKind::Direct,
        _ => ChatKind::Group,
    }
}
