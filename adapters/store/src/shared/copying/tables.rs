//! What is copied: the tables and columns that both databases have, and the columns that PostgreSQL has besides.

use std::fmt::Write as _;

use rejoinder_core::{Obligation, Sender, TurnId, Via};
use serde::Deserialize;

use super::values::{Kind, Value};
use crate::shared::stored::{ObligationColumns, is_by_agent, parse, sender_names};

/// A table of both databases.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// How many of its first columns are its key. Both databases have rows in the same order of these.
    pub(crate) keys: usize,
    /// How many rows are in memory at a time, at most.
    pub(crate) page: usize,
    pub(crate) columns: &'static [Column],
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// A row: the values of the columns of its table, in their order.
pub(crate) type Row = Vec<Value>;

/// Rows by their key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'a> {
    /// Only rows with a greater key.
    pub(crate) after: Option<&'a [Value]>,
    /// Only rows up to this key.
    pub(crate) through: Option<&'a [Value]>,
}

impl Range<'_> {
    /// The values of the statement that [`Table::select`] makes, each with the place of its column.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, &Value)> {
        [self.after, self.through].into_iter().flatten().flat_map(|key| key.iter().enumerate())
    }
}

/// Tables: `name [number of columns in its key, rows in memory] { column: kind, … }`.
macro_rules! tables {
    ($($name:ident [$keys:literal, $page:literal] { $($column:ident: $kind:ident),* $(,)? })*) => {
        &[$(Table {
            name: stringify!($name),
            keys: $keys,
            page: $page,
            columns: &[$(Column { name: stringify!($column), kind: Kind::$kind }),*],
        }),*]
    };
}

