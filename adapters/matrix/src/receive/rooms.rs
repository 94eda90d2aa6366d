//! Stores a room's timeline, from its cursor to its end.

use matrix_sdk::{Room, deserialized_responses::TimelineEvent};
use rejoinder_kit::{Receiver, RunEnd};

use super::{
    gaps::{Asked, Gap},
    timeline::{From, Position, Presence},
};
use crate::{Matrix, Session, room::read};

const TOGETHER: usize = 50;

/// A room's events from a sync, oldest first.
pub(super) struct Brought {
    pub(super) events: Vec<TimelineEvent>,
    /// The token before which earlier events are read; `None`: the room's end.
    pub(super) before: Option<String>,
    /// Whether events before them are missing.
    pub(super) has_gap: bool,
}

impl Brought {
    /// No events: everything missing is read back from the room's end.
    pub(super) const fn nothing() -> Self {
        Self { events: Vec::new(), before: None, has_gap: true }
    }
}

impl Matrix {
    /// Stores a room's events, after those missing before them. Returns whether all could be read; `false`: try later.
    pub(super) async fn room(
        &self,
        session: &Session,
        room: &Room,
        mut brought: Brought,
        since: Option<&str>,
        receiver: &Receiver<'_>,
    ) -> Result<bool, RunEnd> {
        let name = room.room_id().as_str();
        let position = receiver.cursor(name).await?;
        let from = match position.as_deref().map(Position::parse) {
            Some(position @ Position::Event { .. }) => From::After(position),
            Some(Position::Joined) => From::Join,
            None => From::Invite,
        };
        let me = session.me();
        let begin = from.begin(&brought.events, me);
        brought.events.drain(..begin.unwrap_or(0));
        // A room that is new to us begins with our invitation, which may be older than these events.
        let may_lack = brought.has_gap || !matches!(from, From::After(_));
        let gap = if begin.is_none() && may_lack {
            match self.gap(room, &from, me, brought.before, since, receiver).await? {
                Asked::Got(gap) => gap,
                Asked::Refused => Gap::default(),
                Asked::Later => return Ok(false),
            }
        } else {
            Gap::default()
        };
        let first = gap.first.or_else(|| brought.events.iter().find_map(|event| read(event)?.membership_of(me)));
        let mut presence = Presence::before(first.as_ref());
        for page in gap.pages.into_iter().rev() {
            match self.events_of(room, page, receiver).await? {
                Asked::Got(events) => {
                    self.take_all_in(session, room, presence.without_what_we_missed(events, me), receiver).await?;
                }
                Asked::Refused => break,
                Asked::Later => return Ok(false),
            }
        }
        let events = presence.without_what_we_missed(brought.events, me);
        self.take_all_in(session, room, events, receiver).await?;
        Ok(true)
    }

    async fn take_all_in(
        &self,
        session: &Session,
        room: &Room,
        events: Vec<TimelineEvent>,
        receiver: &Receiver<'_>,
    ) -> Result<(), RunEnd> {
        for together in events.chunks(TOGETHER) {
            self.take_in(session, room, together, receiver).await?;
        }
        Ok(())
    }
}
