//! A database of its own, and turns to put into it.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    Store, SystemClock,
    conformance::store::Subject,
    store::{NewEvent, StoreState},
};
use rejoinder_store::{PostgresOptions, PostgresStore, TestDatabase};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::{server, turns};

pub(crate) struct Database {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) url: String,
    /// Removed when it is dropped.
    _made: TestDatabase,
}

impl Database {
    /// An empty database; `None` without a server.
    pub(crate) async fn new() -> Option<Self> {
        let database = server::get()?.database().await;
        let url = database.url();
        Some(Self { store: Arc::new(open(&url).await), url, _made: database })
    }

    /// A connection to the database as another program opens it.
    pub(crate) async fn elsewhere(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the database is there")
    }
}

/// From now on, new connections to the database are told that its server is in recovery, or is not.
pub(crate) async fn set_recovery(connection: &mut PgConnection, is_in_recovery: bool) {
    let sql = format!(
        "create or replace function public.pg_is_in_recovery() returns boolean
        language sql as 'select {is_in_recovery}';
        do $$ begin
            execute format('alter database %I set search_path = public, pg_catalog', current_database());
        end $$"
    );
    connection.execute(AssertSqlSafe(sql)).await.expect("it is set");
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresOptions::new(url, Arc::new(SystemClock)).open().await.expect("the store opens")
}

#[async_trait]
impl Subject for Database {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        self.store = Arc::new(open(&self.url).await);
    }

    async fn another(&self) -> Arc<dyn Store> {
        Arc::new(open(&self.url).await)
    }

    fn shrinks(&self) -> bool {
        false
    }
}

pub(crate) fn new_turn(key: &str) -> NewEvent {
    turns::new_turn("a", key, "hi".to_owned())
}
