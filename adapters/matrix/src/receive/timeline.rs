//! Which events of a room's timeline concern us, and up to where they are stored. Pure.

use std::time::Duration;

use matrix_sdk::deserialized_responses::TimelineEvent;
use rejoinder_core::Timestamp;

use crate::{
    payload::{Event, Membership},
    room::read,
};

/// How long before the first start messages are answered: somebody wrote to the account, and then started the gateway.
const BEFORE_FIRST_START: Duration = Duration::from_mins(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The room is stored up to this event, which was sent at `at` (milliseconds, by the clock of the sender's server).
    Event { at: i64, id: String },
    /// The room is stored up to this time, in milliseconds. Written at our first start.
    Since { at: i64 },
    /// Nothing is stored: the room begins where we join. Written at our first start for rooms that we may not read.
    Joined,
}

impl Position {
    /// The position of an event. Its time is at most `now`, even if its server's clock is ahead.
    pub(super) fn of(event: &TimelineEvent, now: Timestamp) -> Option<Self> {
        let event = read(event)?;
        Some(Self::Event { at: event.origin_server_ts.min(now.as_millis()), id: event.id })
    }

    /// Where a room begins at our first start, at `now`, of which `latest` are the latest events, newest first: with what was said
    /// in the ten minutes before, after our own last message.
    pub(super) fn at_first_start<'a>(
        mut latest: impl Iterator<Item = &'a TimelineEvent>,
        me: &str,
        now: Timestamp,
    ) -> Self {
        let from = Self::before_first_start(now);
        let is_past = |event: &Event| {
            let is_ours = event.sender == me && event.state_key.is_none();
            is_ours || TimelineStart::After(from.clone()).is_before(event, me)
        };
        let past = latest.find(|event| read(event).is_some_and(|event| is_past(&event)));
        past.and_then(|event| Self::of(event, now)).unwrap_or(from)
    }

    /// Where a room begins at our first start, at `now`, if none of its events is known.
    pub(crate) fn before_first_start(now: Timestamp) -> Self {
        let before = i64::try_from(BEFORE_FIRST_START.as_millis()).unwrap_or_default();
        Self::Since { at: now.as_millis() - before }
    }

    pub(super) fn parse(text: &str) -> Self {
        let parsed = text.split_once(' ').and_then(|(first, second)| match first {
            "since" => Some(Self::Since { at: second.parse().ok()? }),
            at => Some(Self::Event { at: at.parse().ok()?, id: second.to_owned() }),
        });
        parsed.unwrap_or(Self::Joined)
    }

    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Event { at, id } => format!("{at} {id}"),
            Self::Since { at } => format!("since {at}"),
            Self::Joined => "joined".to_owned(),
        }
    }
}

/// Tracks from event to event whether we are in a room.
pub(super) struct Presence {
    is_out: bool,
}

impl Presence {
    /// Our presence before `first`, the oldest change of our membership: we may have left long before.
    pub(super) fn before(first: Option<&Membership>) -> Self {
        let before = first.and_then(|first| first.before.as_deref());
        Self { is_out: before.is_some_and(|before| !matches!(before, "invite" | "join")) }
    }