/// All tables that are copied.
pub(crate) static TABLES: &[Table] = tables! {
    versions [1, 1000] { noun: Name, version: Number }
    people [1, 1000] { id: Id, name: Text, role: Name, created_at: Number, sessions_version: Number }
    identities [2, 1000] { channel: Name, id: Name, person_id: Id, added_at: Number, added_by: Text }
    pairings [2, 1000] {
        channel: Name, id: Name, code: Name, name: Text, username: Text, chat: Name, thread: Name, asked_at: Number,
        expires_at: Number, state: Name, language: Name, linked_by: Id,
    }
    languages [2, 1000] { channel: Name, id: Name, language: Name }
    direct_chats [2, 1000] {
        channel: Name, id: Name, chat: Name, thread: Name, since: Number, is_home: Flag, language: Name,
    }
    guesses [2, 1000] { who: Name, code: Name, since: Number }
    tokens [1, 1000] {
        id: Id, name: Name, hash: Bytes, role: Name, channels: JsonText, created_at: Number, created_by: Text,
        expires_at: Number, revoked_at: Number,
    }
    sign_ins [1, 1000] { id: Id, hash: Bytes, token: Id, browser: Text, opened_at: Number, expires_at: Number }
    sign_in_links [1, 1000] { code: Bytes, token: Id, session: Id, expires_at: Number }
    passkeys [1, 1000] {
        id: Bytes, channel: Name, account: Name, party: Name, algorithm: Number, key: Bytes, counter: Number, browser: Text,
        added_at: Number, used_at: Number,
    }
    visits [1, 1000] {
        id: Id, hash: Bytes, channel: Name, account: Name, challenge: Bytes, browser: Text, opened_at: Number, expires_at: Number,
    }
    invitations [1, 1000] { code: Bytes, channel: Name, account: Name, expires_at: Number }
    schedules [1, 1000] { id: Id, name: Name, body: JsonText }
    schedule_runs [2, 1000] {
        schedule_id: Id, due_at: Number, at: Number, turns: JsonText, problem: Text, not_reached: JsonText,
    }
    channels_cursor [2, 1000] { channel: Name, name: Name, position: Text }
    blocked [3, 1000] { channel: Name, account: Flag, chat: Name, until: Number }
    paused [1, 1000] { channel: Name, since: Number, by: Text, reason: Text }
    daily_use [2, 1000] {
        channel: Name, id: Name, day: Number, turns: Number, tokens: Number, micros: Number, estimated: Number,
    }
    agent_use [1, 1000] {
        agent: Name, day: Number, turns: Number, tokens: Number, micros: Number, estimated: Number,
    }
    conversations [1, 1000] {
        id: Id, channel: Name, chat: Name, thread: Name, session_id: Id, created_at: Number, succeeded_by: Id,
        queue: Name, sessions_version: Number, voice: Name,
    }
    sessions [1, 1000] {
        id: Id, conversation_id: Id, created_at: Number, name: Text, owner: Id, agent: Name, model: Name,
        used_at: Number, title: Text,
    }
    agent_sessions [2, 1000] { session_id: Id, agent: Name, own_session: Text, removals: Number }
    agent_notices [4, 1000] {
        session_id: Id, agent: Name, change: Name, turn_id: RemovedId, due_at: Number, attempts: Number,
    }
    events [1, 200] {
        seq: Number, id: Id, channel: Name, chat: Name, thread: Name, external_id: Name, revision: Number, turn_id: Id,
        text: Text, details: Json, raw: Text, received_at: Number,
    }
    turns [1, 1000] {
        seq: Number, id: Id, conversation_id: Id, session_id: Id, agent: Name, command: Name, accepted_at: Number,
        channel: Name, picked: Id, rule: Name, model: Name, left_out: Flag, event: Number, person: Name,
        next_agent: Name, version: Number, owed: Flag, state: Name, work: Name, wake_at: Number, overdue_at: Number,
        ended_at: Number, absent: Flag, rank: Number, place: Number, body: JsonText,
    }
    asides [1, 1000] { turn_id: Id, conversation_id: Id, sender: Name }
    remarks [1, 1000] { id: Number, turn_id: Id, at: Number, kind: Name, detail: Text }
    runs [1, 1000] {
        run: Number, agent: Name, command: Name, owner: Id, started_at: Number, ended_at: Number, ending: Name,
        detail: Text, usage: Json, cost_micros: Number, currency: Name, member: Name, holder: Text,
    }
    run_settings [1, 50] { id: Number, digest: Bytes, used: Number, body: Text }
    run_contents [1, 50] {
        run: Number, at: Number, settings: Number, messages: Bytes, left_out: Number, tools: JsonText,
        tools_left_out: Number,
    }
    deliveries [1, 500] {
        seq: Number, id: Id, turn_id: Id, claim: Number, part: Number, parts: Number, conversation_id: Id,
        channel: Name, class: Name, signal: Name, via: JsonText, is_copy: Flag, action: Json, state: Name,
        attempts: Number, next_attempt_at: Number, label: Name, parked: Flag, copies: Number, resend_from: Number,
        message_ids: Json, error: Text, created_at: Number, retried_at: Number, delivered_at: Number,
        fetched_at: Number, absent: Flag,
    }
    attempts [2, 1000] {
        delivery_id: Id, number: Number, owner: Id, started_at: Number, ended_at: Number, result: Name, detail: Text,
    }
    transcript [4, 500] {
        session_id: Id, seq: Number, claim: Number, turn_id: Id, speaker: Name, author: Json, forwarded: Json,
        text: Text, at: Number, stopped: Flag,
    }
    reactions [2, 1000] {
        turn_id: Id, person: Name, emoji: Name, author: Json, at: Number, channel: Name, external_id: Name,
    }
    questions [1, 1000] {
        turn_id: Id, seq: RowId, claim: Number, conversation_id: Id, channel: Name, chooser: Name, text: Text,
        choices: JsonText, free_text: Flag, asked_at: Number, expires_at: Number, language: Name, state: Name,
        picked: Text,
    }
    approvals [1, 200] {
        seq: Number, id: Id, turn_id: Id, channel: Name, agent: Name, person: Text, action: Text, details: Text,
        kind: Text, asked_at: Number, expires_at: Number, state: Name, decided_at: Number, decided_by: Text, note: Text,
        given_to: Number, choices: JsonText, options: JsonText, chosen: Text,
    }
    whole_requests [1, 50] { approval_id: Id, action: Text, details: Text, kind: Text }
    approval_notices [2, 1000] { approval_id: Id, person_id: Id, turn_id: Id }
    files [1, 4] { digest: Bytes, size: Number, content: Bytes }
    file_uses [2, 1000] { turn_id: Id, digest: Bytes, spoken_at: Number }
    push_subscriptions [4, 1000] {
        channel: Name, chat: Name, thread: Name, endpoint: Name, key: Bytes, auth: Bytes, told_at: Number,
    }
    answers [2, 200] { by: Name, key: Name, request: Bytes, status: Number, body: JsonText, at: Number }
    audit [1, 1000] {
        id: Number, at: Number, by: Text, action: Name, target: Name, reason: Text, turn_id: Id, conversation_id: Id,
        channel: Name, not_reached: JsonText,
    }
    log [1, 1000] {
        seq: Number, at: Number, topic: Name, turn_id: Id, conversation_id: Id, channel: Name, data: JsonText,
    }
    log_lines [1, 500] {
        id: Number, at: Number, level: Name, target: Name, message: Text, channel: Name, turn_id: Id, fields: JsonText,
    }
    errors [1, 500] {
        id: Number, key: Bytes, level: Name, target: Name, message: Text, channel: Name, count: Number,
        first_at: Number, last_at: Number, last_line: Number, fields: JsonText, acknowledged_at: Number, muted: Flag,
    }
};

