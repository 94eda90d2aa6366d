//! The idempotency keys of requests that are being done: in memory those of this node, and in the store those of all nodes, if there
//! can be others.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use rejoinder_core::{
    NodeId, StoreError,
    store::{AgreementStore, AnswerUnderWay},
};
use tracing::debug;
use uuid::Uuid;

/// The idempotency keys of requests that are being done, each with the name of its operator.
#[derive(Clone)]
pub(crate) struct KeysInUse {
    own: Arc<Mutex<HashSet<(String, String)>>>,
    /// `None` if there can be no other node.
    store: Option<Arc<dyn AgreementStore>>,
    node: NodeId,
}

impl KeysInUse {
    /// `is_shared`: there can be other nodes.
    pub(crate) fn new(store: Arc<dyn AgreementStore>, node: NodeId, is_shared: bool) -> Self {
        Self { own: Arc::default(), store: is_shared.then_some(store), node }
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashSet<(String, String)>) -> T) -> T {
        change(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None` if another request uses the key now.
    pub(super) async fn take(&self, operator: &str, key: &str) -> Result<Option<KeyInUse>, StoreError> {
        let (by, key) = (operator.to_owned(), key.to_owned());
        if !self.with(|keys| keys.insert((by.clone(), key.clone()))) {
            return Ok(None);
        }
        let answer = AnswerUnderWay { by, key, node: self.node, request: Uuid::now_v7() };
        // Before the store is asked: it is free again also if the caller goes meanwhile.
        let in_use = KeyInUse { keys: self.clone(), answer };
        let is_begun = match &self.store {
            Some(store) => store.begin_answer(&in_use.answer).await?,
            None => true,
        };
        Ok(is_begun.then_some(in_use))
    }
}

/// Keeps an idempotency key in use until it is dropped.
pub(super) struct KeyInUse {
    keys: KeysInUse,
    answer: AnswerUnderWay,
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        let AnswerUnderWay { by, key, .. } = &self.answer;
        self.keys.with(|keys| keys.remove(&(by.clone(), key.clone())));
        let Some(store) = self.keys.store.clone() else { return };
        let answer = self.answer.clone();
        tokio::spawn(async move {
            if let Err(error) = store.end_answer(&answer).await {
                debug!(%error, "an idempotency key stays in use at the other nodes for some minutes");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::SystemClock;
    use rejoinder_store::{OpenOptions, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn a_key_is_used_by_one_request_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = OpenOptions::new(folder.path().join("rejoinder.db"));
        options.clock = Arc::new(SystemClock);
        let store = Arc::new(SqliteStore::open(options).await.unwrap());
        let keys = KeysInUse::new(store, NodeId::from(Uuid::from_u128(1)), true);
        let take = async |by, key| keys.take(by, key).await.unwrap();

        let first = take("ada", "key").await;
        assert!(first.is_some() && take("ada", "key").await.is_none());
        assert!(take("bob", "key").await.is_some() && take("ada", "another").await.is_some());

        drop(first);
        assert!(take("ada", "key").await.is_some());
    }
}
