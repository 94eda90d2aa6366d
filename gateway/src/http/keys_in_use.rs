//! The idempotency keys of requests that are being done.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// The idempotency keys of requests that are being done, each with the name of its operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeysInUse(Arc<Mutex<HashSet<(String, String)>>>);

impl KeysInUse {
    fn with<T>(&self, change: impl FnOnce(&mut HashSet<(String, String)>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None` if another request uses the key now.
    pub(super) fn take(&self, operator: &str, key: &str) -> Option<KeyInUse> {
        let key = (operator.to_owned(), key.to_owned());
        let is_free = self.with(|keys| keys.insert(key.clone()));
        is_free.then(|| KeyInUse { keys: self.clone(), key })
    }
}

/// Keeps an idempotency key in use until it is dropped.
pub(super) struct KeyInUse {
    keys: KeysInUse,
    key: (String, String),
}

impl Drop for KeyInUse {
    fn drop(&mut self) {
        self.keys.with(|keys| keys.remove(&self.key));
    }
}
