//! Stores a room's timeline, from its cursor to its end.

use matrix_sdk::{Room, deserialized_responses::TimelineEvent};
use rejoinder_kit::RunEnd;

use super::{
    gaps::{Fetched, Gap},
    timeline::{Position, Presence, TimelineStart},
};
use crate::{room::read, run::Run};

const BATCH: usize = 50;

/// A room's events from a sync, oldest first.
pub(super) struct SyncedEvents {
    pub(super) events: Vec<TimelineEvent>,
    /// The token before which earlier events are read; `None`: the room's end.
    pub(super) before: Option<String>,
    /// Whether events before them are missing.
    pub(super) has_gap: bool,
}

impl SyncedEvents {
    /// No events: everything missing is read back from the room's end.
    pub(super) const fn nothing() -> Self {
        Self { events: Vec::new(), before: None, has_gap: true }
    }
}

/// How far a room was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadTo {
    /// To its end.
    End,
    /// As far as the homeserver lets us.
    Refusal,
    /// The homeserver cannot answer now: try later.
    Trouble,
}

impl Run<'_> {
    /// Stores a room's events, after those missing before them.
    pub(super) async fn store_room(
        &self,
        room: &Room,
        mut synced: SyncedEvents,
        since: Option<&str>,
    ) -> Result<ReadTo, RunEnd> {
        let name = room.room_id().as_str();
        let position = self.receiver.cursor(name).await?;
        let start = match position.as_deref().map(Position::parse) {
            Some(Position::Joined) => TimelineStart::Join,
            Some(position) => TimelineStart::After(position),
            None => TimelineStart::Invite,
        };
        let me = self.session.me();
        let begin = start.begin(&synced.events, me);
        synced.events.drain(..begin.unwrap_or(0));
        // A room that is new to us begins with our invitation, which may be older than these events.
        let may_lack = synced.has_gap || !matches!(start, TimelineStart::After(_));
        let gap = if begin.is_none() && may_lack {
            match self.read_gap(room, &start, synced.before, since).await? {
                Some(gap) => gap,
                None => return Ok(ReadTo::Trouble),
            }
        } else {
            Gap::default()
        };
        let first = gap.first.or_else(|| synced.events.iter().find_map(|event| read(event)?.membership_of(me)));
        let mut presence = Presence::before(first.as_ref());
        let mut is_refused = gap.is_refused;
        for page in gap.pages.into_iter().rev() {
            match self.events_of(room, page).await? {
                Fetched::Got(events) => {
                    self.store_in_batches(room, presence.while_present(events, me)).await?;
                }
                Fetched::Refused => {
                    is_refused = true;
                    break;
                }
                Fetched::Later => return Ok(ReadTo::Trouble),
            }
        }
        let events = presence.while_present(synced.events, me);
        self.store_in_batches(room, events).await?;
        Ok(if is_refused { ReadTo::Refusal } else { ReadTo::End })
    }

    /// Stores the events that syncs brought while a room lagged, because they cannot be read back.
    pub(super) async fn store_deferred(&self, room: &Room, events: Vec<TimelineEvent>) -> Result<(), RunEnd> {
        let me = self.session.me();
        let first = events.iter().find_map(|event| read(event)?.membership_of(me));
        let events = Presence::before(first.as_ref()).while_present(events, me);
        self.store_in_batches(room, events).await
    }

    async fn store_in_batches(&self, room: &Room, events: Vec<TimelineEvent>) -> Result<(), RunEnd> {
        for batch in events.chunks(BATCH) {
            self.store_events(room, batch).await?;
        }
        Ok(())
    }
}