/// The tables that are not copied. `search` and `search_progress` are made anew, the others are about processes that are over, or are
/// no rows of the store.
#[cfg(feature = "testing")]
pub(crate) const NOT_COPIED: [&str; 16] = [
    "_sqlx_migrations",
    "probe",
    "search",
    "search_progress",
    "writers",
    "nodes",
    "leases",
    "slots",
    "agent_permits",
    "drafts",
    "minute_use",
    "answers_under_way",
    // Each database has its own: on SQLite these are files.
    "secrets",
    "keyring_uses",
    "keyring",
    "configuration",
];

impl Column {
    /// Its name in SQLite.
    pub(crate) const fn in_sqlite(&self) -> &'static str {
        match self.kind {
            Kind::RowId => "rowid",
            _ => self.name,
        }
    }
}

impl Table {
    pub(crate) fn key<'r>(&self, row: &'r [Value]) -> &'r [Value] {
        &row[..self.keys]
    }

    /// The names of the columns of its key.
    pub(crate) fn key_names(&self) -> String {
        names(&self.columns[..self.keys], |column| column.name.to_owned())
    }

    /// The statement that reads the rows of a range, in the order of their keys, at most `limit`. `name` makes what is read of a
    /// column. Its values are [`Range::values`].
    pub(crate) fn select(&self, range: &Range<'_>, limit: usize, name: impl Fn(&Column) -> String) -> String {
        let key = self.key_names();
        let mut sql = format!("select {} from {}", names(self.columns, name), self.name);
        let (mut joint, mut value) = ("where", 1);
        for (sign, bound) in [(">", range.after), ("<=", range.through)] {
            if bound.is_some() {
                let _ = write!(sql, " {joint} ({key}) {sign} ({})", marks(value, self.keys));
                (joint, value) = ("and", value + self.keys);
            }
        }
        let _ = write!(sql, " order by {key} limit {limit}");
        sql
    }

    /// The columns that only PostgreSQL has: values that SQLite reads from JSON, and counts that several nodes compare.
    pub(crate) fn derived(&self) -> &'static [Column] {
        match self.name {
            "sessions" => &[Column { name: "changes", kind: Kind::Number }],
            "events" => &[Column { name: "sender_names", kind: Kind::Text }],
            "turns" => &[
                Column { name: "postponed", kind: Kind::Flag },
                Column { name: "suspended", kind: Kind::Flag },
                Column { name: "fell_back", kind: Kind::Flag },
                Column { name: "merged_into", kind: Kind::Id },
            ],
            "deliveries" => &[Column { name: "by_agent", kind: Kind::Flag }],
            _ => &[],
        }
    }

    /// The values of [`derived`](Self::derived). What cannot be read derives nothing: SQLite finds nothing in it either.
    pub(crate) fn derive(&self, row: &[Value]) -> Row {
        #[derive(Deserialize)]
        struct Details {
            sender: Sender,
        }
        match self.name {
            // No node has read its lines from PostgreSQL yet.
            "sessions" => vec![Value::Number(0)],
            "events" => {
                let details: Option<Details> = self.text(row, "details").and_then(|json| parse("details", json).ok());
                vec![details.and_then(|details| sender_names(&details.sender)).map_or(Value::Null, Value::Text)]
            }
            "turns" => {
                let body: Option<Obligation> = self.text(row, "body").and_then(|json| parse("body", json).ok());
                let columns = body.as_ref().map(ObligationColumns::of);
                let flag = |is_set: fn(&ObligationColumns) -> bool| Value::Flag(columns.as_ref().is_some_and(is_set));
                let merged_into = columns.as_ref().and_then(|columns| columns.merged_into).map(TurnId::as_uuid);
                vec![
                    flag(|columns| columns.postponed),
                    flag(|columns| columns.suspended),
                    flag(|columns| columns.fell_back),
                    merged_into.map_or(Value::Null, Value::Id),
                ]
            }
            "deliveries" => {
                let via: Option<Via> = self.text(row, "via").and_then(|json| parse("via", json).ok());
                vec![Value::Flag(via.as_ref().is_some_and(is_by_agent))]
            }
            _ => Row::new(),
        }
    }

    /// The text in a column of a row.
    fn text<'r>(&self, row: &'r [Value], column: &str) -> Option<&'r str> {
        let at = self.columns.iter().position(|it| it.name == column)?;
        match row.get(at)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// What `name` makes of columns, between commas.
