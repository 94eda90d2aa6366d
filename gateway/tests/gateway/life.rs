//! Starting and stopping.

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::Value;
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};

use crate::support::{Echo, HOOK_TOKEN, TestGateway, eventually, json_of};

#[tokio::test]
async fn a_running_turn_may_end_while_the_gateway_stops() {
    let (agent, release, started) = Echo::waiting();
    let gateway = TestGateway::start_with(agent, "").await;
    let asked = tokio::spawn(gateway.ask("test", "hello").send());
    started.notified().await;

    gateway.begin_shutdown();
    release.notify_one();
    let answer = json_of(asked.await.unwrap().unwrap()).await;
    gateway.stop().await;

    assert_eq!((&answer["status"], &answer["reply"]), (&"answered".into(), &"you said: hello".into()));
}

/// A caller that still waits at the end of the drain gets the result's URL, which has the answer after the next start.
#[tokio::test]
async fn a_turn_that_outlives_the_drain_is_answered_after_the_next_start() {
    let (agent, _never, started) = Echo::waiting();
    let gateway = TestGateway::start_with(agent, "[server]\ndrain = \"100ms\"\n").await;
    let asked = tokio::spawn(gateway.ask("test", "hello").send());
    started.notified().await;

    gateway.begin_shutdown();
    let response = asked.await.unwrap().unwrap();
    let status = response.status();
    let accepted = json_of(response).await;
    let data = gateway.stop().await;
    let gateway = TestGateway::start_in(data, Echo::at_once(), "").await;
    let turn = accepted["turn_id"].as_str().unwrap();
    let request = gateway.get(&format!("/hooks/test/turns/{turn}")).bearer_auth(HOOK_TOKEN).header("prefer", "wait=20");
    let answer = json_of(request.send().await.unwrap()).await;

    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    assert!(accepted["result_url"].as_str().is_some(), "{accepted}");
    assert_eq!(answer["reply"], "you said: hello");
}

#[tokio::test]
async fn nothing_is_taken_in_while_it_stops() {
    let (agent, release, started) = Echo::waiting();
    let gateway = Arc::new(TestGateway::start_with(agent, "").await);
    let asked = tokio::spawn(gateway.ask("test", "hello").send());
    started.notified().await;

    gateway.begin_shutdown();
    // The listener may close a moment later.
    eventually("new connections are refused", async || {
        gateway.http.get(gateway.url("/healthz")).header("connection", "close").send().await.err()
    })
    .await;
    release.notify_one();

    assert_eq!(json_of(asked.await.unwrap().unwrap()).await["status"], "answered");
}

#[tokio::test]
async fn the_database_is_whole_after_the_end() {
    let gateway = TestGateway::start().await;
    gateway.ask_for_answer("test", "hello").await;

    let data = gateway.stop().await;

    assert!(data.path().join("rejoinder.db").exists());
    assert!(!data.path().join("rejoinder.db-wal").exists(), "the log was not written back");
    let gateway = TestGateway::start_in(data, Echo::at_once(), "").await;
    let (_, turns) = gateway.admin("turns").await;
    assert_eq!(turns["items"].as_array().map(Vec::len), Some(1), "{turns}");
    assert_eq!(turns["next"], Value::Null);
}

/// For example after a newer version has written to the database.
#[tokio::test]
async fn rows_that_cannot_be_read_stop_neither_the_start_nor_the_list() {
    let gateway = TestGateway::start().await;
    let turn = gateway.ask_for_answer("test", "hello").await;
    let data = gateway.stop().await;
    let options = SqliteConnectOptions::new().filename(data.path().join("rejoinder.db"));
    let mut connection = options.connect().await.unwrap();
    for change in [
        "update turns set body = '{}'",
        "update deliveries set action = '{}'",
        "insert into attempts (delivery_id, number, owner, started_at) select id, 9, zeroblob(16), 0 from deliveries",
    ] {
        sqlx::query(change).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();

    let gateway = TestGateway::start_in(data, Echo::at_once(), "").await;
    gateway.ask_for_answer("test", "and now?").await;
    let (_, turns) = gateway.admin("turns").await;

    let items = turns["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["unreadable"]), (2, &Value::Null), "{turns}");
    assert_eq!((&items[1]["turn_id"], &items[1]["unreadable"]), (&turn.into(), &true.into()), "{turns}");
}
