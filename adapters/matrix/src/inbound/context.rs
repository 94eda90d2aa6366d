//! What an event is read with.

use rejoinder_core::{ChannelId, ChatKind, Timestamp};

use crate::memory::RememberedEvent;

#[derive(Clone, Debug)]
pub(crate) struct EventContext<'a> {
    pub(crate) channel: &'a ChannelId,
    pub(crate) me: &'a str,
    /// Our display names: in the room, and the account's.
    pub(crate) names: &'a [String],
    pub(crate) room: &'a str,
    pub(crate) chat: ChatKind,
    /// The sender's display name in the room.
    pub(crate) sender_name: Option<String>,
    /// The event that it refers to, if it could be looked up.
    pub(crate) related: Option<&'a RememberedEvent>,
    /// The display name of its sender in the room.
    pub(crate) related_name: Option<String>,
    pub(crate) now: Timestamp,
    /// The JSON of the event, as received (decrypted if it was encrypted).
    pub(crate) raw: &'a str,
}
