//! Push subscriptions.

use rejoinder_core::{
    StoreError,
    store::{PushSubscription, SUBSCRIPTIONS_KEPT},
};

use super::rows::{self, Transaction};
use crate::{
    postgres::values::{Bytes, statement},
    records::push,
    shared::{
        request::{PushWrite, WriteResult},
        stored::thread,
    },
};

pub(super) async fn write(transaction: &mut Transaction<'_>, write: &PushWrite) -> Result<WriteResult, StoreError> {
    match write {
        PushWrite::Add { of, subscription, at } => {
            let PushSubscription { endpoint, key, auth } = subscription;
            let (key, auth, thread) = (Bytes(key), Bytes(auth), thread(of));
            let add = statement!(ADD, of.channel, of.chat, thread, endpoint, key, auth, at);
            rows::change(transaction, add).await?;
            let remove = statement!(REMOVE_OLDEST, of.channel, of.chat, thread, SUBSCRIPTIONS_KEPT);
            rows::change(transaction, remove).await?;
        }
        PushWrite::Remove { channel, endpoint } => {
            rows::change(transaction, statement!(REMOVE, channel, endpoint)).await?;
        }
        PushWrite::RemoveAll(of) => {
            rows::change(transaction, statement!(REMOVE_ALL, of.channel, of.chat, thread(of))).await?;
        }
        PushWrite::Take { of, shown_at } => {
            let thread = thread(of);
            let take = statement!(TAKE, of.channel, of.chat, thread, shown_at);
            return rows::all(transaction, take, push::subscription).await.map(WriteResult::Subscriptions);
        }
    }
    Ok(WriteResult::Done)
}

/// The conversation stays until its row is there.
const ADD: &str = "
    insert into push_subscriptions (channel, chat, thread, endpoint, key, auth, told_at)
    select $1, $2, $3, $4, $5, $6, $7 from conversations
    where channel = $1 and chat = $2 and thread = $3 and succeeded_by is null for key share
    on conflict (channel, chat, thread, endpoint) do update set
        key = excluded.key, auth = excluded.auth, told_at = excluded.told_at";

const REMOVE_OLDEST: &str = "
    delete from push_subscriptions where channel = $1 and chat = $2 and thread = $3 and endpoint not in (
        select endpoint from push_subscriptions where channel = $1 and chat = $2 and thread = $3
        order by told_at desc, endpoint limit $4)";

const REMOVE: &str = "delete from push_subscriptions where channel = $1 and endpoint = $2";

const REMOVE_ALL: &str = "delete from push_subscriptions where channel = $1 and chat = $2 and thread = $3";

const TAKE: &str = "
    with untold as (
        select endpoint from push_subscriptions where channel = $1 and chat = $2 and thread = $3 and told_at < $4
        order by endpoint for no key update)
    update push_subscriptions as p set told_at = $4 from untold as u
    where p.channel = $1 and p.chat = $2 and p.thread = $3 and p.endpoint = u.endpoint
    returning p.endpoint, p.key, p.auth";