    /// Removes the events that others sent while we were not in the room. `events` are oldest first.
    pub(super) fn while_present(&mut self, events: Vec<TimelineEvent>, me: &str) -> Vec<TimelineEvent> {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimelineStart {
    /// After the last stored event.
    After(Position),
    /// With our invitation, or where we joined without one: people write to an account that they have just invited.
    Invite,
    Join,
}

impl TimelineStart {
    /// The index of the first event that concerns us, if these events show where that is.
    pub(super) fn begin(&self, events: &[TimelineEvent], me: &str) -> Option<usize> {
        let found = events.iter().rposition(|event| read(event).is_some_and(|event| self.is_before(&event, me)));
        found.map(|index| index + 1)
    }

    /// Whether an event is the last one that does not concern us.
    pub(super) fn is_before(&self, event: &Event, me: &str) -> bool {
        match self {
            Self::After(Position::Event { id, .. }) => event.id == *id,
            Self::After(Position::Since { at }) => event.origin_server_ts <= *at,
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

    fn message_event(id: &str) -> TimelineEvent {
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

        let since = Position::Since { at: 17 };

        assert_eq!(Position::parse(&position.to_text()), position);
        assert_eq!(Position::parse(&since.to_text()), since);
        assert_eq!(Position::parse(&Position::Joined.to_text()), Position::Joined);
    }

    /// D14.
    #[test]
    fn the_first_start_begins_ten_minutes_before_or_with_our_last_message() {
        let said = |id: &str, by: &str, minute: i64| {
            let content = json!({ "msgtype": "m.text", "body": "hello" });
            event(&json!({
                "type": "m.room.message", "event_id": id, "sender": by, "content": content,
                "origin_server_ts": minute * 60_000,
            }))
        };
        let (ada, now) = ("@ada:example.org", Timestamp::from_millis(100 * 60_000));
        let begins = |latest: &[TimelineEvent]| Position::at_first_start(latest.iter().rev(), ME, now);
        let after = |minute: i64, id: &str| Position::Event { at: minute * 60_000, id: id.to_owned() };

        assert_eq!(begins(&[said("$1", ada, 89), said("$2", ada, 91)]), after(89, "$1"));
        assert_eq!(begins(&[said("$1", ada, 91), said("$2", ME, 92), said("$3", ada, 93)]), after(92, "$2"));
        assert_eq!(begins(&[member("$1", "join", "invite"), said("$2", ada, 93)]), after(0, "$1"));
        assert_eq!(begins(&[said("$1", ada, 93)]), Position::Since { at: 90 * 60_000 });
        assert_eq!(begins(&[]), Position::Since { at: 90 * 60_000 });
    }

    #[test]
    fn what_is_stored_does_not_concern_us_again() {
        let events = [message_event("$1"), message_event("$2"), message_event("$3")];
        let after = |id: &str| TimelineStart::After(Position::Event { at: 0, id: id.to_owned() });

        assert_eq!(after("$2").begin(&events, ME), Some(2));
        assert_eq!(after("$3").begin(&events, ME), Some(3));
        assert_eq!(after("$0").begin(&events, ME), None);
    }

    #[test]
    fn a_room_whose_end_was_unknown_begins_at_a_time() {
        let sent = |id: &str, at: i64| {
            let content =
                json!({ "type": "m.room.message", "event_id": id, "sender": "@ada:example.org", "content": {} });
            let mut sent = content;
            sent["origin_server_ts"] = json!(at);
            event(&sent)
        };
        let events = [sent("$1", 10), sent("$2", 17), sent("$3", 18)];

        assert_eq!(TimelineStart::After(Position::Since { at: 17 }).begin(&events, ME), Some(2));
    }

    #[test]
    fn what_is_said_behind_our_back_does_not_concern_us() {
        let events = vec![
            message_event("$1"),
            member("$2", "leave", "join"),
            message_event("$3"),
            member("$4", "invite", "leave"),
            message_event("$5"),
            member("$6", "join", "invite"),
            message_event("$7"),
        ];

        let left = Presence::before(first(&events).as_ref()).while_present(events, ME);

        let ids: Vec<_> = left.iter().filter_map(read).map(|event| event.id).collect();
        assert_eq!(ids, ["$1", "$2", "$4", "$5", "$6", "$7"]);
    }

    #[test]
    fn nor_does_it_where_we_left_long_before() {
        let events =
            vec![message_event("$1"), member("$2", "join", "leave"), message_event("$3"), member("$4", "join", "join")];

        let left = Presence::before(first(&events).as_ref()).while_present(events, ME);

        let ids: Vec<_> = left.iter().filter_map(read).map(|event| event.id).collect();
        assert_eq!(ids, ["$2", "$3", "$4"]);
    }

    #[test]
    fn a_new_room_begins_with_our_invitation() {
        let events = [
            message_event("$1"),
            member("$2", "invite", "leave"),
            message_event("$3"),
            member("$4", "join", "invite"),
            message_event("$5"),
        ];

        assert_eq!(TimelineStart::Invite.begin(&events, ME), Some(2));
        assert_eq!(TimelineStart::Join.begin(&events, ME), Some(4));
    }

    #[test]
    fn a_new_room_without_an_invitation_begins_where_we_joined() {
        let events = [
            message_event("$1"),
            member("$2", "join", "leave"),
            message_event("$3"),
            member("$4", "join", "join"),
            message_event("$5"),
        ];

        assert_eq!(TimelineStart::Invite.begin(&events, ME), Some(2));
        assert_eq!(TimelineStart::Join.begin(&events, ME), Some(2));
    }
}
