//! A room's timeline, from where it is stored to its end.

use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
};
use rejoinder_core::{Intake, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{
    Ending,
    gaps::{Asked, Gap},
};
pub(super) use crate::payload::Membership;
use crate::{Matrix, Session, payload::Event};

/// How many events are stored at once.
const TOGETHER: usize = 50;

/// Up to where a room is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Up to this event, which was sent at `at` (milliseconds, by the sender's server).
    Event { at: i64, id: String },
    /// Nothing yet: it begins where we joined. Written for what was there before our first start.
    Joined,
}

impl Position {
    /// At this event. No server's clock puts it after `now`.
    pub(super) fn of(event: &TimelineEvent, now: Timestamp) -> Option<Self> {
        let event = read(event)?;
        Some(Self::Event { at: event.origin_server_ts.min(now.as_millis()), id: event.id })
    }

    pub(super) fn parse(text: &str) -> Self {
        let parsed = text.split_once(' ').and_then(|(at, id)| Some((at.parse().ok()?, id)));
        parsed.map_or(Self::Joined, |(at, id)| Self::Event { at, id: id.to_owned() })
    }

    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Event { at, id } => format!("{at} {id}"),
            Self::Joined => "joined".to_owned(),
        }
    }
}

/// What came of a room, oldest first.
pub(super) struct Brought {
    pub(super) events: Vec<TimelineEvent>,
    /// Where the events before them can be read; `None`: at the room's end.
    pub(super) before: Option<String>,
    /// Whether events before them are missing.
    pub(super) has_gap: bool,
}

impl Brought {
    /// Nothing came: all that is missing is to be read from the room's end on.
    pub(super) const fn nothing() -> Self {
        Self { events: Vec::new(), before: None, has_gap: true }
    }
}

/// An event's fields that concern us.
pub(crate) fn read(event: &TimelineEvent) -> Option<Event> {
    let read: Event = serde_json::from_str(event.raw().json().get()).ok()?;
    let is_decrypted = matches!(event.kind, TimelineEventKind::Decrypted(_));
    Some(if is_decrypted { read.written_by_somebody() } else { read })
}

impl Matrix {
    /// Stores what came of a room, with what is missing before it. Whether all of it could be read.
    pub(super) async fn room(
        &self,
        session: &Session,
        intake: &Intake,
        room: &Room,
        mut brought: Brought,
        since: Option<&str>,
        shutdown: &CancellationToken,
    ) -> Result<bool, Ending> {
        let name = room.room_id().as_str();
        let position = self.cursor(intake, name, shutdown).await?;
        let from = match position.as_deref().map(Position::parse) {
            Some(position @ Position::Event { .. }) => From::After(position),
            Some(Position::Joined) => From::Join,
            None => From::Invite,
        };
        let me = session.me();
        let begin = from.begin(&brought.events, me);
        brought.events.drain(..begin.unwrap_or(0));
        // A room that is new to us begins with our invitation, which may lie before what came.
        let may_lack = brought.has_gap || !matches!(from, From::After(_));
        let gap = if begin.is_none() && may_lack {
            match self.gap(room, &from, me, brought.before, since, shutdown).await? {
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
            match self.events_of(room, page, shutdown).await? {
                Asked::Got(events) => {
                    self.take_all_in(session, intake, room, presence.without_what_we_missed(events, me), shutdown)
                        .await?;
                }
                Asked::Refused => break,
                Asked::Later => return Ok(false),
            }
        }
        let events = presence.without_what_we_missed(brought.events, me);
        self.take_all_in(session, intake, room, events, shutdown).await?;
        Ok(true)
    }

    async fn take_all_in(
        &self,
        session: &Session,
        intake: &Intake,
        room: &Room,
        events: Vec<TimelineEvent>,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        for together in events.chunks(TOGETHER) {
            self.take_in(session, intake, room, together, shutdown).await?;
        }
        Ok(())
    }
}

/// Whether we are in a room, from event to event.
struct Presence {
    is_out: bool,
}

impl Presence {
    /// As it was before `first`, which became of our membership first: we may have left long before.
    fn before(first: Option<&Membership>) -> Self {
        let before = first.and_then(|first| first.before.as_deref());
        Self { is_out: before.is_some_and(|before| !matches!(before, "invite" | "join")) }
    }

