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
    kind_of(room.active_members_count(), helpers, room.direct_targets_length() > 0)
}

/// How many members a direct chat has at most: two people, and the service members of a bridge.
const MAX_DIRECT: u64 = 4;

/// Any administrator of a room can declare members to be service members (bridges and the like). That is believed only
/// where the invitation was one to a direct chat, and of few.
const fn kind_of(members: u64, service_members: u64, is_marked_direct: bool) -> ChatKind {
    let is_bridged = is_marked_direct && members <= MAX_DIRECT && members.saturating_sub(service_members) <= 2;
    match members {
        0 if is_marked_direct => ChatKind::Direct,
        1 | 2 => ChatKind::Direct,
        _ if members > 2 && is_bridged => ChatKind::Direct,
        _ => ChatKind::Group,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(2, 0, false, ChatKind::Direct)]
    #[case(0, 0, true, ChatKind::Direct)]
    #[case(0, 0, false, ChatKind::Group)]
    #[case(3, 0, true, ChatKind::Group)]
    #[case::bridged(3, 1, true, ChatKind::Direct)]
    #[case::declared_by_anybody(3, 1, false, ChatKind::Group)]
    #[case::declared_of_many(20, 18, true, ChatKind::Group)]
    fn a_room_is_a_direct_chat_if_it_has_two_people(
        #[case] members: u64,
        #[case] service_members: u64,
        #[case] is_marked_direct: bool,
        #[case] kind: ChatKind,
    ) {
        assert_eq!(kind_of(members, service_members, is_marked_direct), kind);
    }
}
