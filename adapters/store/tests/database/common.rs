//! A database in a directory of its own.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rejoinder_core::{Store, conformance::store::Subject, store::StoreState};
use rejoinder_store::{OpenOptions, SqliteStore};
use tempfile::TempDir;

pub(crate) struct Database {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) path: PathBuf,
    _directory: TempDir,
}

impl Database {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory is made");
        let path = directory.path().join("data").join("rejoinder.db");
        let store = SqliteStore::open(OpenOptions::new(&path)).await.expect("the store opens");
        Self { store: Arc::new(store), path, _directory: directory }
    }
}

#[async_trait]
impl Subject for Database {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        let store = SqliteStore::open(OpenOptions::new(&self.path)).await.expect("the store opens again");
        self.store = Arc::new(store);
    }

    async fn another(&self) -> Arc<dyn Store> {
        Arc::new(self.store.another().await.expect("the store opens twice"))
    }
}
