//! An event about to be stored, and what follows once it is.

use std::time::Duration;

use super::{limits::Counted, notice::Notice, notice_permits::NoticePermit, pairs::Heard};
use crate::{
    events::Run,
    handles::slots::Slot,
    model::{conversation::ConversationRef, language::Language},
    ports::store::accept::NewEvent,
};

/// An event about to be stored.
pub(super) struct RoutedEvent {
    pub(super) new: NewEvent,
    /// The slot of its conversation, if it was free.
    pub(super) slot: Option<Slot>,
    /// Its run, if it begins at once.
    pub(super) run: Option<Run>,
    /// The notice that its sender gets.
    pub(super) notice: Option<Notice>,
    /// If it is a notice to a stranger: its place among those of this hour.
    pub(super) notice_permit: Option<NoticePermit>,
    /// The turn among those of its sender, if these are limited.
    pub(super) counted: Option<Counted>,
    /// The message among those of another agent, if it is one's.
    pub(super) heard: Option<Heard>,
    /// Its sender is over a limit, for this long at least.
    pub(super) limited: Option<Duration>,
    /// The language that the platform tells.
    pub(super) told: Option<Language>,
}

impl RoutedEvent {
    pub(super) fn is_turn_in(&self, conversation: &ConversationRef) -> bool {
        self.new.turn.is_some() && self.new.event.conversation == *conversation
    }
}
