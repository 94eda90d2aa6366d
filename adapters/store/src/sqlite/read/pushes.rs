//! Push subscriptions.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, Timestamp,
    store::{PushStore, PushSubscription},
};

use crate::{
    shared::{
        request::{PushWrite, WriteRequest, WriteResult},
        stored::thread,
    },
    sqlite::{error::store_error, store::SqliteStore},
};

#[async_trait]
impl PushStore for SqliteStore {
    async fn add_subscription(
        &self,
        of: &ConversationRef,
        subscription: PushSubscription,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let add = PushWrite::Add { of: of.clone(), subscription, at };
        self.write(WriteRequest::Push(Box::new(add))).await.map(drop)
    }

    async fn remove_subscription(&self, channel: &ChannelId, endpoint: &str) -> Result<(), StoreError> {
        let remove = PushWrite::Remove { channel: channel.clone(), endpoint: endpoint.to_owned() };
        self.write(WriteRequest::Push(Box::new(remove))).await.map(drop)
    }

    async fn remove_subscriptions(&self, of: &ConversationRef) -> Result<(), StoreError> {
        self.write(WriteRequest::Push(Box::new(PushWrite::RemoveAll(of.clone())))).await.map(drop)
    }

    async fn is_subscribed(&self, of: &ConversationRef) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(IS_SUBSCRIBED).bind(of.channel.as_str()).bind(&*of.chat).bind(thread(of));
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn take_subscriptions(
        &self,
        of: &ConversationRef,
        shown_at: Timestamp,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        let take = PushWrite::Take { of: of.clone(), shown_at };
        match self.write(WriteRequest::Push(Box::new(take))).await? {
            WriteResult::Subscriptions(taken) => Ok(taken),
            other => unreachable!("`Take` ended with {other:?}"),
        }
    }
}

const IS_SUBSCRIBED: &str =
    "select exists (select 1 from push_subscriptions where channel = ? and chat = ? and thread = ?)";
