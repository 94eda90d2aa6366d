//! The keyring of a channel, under the channel's lease.

use std::{fmt, sync::Arc};

use uuid::Uuid;

use super::store::{
    error::StoreError,
    keyring::{KeyChanges, KeyName, KeyRange, KeyringStore, KeyringUse},
    nodes::{Fence, LeaseName},
};
use crate::model::ChannelId;

/// The keyring of a channel that this node has.
#[derive(Clone)]
pub struct Keyring {
    store: Arc<dyn KeyringStore>,
    channel: ChannelId,
    lease: (LeaseName, Fence),
}

impl Keyring {
    /// The keyring of `channel` in `store`, under its lease.
    #[must_use]
    pub const fn new(store: Arc<dyn KeyringStore>, channel: ChannelId, lease: (LeaseName, Fence)) -> Self {
        Self { store, channel, lease }
    }

    /// Begins to use it, and empties it first if it is to begin `anew`. What was opened before changes nothing any more, here or at
    /// another node.
    ///
    /// # Errors
    /// When the store cannot be written, or this node does not have the channel any more.
    pub async fn open(&self, anew: bool) -> Result<OpenKeyring, StoreError> {
        let by = KeyringUse { channel: self.channel.clone(), lease: self.lease.clone(), id: Uuid::now_v7() };
        self.store.use_keyring(&by, anew).await?;
        Ok(OpenKeyring { store: Arc::clone(&self.store), by })
    }
}

/// A keyring in use.
#[derive(Clone)]
pub struct OpenKeyring {
    store: Arc<dyn KeyringStore>,
    by: KeyringUse,
}

impl fmt::Debug for OpenKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenKeyring").field("by", &self.by).finish_non_exhaustive()
    }
}

impl OpenKeyring {
    /// Changes keys, all at once.
    ///
    /// # Errors
    /// When nothing was changed, or that is not known. [`StoreError::NotOwner`] if this node does not have the channel any more, or has
    /// opened the keyring again.
    pub async fn change(&self, changes: KeyChanges) -> Result<(), StoreError> {
        self.store.change_keys(&self.by, changes).await
    }

    /// The values of those of these keys that are there, in the order of their names.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn values(&self, names: &[KeyName]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.store.keys(&self.by.channel, names).await
    }

    /// The values of the keys in a range, in the order of their names.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn values_in(&self, range: &KeyRange) -> Result<Vec<Vec<u8>>, StoreError> {
        self.store.keys_in(&self.by.channel, range).await
    }

    /// How many keys of a kind there are.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn count(&self, kind: &'static str) -> Result<u64, StoreError> {
        self.store.count_keys(&self.by.channel, kind).await
    }
}
