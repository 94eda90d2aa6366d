//! The statements of one transaction of the writer: one for each kind of row.
//!
//! Their order is: accepted events, transitions, then the other requests. All requests of a batch are in
//! flight at the same time, so any order between them is correct; transitions on the same turn keep theirs.

mod accept;
mod amend;
mod aside;
mod channels;
mod commit;
mod insert;
mod lines;
mod pick;
mod remove;
mod rows;
mod runs;
mod sessions;

use rejoinder_core::StoreError;
use sqlx::SqliteConnection;

use self::rows::{Statement, Values};
use super::{
    error::store_error,
    request::{WriteRequest, WriteResult},
};

/// Writes `requests` on a connection that is in a transaction. The outcomes are in the order of the requests.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    requests: &[WriteRequest],
) -> Result<Vec<WriteResult>, StoreError> {
    let (mut accepts, mut transitions) = (Vec::new(), Vec::new());
    let (mut blocked, mut fetched, mut probed, mut configured) = (Vec::new(), Vec::new(), None, None);
    let mut set_aside = Vec::new();
    let mut removals = Vec::new();
    for request in requests {
        match request {
            WriteRequest::Accept { events, cursor } => accepts.push((events.as_slice(), cursor.as_ref())),
            WriteRequest::Commit(transition) => transitions.push(&**transition),
            WriteRequest::SetAside { turn, obligation, reason, at } => {
                set_aside.push((*turn, &**obligation, &**reason, *at));
            }
            WriteRequest::Channels(channels) => configured = Some(channels.as_slice()),
            WriteRequest::Block(scope) => blocked.push(scope),
            WriteRequest::Fetched { turn, at } => fetched.push((*turn, *at)),
            WriteRequest::Remove(removal) => removals.push(removal),
            WriteRequest::Probe { room } => probed = probed.max(Some(*room)),
        }
    }
    let mut accepted = accept::all(connection, &accepts).await?.into_iter();
    let mut committed = commit::all(connection, &transitions).await?.into_iter();
    for (turn, obligation, reason, at) in set_aside {
        aside::set(connection, turn, obligation, reason, at).await?;
    }
    let block = |scope: &&rejoinder_core::store::BlockedScope, values: &mut Values| {
        let chat = scope.chat.as_deref().unwrap_or("");
        values.add(scope.channel.as_str()).add(scope.chat.is_none()).add(chat).at(scope.until);
    };
    BLOCK.on(connection, &blocked, block).await?;
    FETCHED
        .on(connection, &fetched, |(turn, at), values| {
            values.id(turn.as_uuid()).at(*at);
        })
        .await?;
    if let Some(room) = probed {
        let probe = sqlx::query("update probe set count = count + 1, room = zeroblob(?)").bind(room);
        probe.execute(&mut *connection).await.map_err(store_error)?;
    }
    let absent = match configured {
        Some(channels) => channels::set(connection, channels).await?,
        None => Vec::new(),
    };
    let mut removed = Vec::with_capacity(removals.len());
    for removal in removals {
        removed.push(remove::rows(connection, removal).await?);
    }
    let mut removed = removed.into_iter();
    let outcomes = requests.iter().map(|request| match request {
        WriteRequest::Accept { .. } => accepted.next().map(WriteResult::Accepted),
        WriteRequest::Commit(_) => committed.next().map(WriteResult::Committed),
        WriteRequest::Channels(_) => Some(WriteResult::Absent(absent.clone())),
        WriteRequest::Remove(_) => removed.next().map(WriteResult::Removed),
        WriteRequest::SetAside { .. }
        | WriteRequest::Block(_)
        | WriteRequest::Fetched { .. }
        | WriteRequest::Probe { .. } => Some(WriteResult::Done),
    });
    Ok(outcomes.map(|outcome| outcome.expect("every request has an outcome of its kind")).collect())
}

/// When a scope is blocked twice, the later end counts.
static BLOCK: Statement = Statement::new(
    "with r (channel, account, chat, until) as ({rows})
    insert into blocked (channel, account, chat, until) select * from r where channel is not null
    on conflict do update set until = max(until, excluded.until)",
);

/// What the client reads is the latest signal: neither an earlier one nor a copy.
static FETCHED: Statement = Statement::new(
    "with r (turn_id, at) as ({rows})
    update deliveries set fetched_at = r.at from r
    where deliveries.turn_id = r.turn_id and deliveries.state = 'delivered' and deliveries.fetched_at is null
        and not deliveries.is_copy and deliveries.claim = (
            select max(d.claim) from deliveries d where d.turn_id = r.turn_id and d.state = 'delivered' and not d.is_copy
        )",
);