pub(crate) fn names(columns: &[Column], name: impl Fn(&Column) -> String) -> String {
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// `$first, …`: marks of values in a statement.
pub(crate) fn marks(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{Expectation, Policy, Timestamp};

    use super::*;
    use crate::shared::stored::json;

    fn table(name: &str) -> &'static Table {
        TABLES.iter().find(|table| table.name == name).expect("it is copied")
    }

    /// A row of nulls, but for one column.
    fn row(table: &Table, column: &str, value: &Value) -> Row {
        let of = |it: &Column| if it.name == column { value.clone() } else { Value::Null };
        table.columns.iter().map(of).collect()
    }

    #[test]
    fn a_range_has_the_bounds_that_it_names() {
        let table = table("file_uses");
        let (after, through) = ([Value::Number(1), Value::Number(2)], [Value::Number(3), Value::Number(4)]);
        let select = |range: Range<'_>| table.select(&range, 9, |column| column.name.to_owned());

        let all = select(Range { after: None, through: None });
        let first = select(Range { after: None, through: Some(&through) });
        let both = Range { after: Some(&after), through: Some(&through) };

        assert_eq!(all, "select turn_id, digest, spoken_at from file_uses order by turn_id, digest limit 9");
        assert!(first.contains(" where (turn_id, digest) <= ($1, $2) order"), "{first}");
        let sql = select(both);
        assert!(sql.contains(" where (turn_id, digest) > ($1, $2) and (turn_id, digest) <= ($3, $4) order"), "{sql}");
        let values: Vec<_> = both.values().map(|(at, value)| (at, value.clone())).collect();
        let expected = [(0, 1), (1, 2), (0, 3), (1, 4)].map(|(at, number)| (at, Value::Number(number)));
        assert_eq!(values, expected);
    }

    #[test]
    fn what_postgresql_has_besides_is_derived() {
        let of_sender = |sender: &str| {
            let events = table("events");
            events.derive(&row(events, "details", &Value::Text(format!(r#"{{"sender":{sender},"x":1}}"#))))
        };
        let sender = r#"{"id":"7","name":"Änne","username":null,"kind":"person"}"#;
        assert_eq!(of_sender(sender), [Value::Text("\nänne\n".to_owned())]);
        assert_eq!(of_sender("7"), [Value::Null]);

        let deliveries = table("deliveries");
        let by_agent = |via: &str| deliveries.derive(&row(deliveries, "via", &Value::Text(via.to_owned())));
        assert_eq!(by_agent(&json(&Via::Answer)), [Value::Flag(true)]);
        assert_eq!(by_agent(&json(&Via::Draft)), [Value::Flag(false)]);
        assert_eq!(by_agent("damaged"), [Value::Flag(false)]);

        let turns = table("turns");
        let now = Timestamp::from_millis(1);
        let body = json(&Obligation::open(Expectation::Answer, &Policy::default(), None, now));
        let open = [Value::Flag(false), Value::Flag(false), Value::Flag(false), Value::Null];
        assert_eq!(turns.derive(&row(turns, "body", &Value::Text(body))), open);
        assert_eq!(turns.derive(&row(turns, "body", &Value::Text("{}".to_owned()))), open);
        for table in TABLES {
            let derived = table.derive(&row(table, "", &Value::Null));
            assert_eq!(derived.len(), table.derived().len(), "{}", table.name);
        }
    }
}
