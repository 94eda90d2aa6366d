//! Push subscriptions.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, Timestamp,
    store::{PushStore, PushSubscription},
};

use crate::{
    postgres::{store::PostgresStore, values::statement},
    records::columns::Columns,
    shared::{
        request::{PushWrite, WriteRequest, WriteResult},
        stored::thread,
    },
};

#[async_trait]
impl PushStore for PostgresStore {
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
        let select = statement!(IS_SUBSCRIBED, of.channel, of.chat, thread(of));
        let found = self.readers.one(select, |row| row.value("found")).await?;
        Ok(found.unwrap_or(false))
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
    "select exists (select 1 from push_subscriptions where channel = $1 and chat = $2 and thread = $3) as found";
