//! What a transaction of the writer consists of: every kind of row in one statement.
//!
//! The rows of a statement travel as one JSON array. Within a transaction the order is: what was
//! accepted, then transitions, then remarks. All requests of one batch are in flight at the same time,
//! so any order between them is a true one; transitions on the same turn keep theirs.

mod accept;
mod commit;

use rejoinder_core::{ConversationRef, StoreError};
use serde::Serialize;
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{
    error::store_error,
    writer::{Outcome, Work},
};

/// Carries out `works` on a connection that is in a transaction. The outcomes are in their order.
pub(super) async fn all(connection: &mut SqliteConnection, works: &[Work]) -> Result<Vec<Outcome>, StoreError> {
    let (mut accepts, mut transitions) = (Vec::new(), Vec::new());
    let (mut blocked, mut fetched, mut probed) = (Vec::new(), Vec::new(), false);
    for work in works {
        match work {
            Work::Accept { events, cursor } => accepts.push((events.as_slice(), cursor.as_ref())),
            Work::Commit(transition) => transitions.push(&**transition),
            Work::Block(scope) => blocked.push(Blocked {
                channel: scope.channel.as_str(),
                account: scope.chat.is_none(),
                chat: scope.chat.as_deref().unwrap_or(""),
                until: scope.until,
            }),
            Work::Fetched { turn, at } => fetched.push(Fetched { turn: *turn, at: *at }),
            Work::Probe => probed = true,
        }
    }
    let mut accepted = accept::all(connection, &accepts).await?.into_iter();
    let mut committed = commit::all(connection, &transitions).await?.into_iter();
    rows(connection, BLOCK, &blocked).await?;
    rows(connection, FETCHED, &fetched).await?;
    if probed {
        sqlx::query("update probe set count = count + 1").execute(connection).await.map_err(store_error)?;
    }
    let outcomes = works.iter().map(|work| match work {
        Work::Accept { .. } => accepted.next().map(Outcome::Accepted),
        Work::Commit(_) => committed.next().map(Outcome::Committed),
        Work::Block(_) | Work::Fetched { .. } | Work::Probe => Some(Outcome::Done),
    });
    Ok(outcomes.map(|outcome| outcome.expect("every request has an outcome of its kind")).collect())
}

#[derive(Serialize)]
struct Blocked<'a> {
    channel: &'a str,
    account: bool,
    chat: &'a str,
    until: rejoinder_core::Timestamp,
}

const BLOCK: &str = "
    insert into blocked (channel, account, chat, until)
    select value ->> 'channel', value ->> 'account', value ->> 'chat', value ->> 'until' from json_each(?)
    where true
    on conflict do update set until = max(until, excluded.until)";

#[derive(Serialize)]
struct Fetched {
    turn: rejoinder_core::TurnId,
    at: rejoinder_core::Timestamp,
}

const FETCHED: &str = "
    update deliveries set fetched_at = f.at
    from (select unhex(value ->> 'turn', '-') as turn, value ->> 'at' as at from json_each(?)) as f
    where deliveries.turn_id = f.turn and deliveries.state = 'delivered' and deliveries.fetched_at is null";

/// Runs `sql` on `rows`, unless there are none, and returns how many rows it touched.
async fn rows<T: Serialize>(
    connection: &mut SqliteConnection,
    sql: &'static str,
    rows: &[T],
) -> Result<u64, StoreError> {
    if rows.is_empty() {
        return Ok(0);
    }
    let done = sqlx::query(sql).bind(json(rows)).execute(connection).await.map_err(store_error)?;
    Ok(done.rows_affected())
}

/// Runs `sql` on `rows`, which must touch one row for each.
async fn each_row<T: Serialize>(
    connection: &mut SqliteConnection,
    sql: &'static str,
    what: &str,
    all: &[T],
) -> Result<(), StoreError> {
    let touched = rows(connection, sql, all).await?;
    if touched == all.len() as u64 {
        Ok(())
    } else {
        Err(StoreError::Failed(format!("{touched} of {} changes of {what} found their row", all.len())))
    }
}

/// Runs `sql` on `rows`, unless there are none, and returns what it answers.
async fn answers<T: Serialize>(
    connection: &mut SqliteConnection,
    sql: &'static str,
    rows: &[T],
) -> Result<Vec<SqliteRow>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(sql).bind(json(rows)).fetch_all(connection).await.map_err(store_error)
}

fn json<T: Serialize>(rows: &[T]) -> String {
    serde_json::to_string(rows).expect("rows have no keys but text")
}

/// A conversation to look up.
#[derive(Serialize)]
struct Ref<'a> {
    channel: &'a str,
    chat: &'a str,
    thread: &'a str,
}

impl<'a> Ref<'a> {
    fn of(conversation: &'a ConversationRef) -> Self {
        Self {
            channel: conversation.channel.as_str(),
            chat: &conversation.chat,
            thread: conversation.thread.as_deref().unwrap_or(""),
        }
    }
}
