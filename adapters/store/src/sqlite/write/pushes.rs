//! Push subscriptions.

use rejoinder_core::{
    StoreError,
    store::{PushSubscription, SUBSCRIPTIONS_KEPT},
};
use rusqlite::{Row, params};

use super::rows::{self, Transaction};
use crate::shared::{
    request::{PushWrite, WriteResult},
    stored::thread,
};

pub(super) fn write(transaction: &Transaction<'_>, write: &PushWrite) -> Result<WriteResult, StoreError> {
    match write {
        PushWrite::Add { of, subscription, at } => {
            let (channel, chat, thread) = (of.channel.as_str(), &*of.chat, thread(of));
            let PushSubscription { endpoint, key, auth } = subscription;
            rows::change(transaction, ADD, params![channel, chat, thread, endpoint, key, auth, at.as_millis()])?;
            rows::change(transaction, REMOVE_OLDEST, params![channel, chat, thread, SUBSCRIPTIONS_KEPT])?;
        }
        PushWrite::Remove { channel, endpoint } => {
            rows::change(transaction, REMOVE, params![channel.as_str(), endpoint])?;
        }
        PushWrite::RemoveAll(of) => {
            rows::change(transaction, REMOVE_ALL, params![of.channel.as_str(), &*of.chat, thread(of)])?;
        }
        PushWrite::Take { of, shown_at } => {
            let values = params![of.channel.as_str(), &*of.chat, thread(of), shown_at.as_millis()];
            return rows::all(transaction, TAKE, values, subscription).map(WriteResult::Subscriptions);
        }
    }
    Ok(WriteResult::Done)
}

fn subscription(row: &Row<'_>) -> rusqlite::Result<PushSubscription> {
    Ok(PushSubscription { endpoint: row.get("endpoint")?, key: row.get("key")?, auth: row.get("auth")? })
}

const ADD: &str = "
    insert into push_subscriptions (channel, chat, thread, endpoint, key, auth, told_at)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7 where exists (
        select 1 from conversations where channel = ?1 and chat = ?2 and thread = ?3 and succeeded_by is null)
    on conflict (channel, chat, thread, endpoint) do update set
        key = excluded.key, auth = excluded.auth, told_at = excluded.told_at";

const REMOVE_OLDEST: &str = "
    delete from push_subscriptions where channel = ?1 and chat = ?2 and thread = ?3 and endpoint not in (
        select endpoint from push_subscriptions where channel = ?1 and chat = ?2 and thread = ?3
        order by told_at desc, endpoint limit ?4)";

const REMOVE: &str = "delete from push_subscriptions where channel = ? and endpoint = ?";

const REMOVE_ALL: &str = "delete from push_subscriptions where channel = ? and chat = ? and thread = ?";

const TAKE: &str = "
    update push_subscriptions set told_at = ?4 where channel = ?1 and chat = ?2 and thread = ?3 and told_at < ?4
    returning endpoint, key, auth";
