//! The people who sign in to a chat page.

use std::sync::Arc;

use super::{
    clock::SharedClock,
    store::{
        error::StoreError,
        transition::{Commit, Transition},
        turns::ViewStore,
        visitors::VisitorStore,
    },
};
use crate::model::{ChannelId, Identity, Invitation, Passkey, ThreadSummary, Visit, VisitorChange};

/// What the people of one channel sign in with, and their conversations there. Nothing of other channels is found. Cheap to clone.
#[derive(Clone)]
pub struct Visitors {
    pub(crate) channel: ChannelId,
    pub(crate) store: Arc<dyn VisitorStore>,
    pub(crate) views: Arc<dyn ViewStore>,
    pub(crate) clock: SharedClock,
}

impl Visitors {
    /// The passkey with this id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn passkey(&self, id: &[u8]) -> Result<Option<Passkey>, StoreError> {
        Ok(self.store.passkey(id).await?.filter(|passkey| passkey.channel == self.channel))
    }

    /// The passkeys of an account, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn passkeys(&self, account: &str) -> Result<Vec<Passkey>, StoreError> {
        self.store.passkeys(&self.identity(account)).await
    }

    /// The visit whose secret has this digest, unless it is over.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn visit(&self, hash: &[u8; 32]) -> Result<Option<Visit>, StoreError> {
        let now = self.clock.now();
        Ok(self.store.visit(hash).await?.filter(|visit| visit.channel == self.channel && visit.expires_at > now))
    }

    /// The visits of an account that are not over, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn visits(&self, account: &str) -> Result<Vec<Visit>, StoreError> {
        let now = self.clock.now();
        let mut visits = self.store.visits(&self.identity(account)).await?;
        visits.retain(|visit| visit.expires_at > now);
        Ok(visits)
    }

    /// The invitation whose code has this digest, unless it is over.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn invitation(&self, code: &[u8; 32]) -> Result<Option<Invitation>, StoreError> {
        let now = self.clock.now();
        let found = self.store.invitation(code).await?;
        Ok(found.filter(|invitation| invitation.channel == self.channel && invitation.expires_at > now))
    }

    /// Stores changes. `false` if one of them does not fit what is stored: then nothing has changed.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub async fn change(&self, visitors: Vec<VisitorChange>) -> Result<bool, StoreError> {
        Ok(self.store.commit(Transition { visitors, ..Transition::default() }).await? == Commit::Done)
    }

    /// The conversations of an account, at most `limit`, the one with the last message first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn threads(&self, account: &str, limit: u32) -> Result<Vec<ThreadSummary>, StoreError> {
        self.views.threads(&self.channel, account, limit).await
    }

    fn identity(&self, account: &str) -> Identity {
        Identity { channel: self.channel.clone(), id: account.to_owned() }
    }
}
