//! Which databases are opened, and how they get their schema.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rejoinder_core::{
    SystemClock, TurnId,
    store::{
        ApprovalFilter, AuditFilter, ErrorFilter, InboxStore, LineStore, LogFilter, LogLineFilter, LogStore,
        OperatorStore, QuestionFilter, QuestionStore, StoreState,
    },
};
use rejoinder_store::{PostgresOpenError, PostgresOptions, PostgresStore, TestServer};
use sqlx::{Connection, Executor, PgConnection};

use crate::{
    common::{Database, new_turn, open, set_recovery},
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

/// What is written while a copy reads it would be missing there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_a_copy_has_locked_is_not_opened() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let mut copy = PgConnection::connect(&url).await.expect("the database is there");
    copy.execute("begin; lock table nodes, writers in share mode").await.expect("it is locked");

    let error = error(&url).await;

    assert!(matches!(error, PostgresOpenError::Locked { .. }) && error.is_away(), "{error:?}");
    copy.execute("rollback").await.expect("it is unlocked");
    open(&url).await.close().await;
}

/// What a later version may do while nodes of this one go on.
const EXPAND: &str = r#"
    do $$
    declare
        one text;
    begin
        for one in select tablename from pg_tables where schemaname = current_schema() and tablename <> '_sqlx_migrations' loop
            execute format('alter table %I add column of_later bigint not null default 0', one);
        end loop;
        update turns set body = (body::jsonb || '{"of_later": 0}')::text;
        update events set details = details || '{"of_later": 0}';
    end $$"#;

/// Reads what has whole rows.
async fn read_rows(store: &PostgresStore, turn: TurnId) {
    store.log(&LogFilter { limit: 10, ..LogFilter::default() }).await.expect("the log is read");
    store.audit(&AuditFilter { limit: 10, ..AuditFilter::default() }).await.expect("the audit is read");
    store.log_lines(&LogLineFilter { limit: 10, ..LogLineFilter::default() }).await.expect("lines are read");
    store.errors(&ErrorFilter { limit: 10, ..ErrorFilter::default() }).await.expect("errors are read");
    store.questions(QuestionFilter::Of(turn), 10).await.expect("questions are read");
    store.approvals(ApprovalFilter::Of(turn), 10).await.expect("approvals are read");
    store.dossier(turn).await.expect("dossiers are read").expect("the turn is there");
}

/// In each table a column, and fields of JSON. A statement that was prepared with `select *` would fail from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_later_version_adds_is_passed_over() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    let new = new_turn("1");
    let turn = new.turn.as_ref().expect("it has a turn").id;
    store.accept(vec![new], None).await.expect("it is accepted");
    read_rows(store, turn).await;

    elsewhere.execute(EXPAND).await.expect("it is added");

    read_rows(store, turn).await;
    store.accept(vec![new_turn("2")], None).await.expect("it is accepted");
}

/// An update of the schema is tried again, and meanwhile nobody waits behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_somebody_else_changes_is_waited_for() {
    let Some(server) = server::get() else { return };
    let database = server.create(TestServer::EMPTY).await;
    let url = database.url();
    let mut other = PgConnection::connect(&url).await.expect("the database is there");
    other.execute("begin; create table nodes (id integer)").await.expect("it is made");

    let begun = Instant::now();
    let error = error(&url).await;

    assert!(error.is_locked() && error.is_away(), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    other.execute("rollback").await.expect("it is undone");
    open(&url).await.close().await;
}

/// The URL with another user, whose password is asked for and wrong, or who does not exist.
fn of_another_user(url: &str) -> String {
    let (_, host) = url.split_once("://").expect("it is a URL");
    let (_, host) = host.split_once('@').expect("it has a user");
    format!("postgres://{}:wrong@{host}", server::WITH_PASSWORD)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_let_in_and_what_is_not_there_are_told_apart_from_a_server_that_is_away() {
    let Some(server) = server::get() else { return };
    let database = server.database().await;
    let url = database.url();
    let (before, parameters) = url.split_once('?').expect("it ends with parameters");

    let user = error(&of_another_user(&url)).await;
    let missing = error(&format!("{before}_gone?{parameters}")).await;
    let read_only = error(&format!("{url}&options=-c%20default_transaction_read_only%3Don")).await;
    let unknown = error("postgres://ann@no..such.host/chats").await;
    let away = error("postgres://ann@127.0.0.1:1/chats").await;

    assert!(
        matches!(&user, PostgresOpenError::User { reason, .. } if reason.contains(server::WITH_PASSWORD)),
        "{user:?}"
    );
    assert!(matches!(missing, PostgresOpenError::NoDatabase { .. }), "{missing:?}");
    assert!(matches!(read_only, PostgresOpenError::ReadOnly { .. }), "{read_only:?}");
    for error in [user, missing, read_only, unknown] {
        assert!(!error.is_away(), "{error:?}");
    }
    assert!(away.is_away(), "{away:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_read_is_not_changed() {
    let Some(server) = server::get() else { return };
    let (empty, database) = (server.create(TestServer::EMPTY).await, server.database().await);
    let read = async |url: String| PostgresOptions::new(url, Arc::new(SystemClock)).open_read_only().await;

    let error = read(empty.url()).await.expect_err("it has no tables");
    let store = read(database.url()).await.expect("it opens");

    assert!(matches!(error, PostgresOpenError::Empty { .. }), "{error:?}");
    store.backlog().await.expect("it is read");
    let refused = store.probe().await.expect_err("it is only read");
    assert!(refused.to_string().contains("can only be read"), "{refused}");
    store.close().await;
    let error = read(empty.url()).await.expect_err("it has no tables yet");
    assert!(matches!(error, PostgresOpenError::Empty { .. }), "{error:?}");
}