    /// Events, oldest first, without those that others said while we were out of the room.
    fn without_what_we_missed(&mut self, events: Vec<TimelineEvent>, me: &str) -> Vec<TimelineEvent> {
        let mut concerns_us = |event: &TimelineEvent| {
            let membership = read(event).and_then(|event| event.membership_of(me));
            if let Some(membership) = &membership {
                self.is_out = !matches!(&*membership.now, "invite" | "join");
            }
            membership.is_some() || !self.is_out
        };
        events.into_iter().filter(|event| concerns_us(event)).collect()
    }
}

/// Where a room's events begin to concern us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// After what is stored.
    After(Position),
    /// With our invitation, or without one where we joined: people write to whom they have just invited.
    Invite,
    /// Where we joined.
    Join,
}

impl From {
    /// The index of the first event that concerns us, if it is told by these.
    pub(super) fn begin(&self, events: &[TimelineEvent], me: &str) -> Option<usize> {
        let found = events.iter().rposition(|event| read(event).is_some_and(|event| self.is_before(&event, me)));
        found.map(|index| index + 1)
    }

    /// Whether an event is the last one that does not concern us.
    pub(super) fn is_before(&self, event: &Event, me: &str) -> bool {
        match self {
            Self::After(Position::Event { id, .. }) => event.id == *id,
            Self::After(Position::Joined) => false,
            Self::Join => event.membership_of(me).is_some_and(|membership| membership.is_join()),
            Self::Invite => event.membership_of(me).is_some_and(|membership| {
                membership.now == "invite" || (membership.is_join() && membership.before.as_deref() != Some("invite"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::serde::Raw;
    use serde_json::{Value, json};

    use super::*;

    const ME: &str = "@agent:example.org";

    fn event(value: &Value) -> TimelineEvent {
        TimelineEvent::from_plaintext(Raw::new(value).expect("json").cast_unchecked())
    }

    fn said(id: &str) -> TimelineEvent {
        event(&json!({ "type": "m.room.message", "event_id": id, "sender": "@ada:example.org", "content": {} }))
    }

    fn member(id: &str, now: &str, before: &str) -> TimelineEvent {
        event(&json!({
            "type": "m.room.member", "event_id": id, "sender": "@ada:example.org", "state_key": ME,
            "content": { "membership": now }, "unsigned": { "prev_content": { "membership": before } },
        }))
    }

    fn first(events: &[TimelineEvent]) -> Option<Membership> {
        events.iter().find_map(|event| read(event)?.membership_of(ME))
    }

    #[test]
    fn a_position_is_read_back() {
        let position = Position::Event { at: 17, id: "$a:b c".to_owned() };

        assert_eq!(Position::parse(&position.to_text()), position);
        assert_eq!(Position::parse(&Position::Joined.to_text()), Position::Joined);
    }

    #[test]
    fn what_is_stored_does_not_concern_us_again() {
        let events = [said("$1"), said("$2"), said("$3")];
        let after = |id: &str| From::After(Position::Event { at: 0, id: id.to_owned() });

        assert_eq!(after("$2").begin(&events, ME), Some(2));
        assert_eq!(after("$3").begin(&events, ME), Some(3));
        assert_eq!(after("$0").begin(&events, ME), None);
    }

    #[test]
    fn what_is_said_behind_our_back_does_not_concern_us() {
        let events = vec![
            said("$1"),
            member("$2", "leave", "join"),
            said("$3"),
            member("$4", "invite", "leave"),
            said("$5"),
            member("$6", "join", "invite"),
            said("$7"),
        ];

        let left = Presence::before(first(&events).as_ref()).without_what_we_missed(events, ME);

        let ids: Vec<_> = left.iter().filter_map(read).map(|event| event.id).collect();
        assert_eq!(ids, ["$1", "$2", "$4", "$5", "$6", "$7"]);
    }

    #[test]
    fn nor_does_it_where_we_left_long_before() {
        let events = vec![said("$1"), member("$2", "join", "leave"), said("$3"), member("$4", "join", "join")];

        let left = Presence::before(first(&events).as_ref()).without_what_we_missed(events, ME);

        let ids: Vec<_> = left.iter().filter_map(read).map(|event| event.id).collect();
        assert_eq!(ids, ["$2", "$3", "$4"]);
    }

    #[test]
    fn a_new_room_begins_with_our_invitation() {
        let events =
            [said("$1"), member("$2", "invite", "leave"), said("$3"), member("$4", "join", "invite"), said("$5")];

        assert_eq!(From::Invite.begin(&events, ME), Some(2));
        assert_eq!(From::Join.begin(&events, ME), Some(4));
    }

    #[test]
    fn a_new_room_without_an_invitation_begins_where_we_joined() {
        let events = [said("$1"), member("$2", "join", "leave"), said("$3"), member("$4", "join", "join"), said("$5")];

        assert_eq!(From::Invite.begin(&events, ME), Some(2));
        assert_eq!(From::Join.begin(&events, ME), Some(2));
    }
}
