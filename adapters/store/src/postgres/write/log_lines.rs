//! Lines of the gateway's own log, and the errors among them.

use std::{borrow::Cow, collections::BTreeMap, iter::zip};

use rejoinder_core::{
    ChannelId, StoreError, TurnId,
    store::{ErrorMark, LineId, LogLine},
};
use sha2::{Digest, Sha256};
use sqlx::postgres::PgRow;

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{List, statement},
    records::columns::Columns,
    shared::stored::json,
};

/// Adds lines, and counts the errors and warnings among them, in two statements: while a transaction that writes goes on, the log of
/// events cannot be read to its end.
pub(super) async fn add(transaction: &mut Transaction<'_>, lines: &[LogLine]) -> Result<(), StoreError> {
    let lines: Vec<Cow<'_, LogLine>> = lines.iter().map(LogLine::without_nul).collect();
    let fields: Vec<String> = lines.iter().map(|line| json(&line.fields)).collect();
    let insert = statement!(
        INSERT,
        List(lines.iter().map(|line| line.at.as_millis()).collect()),
        List(lines.iter().map(|line| line.level.as_str()).collect()),
        List(lines.iter().map(|line| line.target.as_str()).collect()),
        List(lines.iter().map(|line| line.message.as_str()).collect()),
        List(lines.iter().map(|line| line.channel.as_ref().map(|channel| channel.as_str().to_owned())).collect()),
        List(lines.iter().map(|line| line.turn_id.map(TurnId::as_uuid)).collect()),
        List(fields.iter().map(String::as_str).collect()),
    );
    let stored = |row: &PgRow| Ok((row.value::<LineId>("id")?, row.value::<Option<ChannelId>>("channel")?));
    let stored = rows::all(transaction, insert, stored).await?;
    // In the order of their keys: transactions that count the same errors do not block each other.
    let mut errors = BTreeMap::<[u8; 32], Counted<'_>>::new();
    for ((line, fields), (id, channel)) in zip(zip(&lines, &fields), stored) {
        let (line, fields): (&LogLine, &str) = (line, fields);
        if line.is_counted() {
            let LogLine { at, level, target, message, .. } = line;
            let channel = channel.map(|channel| channel.as_str().to_owned());
            let key = Sha256::digest(json(&(level, target, message, &channel, line.cause()))).into();
            let first = Counted { line, channel, count: 0, first_at: at.as_millis(), id, fields };
            let error = errors.entry(key).or_insert(first);
            (error.line, error.id, error.fields) = (line, id, fields);
            error.count += 1;
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let news = errors.iter().filter(|(_, error)| error.line.is_always_news()).map(|(key, _)| *key);
    let count = statement!(
        COUNT_ERRORS,
        List(errors.keys().copied().collect()),
        List(errors.values().map(|error| error.line.level.as_str()).collect()),
        List(errors.values().map(|error| error.line.target.as_str()).collect()),
        List(errors.values().map(|error| error.line.message.as_str()).collect()),
        List(errors.values().map(|error| error.channel.clone()).collect()),
        List(errors.values().map(|error| error.count).collect()),
        List(errors.values().map(|error| error.first_at).collect()),
        List(errors.values().map(|error| error.line.at.as_millis()).collect()),
        List(errors.values().map(|error| error.id).collect()),
        List(errors.values().map(|error| error.fields).collect()),
        List(news.collect()),
    );
    rows::change(transaction, count).await.map(drop)
}

/// Equal errors among lines.
struct Counted<'l> {
    /// The last of them, with its id and fields.
    line: &'l LogLine,
    id: LineId,
    fields: &'l str,
    channel: Option<String>,
    count: i64,
    first_at: i64,
}

/// Adds a line that the store itself logs, once it is committed.
pub(super) async fn tell(transaction: &mut Transaction<'_>, line: LogLine) -> Result<(), StoreError> {
    add(transaction, std::slice::from_ref(&line)).await?;
    transaction.told.push(line);
    Ok(())
}

pub(super) async fn mark(
    transaction: &mut Transaction<'_>,
    id: i64,
    mark: ErrorMark,
    at: i64,
) -> Result<(), StoreError> {
    let sql = match mark {
        ErrorMark::Acknowledged => "update errors set acknowledged_at = $2 where id = $1",
        ErrorMark::Muted => {
            "update errors set muted = true, acknowledged_at = coalesce(acknowledged_at, $2) where id = $1"
        }
        ErrorMark::Unmuted => {
            "update errors set muted = false, acknowledged_at = coalesce(acknowledged_at, $2) where id = $1"
        }
    };
    rows::change_one(transaction, "errors", statement!(sql, id, at)).await
}

/// Returns the rows in the order of the lines.
const INSERT: &str = "
    insert into log_lines (at, level, target, message, channel, turn_id, fields)
    select at, level, target, message, coalesce(channel, (select t.channel from turns as t where t.id = l.turn_id)),
        turn_id, fields
    from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::text[])
        with ordinality as l (at, level, target, message, channel, turn_id, fields, number)
    order by number
    returning id, channel";

/// Errors with a key of `$11` are news again.
const COUNT_ERRORS: &str = "
    insert into errors as e (key, level, target, message, channel, count, first_at, last_at, last_line, fields)
    select * from unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::text[])
    on conflict (key) do update set count = e.count + excluded.count, last_at = excluded.last_at,
        last_line = excluded.last_line, fields = excluded.fields,
        acknowledged_at = case when e.key = any($11::bytea[]) then null else e.acknowledged_at end";
