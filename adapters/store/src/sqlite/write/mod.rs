//! The statements of one transaction of the writer: those of one request after another.

mod accept;
mod agent_sessions;
mod amend;
mod approvals;
mod aside;
mod channels;
mod commit;
mod daily_use;
mod files;
mod index;
mod insert;
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
mod tokens;
mod versions;
mod visitors;

use rejoinder_core::StoreError;
use rusqlite::params;

pub(super) use rows::Transaction;

use crate::shared::request::{WriteRequest, WriteResult};

pub(super) fn request(transaction: &Transaction<'_>, request: &WriteRequest) -> Result<WriteResult, StoreError> {
    match request {
        WriteRequest::Accept { events, beside } => {
            accept::all(transaction, events, beside.as_ref()).map(WriteResult::Accepted)
        }
        WriteRequest::Commit(transition) => commit::apply(transaction, transition).map(WriteResult::Committed),
        WriteRequest::SetAside { turn, obligation, reason, at } => {
            aside::set(transaction, *turn, obligation, reason, *at).map(|()| WriteResult::Done)
        }
        WriteRequest::Channels(channels) => channels::set(transaction, channels).map(WriteResult::Absent),
        WriteRequest::Block(scope) => {
            let chat = scope.chat.as_deref().unwrap_or("");
            let values = params![scope.channel.as_str(), scope.chat.is_none(), chat, scope.until.as_millis()];
            rows::change(transaction, BLOCK, values).map(|_| WriteResult::Done)
        }
        WriteRequest::Lines(lines) => log_lines::add(transaction, lines).map(|()| WriteResult::Done),
        WriteRequest::Fetched { turn, at } => {
            rows::change(transaction, FETCHED, params![turn.as_uuid(), at.as_millis()]).map(|_| WriteResult::Done)
        }
        WriteRequest::Remove(removal, now) => remove::rows(transaction, removal, *now).map(WriteResult::Removed),
        WriteRequest::Scrub => index::merge(transaction).map(WriteResult::Scrubbed),
        WriteRequest::Index { limit } => index::step(transaction, *limit).map(WriteResult::Indexed),
        WriteRequest::Push(write) => pushes::write(transaction, write),
        // Who asks for that finds out before: the adapters of one process have files.
        #[cfg(feature = "postgres")]
        WriteRequest::Keyring(..) => Err(StoreError::Failed("a database of one process keeps no keys".to_owned())),
        WriteRequest::Probe { room } => rows::change(transaction, PROBE, [room]).map(|_| WriteResult::Done),
    }
}

/// When a scope is blocked twice, the later end counts.
const BLOCK: &str = "
    insert into blocked (channel, account, chat, until) values (?, ?, ?, ?)
    on conflict do update set until = max(until, excluded.until)";

/// What the client reads is the latest signal: neither an earlier one nor a copy.
const FETCHED: &str = "
    update deliveries set fetched_at = ?2
    where turn_id = ?1 and state = 'delivered' and fetched_at is null and not is_copy and claim = (
        select max(d.claim) from deliveries d where d.turn_id = ?1 and d.state = 'delivered' and not d.is_copy)";

const PROBE: &str = "update probe set count = count + 1, room = zeroblob(?)";
