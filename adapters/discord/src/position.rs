//! How far the channel has read Discord: stored with the events that it covers, in one transaction.
//!
//! Discord's ids grow with time over all channels, so one id is enough to say what is stored. What was said in
//! a server or in direct chats while we were away is a gap that begins at an id; it is noted before anything
//! newer is stored, and forgotten when it is filled, so that a gateway that ends meanwhile fills it later.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rejoinder_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    gateway::{Dispatch, Session},
    snowflake::Snowflake,
};

/// The name of the cursor.
pub(crate) const CURSOR: &str = "position";

/// The name of the gap in direct chats.
pub(crate) const DIRECT: &str = "direct";

/// How much before the newest message may have come after it: the channels of an account do not keep step.
const OVERLAP: Duration = Duration::from_mins(5);

/// How far the channel has read.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Where the first start was: what is older was never ours to answer.
    since: Snowflake,
    /// The newest message that is stored.
    newest: Snowflake,
    /// The session, and its last event that is stored.
    pub(crate) session: Option<Session>,
    /// When the session was begun.
    pub(crate) identified_at: Option<Timestamp>,
    /// What has to be read over REST, by server, and where it begins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    gaps: BTreeMap<String, Snowflake>,
}

impl Position {
    /// A position as it was stored; the first one of a channel for anything else.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a position is JSON")
    }

    /// A session begins. Everything that the servers and direct chats hold after what is stored is a gap; on
    /// the very first start there is none.
    pub(crate) fn begins<'a>(&mut self, servers: impl Iterator<Item = &'a str>, now: Timestamp) {
        self.identified_at = Some(now);
        if self.since.is_none() {
            self.since = Snowflake::at(now);
            self.newest = self.since;
            return;
        }
        let from = self.after();
        for place in servers.chain([DIRECT]) {
            self.gaps.entry(place.to_owned()).or_insert(from);
        }
    }

    /// A server is not there for a while: what is said in it meanwhile does not come.
    pub(crate) fn loses(&mut self, server: &str) {
        let from = self.after();
        self.gaps.entry(server.to_owned()).or_insert(from);
    }

    /// Where the gap of a place begins, if there is one.
    pub(crate) fn gap(&self, place: &str) -> Option<Snowflake> {
        self.gaps.get(place).copied()
    }

    pub(crate) fn filled(&mut self, place: &str) {
        self.gaps.remove(place);
    }

    /// An event was dealt with.
    pub(crate) fn passes(&mut self, dispatch: &Dispatch) {
        self.passes_to(&dispatch.session, dispatch.seq);
    }

    /// Everything up to this number of a session was dealt with.
    pub(crate) fn passes_to(&mut self, session: &(Arc<str>, Arc<str>), seq: u64) {
        let (id, url) = session;
        self.session = Some(Session { id: Arc::clone(id), url: Arc::clone(url), seq });
    }

    /// A message was seen.
    pub(crate) fn sees(&mut self, message: Snowflake) {
        self.newest = self.newest.max(message);
    }

    /// After which message there may be some that are not stored.
    fn after(&self) -> Snowflake {
        let overlap = i64::try_from(OVERLAP.as_millis()).unwrap_or_default();
        let before = Timestamp::from_millis(self.newest.made_at().as_millis() - overlap);
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
    fn the_first_start_begins_at_now() {
        let mut position = Position::default();

        position.begins(["1"].into_iter(), at(0));

        assert_eq!(position.gap("1"), None);
        assert_eq!(position.gap(DIRECT), None);
        position.begins(["1"].into_iter(), at(1));
        assert_eq!(position.gap("1"), Some(Snowflake::at(at(0))), "nothing from before the first start");
    }

    /// F5.
    #[test]
    fn a_gap_stays_where_it_began_until_it_is_filled() {
        let mut position = Position::default();
        position.begins([].into_iter(), at(0));
        position.sees(Snowflake::at(at(60)));

        position.begins(["1", "2"].into_iter(), at(90));
        position.sees(Snowflake::at(at(91)));
        let mut position = Position::parse(&position.to_text());
        position.begins(["1", "2"].into_iter(), at(92));

        assert_eq!(position.gap("1"), Some(Snowflake::at(at(55))));
        position.filled("1");
        assert_eq!(position.gap("1"), None);
        assert_eq!(position.gap("2"), Some(Snowflake::at(at(55))));
    }

    #[test]
    fn a_server_that_is_away_for_a_while_has_a_gap() {
        let mut position = Position::default();
        position.begins(["1"].into_iter(), at(0));
        position.sees(Snowflake::at(at(60)));

        position.loses("1");
        position.sees(Snowflake::at(at(80)));

        assert_eq!(position.gap("1"), Some(Snowflake::at(at(55))));
        assert_eq!(position.gap(DIRECT), None);
    }
}
