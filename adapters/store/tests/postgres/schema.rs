//! Which databases are opened, and how they get their schema.

use std::sync::Arc;

use rejoinder_core::{
    SystemClock,
    store::{InboxStore, StoreState},
};
use rejoinder_store::{PostgresOpenError, PostgresOptions, TestServer};
use sqlx::{Connection, Executor, PgConnection};

use crate::{
    common::{open, set_recovery},
    server,
};

/// Why a database is not opened.
async fn error(url: &str) -> PostgresOpenError {
    PostgresOptions::new(url, Arc::new(SystemClock)).open().await.expect_err("it is not opened")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_open_an_empty_database_make_one_schema() {
    let Some(server) = server::get() else { return };
    let database = server.create(TestServer::EMPTY).await;
    let url = database.url();

    let (one, other) = tokio::join!(open(&url), open(&url));

    for store in [&one, &other] {
        store.probe().await.expect("it writes");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_of_a_newer_version_is_left_alone() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let mut connection = PgConnection::connect(&url).await.expect("the database is there");
    let newer =
        "insert into _sqlx_migrations select 900, 'next', now(), true, checksum, 0 from _sqlx_migrations limit 1";
    connection.execute(newer).await.expect("it is written");

    let error = error(&url).await;

    assert!(matches!(error, PostgresOpenError::Newer { found: 900, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_hold_all_characters_is_not_used() {
    let Some(server) = server::get() else { return };
    let database = server.create("template template0 encoding 'LATIN1' locale 'C'").await;

    let error = error(&database.url()).await;

    assert!(error.to_string().ends_with("has the encoding LATIN1: create it with the encoding UTF8"), "{error}");
}

/// As one does in transaction mode, all connections seem to be of the same process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_gives_each_transaction_another_connection_is_not_used() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let mut connection = PgConnection::connect(&url).await.expect("the database is there");
    let pooled = "
        create function public.pg_backend_pid() returns integer language sql as 'select 42';
        do $$ begin
            execute format('alter database %I set search_path = public, pg_catalog', current_database());
        end $$";
    connection.execute(pooled).await.expect("it is set");

    let error = error(&url).await;

    assert!(matches!(error, PostgresOpenError::Pooler { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_can_only_be_read_is_not_used() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let mut connection = PgConnection::connect(&url).await.expect("the database is there");
    let read_only = "
        do $$ begin
            execute format('alter database %I set default_transaction_read_only = on', current_database());
        end $$";
    connection.execute(read_only).await.expect("it is set");

    let error = error(&url).await;

    assert!(matches!(error, PostgresOpenError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_not_used() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let mut connection = PgConnection::connect(&url).await.expect("the database is there");
    set_recovery(&mut connection, true).await;

    let error = error(&url).await;

    assert!(matches!(error, PostgresOpenError::Standby { .. }), "{error:?}");
}
