//! Lines of the gateway's own log, and the errors among them.

use rejoinder_core::{
    ChannelId, StoreError, TurnId,
    store::{ErrorMark, LineLevel, LogLine},
};
use rusqlite::params;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::rows::{self, Transaction, json};

/// Adds lines, and counts the errors and warnings among them.
pub(super) fn add(transaction: &Transaction<'_>, lines: &[LogLine]) -> Result<(), StoreError> {
    for line in lines {
        let LogLine { at, level, target, message, channel, turn_id, fields } = line;
        let of_turn;
        let channel = match (channel, turn_id) {
            (None, Some(turn)) => {
                of_turn = rows::one(transaction, SELECT_CHANNEL, [turn.as_uuid()], |row| row.get::<_, String>(0))?;
                of_turn.as_deref()
            }
            (channel, _) => channel.as_ref().map(ChannelId::as_str),
        };
        let (at, fields) = (at.as_millis(), json(fields));
        let turn = turn_id.map(TurnId::as_uuid);
        let values = params![at, level.as_str(), target, message, channel, turn, fields];
        rows::change_one(transaction, "log lines", INSERT_LINE, values)?;
        if *level <= LineLevel::Warn {
            let id = transaction.connection.last_insert_rowid();
            let key: [u8; 32] = Sha256::digest(json(&(level, target, message, channel, cause(&line.fields)))).into();
            let values = params![key, level.as_str(), target, message, channel, at, id, fields];
            rows::change_one(transaction, "errors", COUNT_ERROR, values)?;
        }
    }
    Ok(())
}

/// Why, without what differs from one to the next: numbers, except the codes of HTTP, and ids.
fn cause(fields: &Map<String, Value>) -> String {
    let texts = CAUSES.iter().filter_map(|name| fields.get(*name)?.as_str());
    let text = texts.collect::<Vec<_>>().join("; ");
    let is_code =
        |word: &str| word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|it| it.is_ascii_digit());
    let differs = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        digits > 0 && !is_code(word) && (digits == word.len() || word.len() >= 6)
    };
    let mut words = String::new();
    for part in text.split_inclusive(|char: char| !char.is_alphanumeric()) {
        let word = part.trim_end_matches(|char: char| !char.is_alphanumeric());
        words.push_str(if differs(word) { "#" } else { word });
        words.push_str(&part[word.len()..]);
    }
    words.chars().take(MOST_CAUSE).collect()
}

/// The fields that say why.
const CAUSES: [&str; 5] = ["error", "reason", "problem", "what", "location"];

/// How many characters of a cause tell it from others.
const MOST_CAUSE: usize = 200;

/// Stores what an operator says of an error.
pub(super) fn mark(transaction: &Transaction<'_>, id: i64, mark: ErrorMark, at: i64) -> Result<(), StoreError> {
    let sql = match mark {
        ErrorMark::Acknowledged => "update errors set acknowledged_at = ?2 where id = ?1",
        ErrorMark::Muted => {
            "update errors set muted = 1, acknowledged_at = coalesce(acknowledged_at, ?2) where id = ?1"
        }
        ErrorMark::Unmuted => {
            "update errors set muted = 0, acknowledged_at = coalesce(acknowledged_at, ?2) where id = ?1"
        }
    };
    rows::change_one(transaction, "errors", sql, params![id, at])
}

const SELECT_CHANNEL: &str = "select channel from turns where id = ?";

const INSERT_LINE: &str =
    "insert into log_lines (at, level, target, message, channel, turn_id, fields) values (?, ?, ?, ?, ?, ?, ?)";

const COUNT_ERROR: &str = "
    insert into errors (key, level, target, message, channel, count, first_at, last_at, last_line, fields)
    values (?1, ?2, ?3, ?4, ?5, 1, ?6, ?6, ?7, ?8)
    on conflict (key) do update set count = count + 1, last_at = excluded.last_at, last_line = excluded.last_line,
        fields = excluded.fields,
        -- A panic is news each time.
        acknowledged_at = iif(level = 'error' and message = 'a panic', null, acknowledged_at)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_differ_in_words_and_codes_and_not_in_ids_and_times() {
        let of = |error: &str| cause(&Map::from_iter([("error".to_owned(), error.into())]));

        assert_ne!(of("403 Forbidden: bot was blocked"), of("400 Bad Request: chat not found"));
        assert_ne!(of("502 Bad Gateway"), of("503 Service Unavailable"));
        assert_eq!(of("chat 12345 gave up after 31.4 s"), of("chat 987 gave up after 2.25 s"));
        assert_eq!(of("turn 0190a1b2-aaaa is lost"), of("turn 0190a1c9-aaaa is lost"));
    }
}
