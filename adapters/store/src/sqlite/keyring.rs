//! There are no keyrings: the one process has in files what the accounts of its channels need.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{KeyChanges, KeyName, KeyRange, KeyringStore, KeyringUse},
};

use super::store::SqliteStore;

fn unused() -> StoreError {
    StoreError::Failed("a database of one process keeps no keys".to_owned())
}

#[async_trait]
impl KeyringStore for SqliteStore {
    async fn use_keyring(&self, _by: &KeyringUse, _anew: bool) -> Result<(), StoreError> {
        Err(unused())
    }

    async fn change_keys(&self, _by: &KeyringUse, _changes: KeyChanges) -> Result<(), StoreError> {
        Err(unused())
    }

    async fn keys(&self, _channel: &ChannelId, _names: &[KeyName]) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }

    async fn keys_in(&self, _channel: &ChannelId, _range: &KeyRange) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(Vec::new())
    }

    async fn count_keys(&self, _channel: &ChannelId, _kind: &str) -> Result<u64, StoreError> {
        Ok(0)
    }
}
