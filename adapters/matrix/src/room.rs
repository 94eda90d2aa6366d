//! What the SDK knows of a room and of its events.

use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
};
use rejoinder_core::ChatKind;

use crate::payload::Event;

/// An event's fields that concern us.
pub(crate) fn read(event: &TimelineEvent) -> Option<Event> {
    let read: Event = serde_json::from_str(event.raw().json().get()).ok()?;
    let is_decrypted = matches!(event.kind, TimelineEventKind::Decrypted(_));
    Some(if is_decrypted { read.written_by_somebody() } else { read })
}

/// What kind of chat a room is. Two people, whatever it is called; where nobody has counted, what the account
/// has marked as direct.
pub(crate) fn chat_kind(room: &Room) -> ChatKind {
    let helpers = room.active_service_members_count().unwrap_or(0);
    match room.active_members_count() {
        0 if room.direct_targets_length() > 0 => ChatKind::Direct,
        0 => ChatKind::Group,
        // Bridges and the like, which say of themselves that they are no people.
        count if count.saturating_sub(helpers) <= 2 => ChatKind::Direct,
        _ => ChatKind::Group,
    }
}
