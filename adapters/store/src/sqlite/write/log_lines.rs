//! Lines of the gateway's own log, and the errors among them.

use rejoinder_core::{
    ChannelId, StoreError, TurnId,
    store::{ErrorMark, LogLine},
};
use rusqlite::params;
use sha2::{Digest, Sha256};

use super::rows::{self, Transaction, insert_into};
use crate::shared::stored::json;

/// Adds lines, and counts the errors and warnings among them.
pub(super) fn add(transaction: &Transaction<'_>, lines: &[LogLine]) -> Result<(), StoreError> {
    for line in lines.iter().map(LogLine::without_nul) {
        let LogLine { at, level, target, message, channel, turn_id, fields } = &*line;
        let of_turn;
        let channel = match (channel, turn_id) {
            (None, Some(turn)) => {
                of_turn = rows::one(transaction, SELECT_CHANNEL, [turn.as_uuid()], |row| row.get::<_, String>(0))?;
                of_turn.as_deref()
            }
            (channel, _) => channel.as_ref().map(ChannelId::as_str),
        };
        let (at, fields, turn_id) = (at.as_millis(), json(fields), turn_id.map(TurnId::as_uuid));
        insert_into!(transaction, log_lines { at, level: level.as_str(), target, message, channel, turn_id, fields })?;
        if line.is_counted() {
            let id = transaction.connection.last_insert_rowid();
            let key: [u8; 32] = Sha256::digest(json(&(level, target, message, channel, line.cause()))).into();
            let values = params![key, level.as_str(), target, message, channel, at, id, fields, line.is_always_news()];
            rows::change_one(transaction, "errors", COUNT_ERROR, values)?;
        }
    }
    Ok(())
}

/// Adds a line that the store itself logs, once it is committed.
pub(super) fn tell(transaction: &Transaction<'_>, line: LogLine) -> Result<(), StoreError> {
    add(transaction, std::slice::from_ref(&line))?;
    transaction.told.borrow_mut().push(line);
    Ok(())
}

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

const COUNT_ERROR: &str = "
    insert into errors (key, level, target, message, channel, count, first_at, last_at, last_line, fields)
    values (?1, ?2, ?3, ?4, ?5, 1, ?6, ?6, ?7, ?8)
    on conflict (key) do update set count = count + 1, last_at = excluded.last_at, last_line = excluded.last_line,
        fields = excluded.fields, acknowledged_at = iif(?9, null, acknowledged_at)";
