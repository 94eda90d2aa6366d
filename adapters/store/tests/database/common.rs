//! A database in a directory of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use rejoinder_core::{
    Store, StoreError,
    conformance::store::Subject,
    store::{InboxStore, StoreState, Stored},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::turns::new_turn;

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

pub(crate) async fn accept(store: &SqliteStore, chat: &str, key: &str, text: String) -> Result<Stored, StoreError> {
    Ok(store.accept(vec![new_turn(chat, key, text)], None).await?.remove(0))
}

/// A connection to the database as another program opens it.
pub(crate) async fn elsewhere(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.expect("the file opens")
}
