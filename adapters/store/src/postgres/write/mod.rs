//! The statements of one transaction of the writer: those of one request after another.

mod accept;
mod agent_sessions;
mod amend;
mod approvals;
mod aside;
pub(super) mod batch;
mod channels;
mod commit;
mod daily_use;
mod files;
mod index;
mod insert;
mod keyring;
mod leases;
mod lines;
mod log;
mod log_lines;
mod people;
mod pick;
mod pushes;
mod questions;
mod reactions;
mod remove;
mod rows;
mod runs;
mod schedules;
mod sessions;
mod settings;
mod slots;
mod tokens;
mod values;
mod versions;
mod visitors;

use rejoinder_core::StoreError;

pub(super) use rows::Transaction;

use crate::{
    postgres::values::{List, statement},
    shared::request::{WriteRequest, WriteResult},
};

/// Writes all of `requests`. The results are in their order.
pub(super) async fn requests(
    transaction: &mut Transaction<'_>,
    requests: &[WriteRequest],
) -> Result<Vec<WriteResult>, StoreError> {
    mark_fetched(transaction, requests).await?;
    let mut results = Vec::with_capacity(requests.len());
    for request in requests {
        results.push(self::request(transaction, request).await?);
    }
    Ok(results)
}

async fn request(transaction: &mut Transaction<'_>, request: &WriteRequest) -> Result<WriteResult, StoreError> {
    match request {
        WriteRequest::Accept { events, beside } => {
            let accepting = Box::pin(accept::all(transaction, events, beside.as_ref()));
            accepting.await.map(WriteResult::Accepted)
        }
        WriteRequest::Commit(transition) => {
            Box::pin(commit::apply(transaction, transition)).await.map(WriteResult::Committed)
        }
        WriteRequest::SetAside { turn, obligation, reason, at } => {
            aside::set(transaction, *turn, obligation, reason, *at).await.map(|()| WriteResult::Done)
        }
        WriteRequest::Channels(channels) => channels::set(transaction, channels).await.map(WriteResult::Absent),
        WriteRequest::Block(scope) => {
            let chat = scope.chat.as_deref().unwrap_or("");
            let block = statement!(BLOCK, scope.channel, scope.chat.is_none(), chat, scope.until);
            rows::change(transaction, block).await.map(|_| WriteResult::Done)
        }
        WriteRequest::Lines(lines) => log_lines::add(transaction, lines).await.map(|()| WriteResult::Done),
        // `mark_fetched` has written these.
        WriteRequest::Fetched { .. } => Ok(WriteResult::Done),
        WriteRequest::Remove(removal, now) => {
            Box::pin(remove::rows(transaction, removal, *now)).await.map(WriteResult::Removed)
        }
        // Words go with their rows.
        WriteRequest::Scrub => Ok(WriteResult::Scrubbed(false)),
        WriteRequest::Index { limit } => index::step(transaction, *limit).await.map(WriteResult::Indexed),
        WriteRequest::Push(write) => pushes::write(transaction, write).await,
        WriteRequest::Keyring(by, write) => keyring::write(transaction, by, write).await.map(|()| WriteResult::Done),
        // How much room there is, only the server knows.
        WriteRequest::Probe { .. } => {
            rows::change_one(transaction, "probe", statement!(PROBE)).await.map(|()| WriteResult::Done)
        }
    }
}

/// Marks answers as fetched, all in one statement: each turn of a hook has such a mark.
async fn mark_fetched(transaction: &mut Transaction<'_>, requests: &[WriteRequest]) -> Result<(), StoreError> {
    let fetched = requests.iter().filter_map(|request| match request {
        WriteRequest::Fetched { turn, at } => Some((turn.as_uuid(), at.as_millis())),
        _ => None,
    });
    let (turns, times): (Vec<_>, Vec<_>) = fetched.unzip();
    if turns.is_empty() {
        return Ok(());
    }
    rows::change(transaction, statement!(FETCHED, List(turns), List(times))).await.map(drop)
}

/// When a scope is blocked twice, the later end counts.
const BLOCK: &str = "
    insert into blocked (channel, account, chat, until) values ($1, $2, $3, $4)
    on conflict (channel, account, chat) do update set until = greatest(blocked.until, excluded.until)";

/// What the client reads is the latest signal: neither an earlier one nor a copy. The first time counts.
const FETCHED: &str = "
    with fetched as materialized (
        select d.id, f.at
        from (select turn, min(at) as at from unnest($1::uuid[], $2::bigint[]) as f (turn, at) group by turn) as f
            join deliveries as d on d.turn_id = f.turn
        where d.state = 'delivered' and d.fetched_at is null and not d.is_copy and d.claim = (
            select max(o.claim) from deliveries as o where o.turn_id = d.turn_id and o.state = 'delivered' and not o.is_copy)
        order by d.id for no key update of d
    )
    update deliveries as d set fetched_at = f.at from fetched as f where d.id = f.id";

const PROBE: &str = "update probe set count = count + 1";
