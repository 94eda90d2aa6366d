//! Accepts events: deduplicates and stores them, and opens their turns.

use std::collections::VecDeque;

use rejoinder_core::{
    StoreError,
    store::{CursorMove, NewEvent, Stored},
};
use sqlx::SqliteConnection;

use super::{amend, insert, rows::Statement};

/// Accepts the events of several requests in order, and moves their cursors.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    requests: &[(&[NewEvent], Option<&CursorMove>)],
) -> Result<Vec<Vec<Stored>>, StoreError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<&NewEvent> = requests.iter().flat_map(|(events, _)| events.iter()).collect();
    let mut stored = VecDeque::with_capacity(events.len());
    // An event that changes earlier rows is handled alone, in its place between the others.
    for together in events.chunk_by(|one, next| !amend::is_change(one) && !amend::is_change(next)) {
        match together {
            [one] if amend::is_change(one) => stored.push_back(amend::accept(connection, one).await?),
            many => stored.extend(insert::all(connection, many).await?),
        }
    }

    let cursors: Vec<&CursorMove> = requests.iter().filter_map(|(_, cursor)| *cursor).collect();
    MOVE_CURSORS
        .on(connection, &cursors, |cursor, values| {
            values.add(cursor.channel.as_str()).add(&*cursor.name).add(&*cursor.position);
        })
        .await?;
    Ok(requests.iter().map(|(events, _)| stored.drain(..events.len()).collect()).collect())
}

static MOVE_CURSORS: Statement = Statement::new(
    "with r (channel, name, position) as ({rows})
    insert into channels_cursor (channel, name, position) select * from r where channel is not null
    on conflict do update set position = excluded.position",
);
