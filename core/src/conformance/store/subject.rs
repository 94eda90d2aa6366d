//! The store under test.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::store::Store;

/// An empty store for one check, which can be closed and reopened, and opened twice.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The open store.
    fn store(&self) -> Arc<dyn Store>;

    /// Closes the store and reopens it, as a restart does.
    async fn reopen(&mut self);

    /// Opens the store a second time, beside [`store`](Self::store): as another process does, where the store admits one. The
    /// check closes it.
    async fn another(&self) -> Arc<dyn Store>;

    /// Whether the store gives what removed rows took back to the file system by itself. Otherwise it uses that again.
    fn shrinks(&self) -> bool {
        true
    }
}
