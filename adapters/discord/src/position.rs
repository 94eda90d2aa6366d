//! How far the channel has read. Stored in one transaction with the events that it covers.
//!
//! Discord's ids grow with time across all channels, so one id says what is stored. Missed messages in a server or in
//! direct chats are a gap, which starts at an id. The gap is noted before any newer message is stored, and removed when it
//! is filled. So if the gateway stops in between, it fills the gap later.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rejoinder_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    gateway::{Dispatch, Session},
    snowflake::Snowflake,
};

pub(crate) const CURSOR: &str = "position";

/// The name of the gap in direct chats.
pub(crate) const DIRECT: &str = "direct";

/// How long before the very first start messages are answered: somebody wrote to the bot, and then started the gateway.
const BEFORE_FIRST_START: Duration = Duration::from_mins(10);

/// How late a message may arrive after newer messages in other channels.
const OVERLAP: Duration = Duration::from_mins(5);

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Shortly before the first start, as an id. Older messages are never answered.
    since: Snowflake,
    newest: Snowflake,
    /// The session, with its last stored event.
    pub(crate) session: Option<Session>,
    /// When the session was started.
    pub(crate) identified_at: Option<Timestamp>,
    /// Where the messages to read over REST start, by server or [`DIRECT`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    gaps: BTreeMap<String, Snowflake>,
    /// Whether this process made the very first start.
    #[serde(skip)]
    pub(crate) is_new: bool,
}

impl Position {
    /// Parses a stored position; the initial one if there is none.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a position serialises to JSON")
    }

    /// Notes the start of a session: every server and the direct chats get a gap.
    pub(crate) fn start_session<'a>(&mut self, servers: impl Iterator<Item = &'a str>, now: Timestamp) {
        self.identified_at = Some(now);
        if self.since.is_none() {
            let before = i64::try_from(BEFORE_FIRST_START.as_millis()).unwrap_or_default();
            self.since = Snowflake::at(Timestamp::from_millis(now.as_millis() - before));
            self.newest = self.since;
            self.is_new = true;
        }
        let from = self.gap_start();
        for scope in servers.chain([DIRECT]) {
            self.gaps.entry(scope.to_owned()).or_insert(from);
        }
    }

    /// Notes that a server is unavailable, so that its messages do not arrive.
    pub(crate) fn add_gap(&mut self, server: &str) {
        let from = self.gap_start();
        self.gaps.entry(server.to_owned()).or_insert(from);
    }

    /// Where the gap of a scope starts, if there is one.
    pub(crate) fn gap(&self, scope: &str) -> Option<Snowflake> {
        self.gaps.get(scope).copied()
    }

    /// The session to resume. `None` while a server's messages are still to be read over REST: only a new session names the
    /// server again.
    pub(crate) fn resumable_session(&self) -> Option<Session> {
        let is_read = self.gaps.keys().all(|scope| scope == DIRECT);
        self.session.clone().filter(|_| is_read)
    }

    pub(crate) fn close_gap(&mut self, scope: &str) {
        self.gaps.remove(scope);
    }

    pub(crate) fn mark_handled(&mut self, dispatch: &Dispatch) {
        self.mark_handled_to(&dispatch.session, dispatch.seq);
    }

    /// Notes that all events of a session up to this number were handled.
    pub(crate) fn mark_handled_to(&mut self, session: &(Arc<str>, Arc<str>), seq: u64) {
        let (id, url) = session;
        self.session = Some(Session { id: Arc::clone(id), url: Arc::clone(url), seq });
    }

    pub(crate) fn note_message(&mut self, message: Snowflake) {
        self.newest = self.newest.max(message);
    }

    /// The id after which messages may be missing.
    fn gap_start(&self) -> Snowflake {
        let overlap = i64::try_from(OVERLAP.as_millis()).unwrap_or_default();
        let before = Timestamp::from_millis(self.newest.created_at().as_millis() - overlap);
        Snowflake::at(before).max(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const START: i64 = 1_700_000_000_000;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(START + minutes * MINUTE)
    }

    /// D14.
    #[test]
    fn the_first_start_begins_ten_minutes_before() {
        let mut position = Position::default();

        position.start_session(["1"].into_iter(), at(0));

        assert_eq!(position.gap("1"), Some(Snowflake::at(at(-10))));
        assert_eq!(position.gap(DIRECT), Some(Snowflake::at(at(-10))));
        position.close_gap("1");
        position.start_session(["1"].into_iter(), at(1));
        assert_eq!(position.gap("1"), Some(Snowflake::at(at(-10))), "nothing older");
    }

    /// F5, D14.
    #[test]
    fn a_session_is_not_resumed_before_every_server_was_read() {
        let mut position = Position::default();
        position.start_session([].into_iter(), at(0));
        position.mark_handled_to(&("session".into(), "wss://gateway".into()), 7);
        assert!(position.resumable_session().is_some());

        position.start_session(["1"].into_iter(), at(1));
        assert!(position.resumable_session().is_none());
        position.close_gap("1");

        assert!(position.resumable_session().is_some(), "direct chats are read at every start");
    }

    /// F5.
    #[test]
    fn a_gap_stays_where_it_began_until_it_is_filled() {
        let mut position = Position::default();
        position.start_session([].into_iter(), at(0));
        position.note_message(Snowflake::at(at(60)));

        position.start_session(["1", "2"].into_iter(), at(90));
        position.note_message(Snowflake::at(at(91)));
        let mut position = Position::parse(&position.to_text());
        position.start_session(["1", "2"].into_iter(), at(92));

        assert_eq!(position.gap("1"), Some(Snowflake::at(at(55))));
        position.close_gap("1");
        assert_eq!(position.gap("1"), None);
        assert_eq!(position.gap("2"), Some(Snowflake::at(at(55))));
    }

    #[test]
    fn a_server_that_is_away_for_a_while_has_a_gap() {
        let mut position = Position::default();
        position.start_session(["1"].into_iter(), at(0));
        for scope in ["1", DIRECT] {
            position.close_gap(scope);
        }
        position.note_message(Snowflake::at(at(60)));

        position.add_gap("1");
        position.note_message(Snowflake::at(at(80)));

        assert_eq!(position.gap("1"), Some(Snowflake::at(at(55))));
        assert_eq!(position.gap(DIRECT), None);
    }
}
