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

use rejoinder_core::StoreError;

pub(super) use rows::Transaction;

use crate::{
    postgres::values::statement,
    shared::request::{WriteRequest, WriteResult},
};

pub(super) async fn request(
    transaction: &mut Transaction<'_>,
    request: &WriteRequest,
) -> Result<WriteResult, StoreError> {
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
        WriteRequest::Fetched { turn, at } => {
            rows::change(transaction, statement!(FETCHED, turn, at)).await.map(|_| WriteResult::Done)
        }
        WriteRequest::Remove(removal, now) => {
            Box::pin(remove::rows(transaction, removal, *now)).await.map(WriteResult::Removed)
        }
        // Words go with their rows.
        WriteRequest::Scrub => Ok(WriteResult::Scrubbed(false)),
        WriteRequest::Index { limit } => index::step(transaction, *limit).await.map(WriteResult::Indexed),
        WriteRequest::Keyring(by, write) => keyring::write(transaction, by, write).await.map(|()| WriteResult::Done),
        // How much room there is, only the server knows.
        WriteRequest::Probe { .. } => {
            rows::change_one(transaction, "probe", statement!(PROBE)).await.map(|()| WriteResult::Done)
        }
    }
}

/// When a scope is blocked twice, the later end counts.
const BLOCK: &str = "
    insert into blocked (channel, account, chat, until) values ($1, $2, $3, $4)
    on conflict (channel, account, chat) do update set until = greatest(blocked.until, excluded.until)";

/// What the client reads is the latest signal: neither an earlier one nor a copy.
const FETCHED: &str = "
    update deliveries set fetched_at = $2
    where turn_id = $1 and state = 'delivered' and fetched_at is null and not is_copy and claim = (
        select max(d.claim) from deliveries as d where d.turn_id = $1 and d.state = 'delivered' and not d.is_copy)";

const PROBE: &str = "update probe set count = count + 1";
