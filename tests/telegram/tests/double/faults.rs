//! Faults and outages.

use std::time::{Duration, Instant};

use rejoinder_telegram_double::{ApiError, Fault, Outage, PATIENCE, TelegramDouble};
use serde_json::json;
use tokio::time::timeout;

use crate::client::started;

/// Polls until there is a result; a port that opens or closes causes no notification.
async fn soon<T>(about: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let tries = async {
        loop {
            if let Some(found) = attempt().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, tries).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {about}"))
}

#[tokio::test]
async fn a_lost_answer_is_an_executed_call() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    telegram.fault(Fault::lost_answer().on("sendMessage"));
    let message = json!({ "chat_id": ada, "text": "hello" });
    let lost = api.answer("sendMessage", message.clone()).await.unwrap_err();
    assert!(!lost.is_connect() && !lost.is_timeout(), "{lost:?}");
    assert_eq!(telegram.bot_texts(ada), ["hello"]);
    let calls = telegram.calls("sendMessage");
    assert!(calls[0].succeeded());
    assert_eq!(calls[0].fault, Some("lost_answer"));
    api.call("sendMessage", message).await;
    assert_eq!(telegram.bot_texts(ada).len(), 2);
}

#[tokio::test]
async fn a_reset_is_a_call_that_was_not_executed() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    telegram.fault(Fault::reset().on("sendMessage").times(2));
    for _ in 0..2 {
        assert!(api.answer("sendMessage", json!({ "chat_id": ada, "text": "hello" })).await.is_err());
    }
    assert_eq!(telegram.visible(ada), []);
    api.send(ada, "hello").await;
}

#[tokio::test]
async fn errors_come_before_or_after() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    let message = json!({ "chat_id": ada, "text": "hello" });
    telegram.fault(Fault::error_before(502));
    assert_eq!(api.refused("sendMessage", message.clone()).await, (502, "Bad Gateway".to_owned()));
    assert_eq!(telegram.visible(ada).len(), 0);
    telegram.fault(Fault::error_after(500));
    assert_eq!(api.refused("sendMessage", message.clone()).await.0, 500);
    assert_eq!(telegram.visible(ada).len(), 1);
    telegram.fault(Fault::refuse(ApiError::forbidden("user is deactivated")).on("SENDMESSAGE").in_chat(ada));
    assert_eq!(api.refused("sendMessage", message).await.1, "Forbidden: user is deactivated");
}

#[tokio::test]
async fn a_fault_hits_only_what_it_is_for() {
    let (telegram, api) = started().await;
    let (ada, ben) = (telegram.person("Ada").id(), telegram.person("Ben").id());
    telegram.fault(Fault::error_before(500).on("sendMessage").in_chat(ada).forever());
    api.send(ben, "hello").await;
    api.call("getMe", json!({})).await;
    for _ in 0..3 {
        assert_eq!(api.refused("sendMessage", json!({ "chat_id": ada, "text": "x" })).await.0, 500);
    }
    telegram.clear_faults();
    api.send(ada, "hello").await;
}

#[tokio::test]
async fn a_fault_hits_only_the_words_that_it_is_for() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada").id();
    telegram
        .fault(Fault::refuse(ApiError::bad_request("MESSAGE_TOO_LONG")).on("sendMessage").saying("part 2").forever());
    api.send(ada, "part 1").await;
    for _ in 0..2 {
        let refused = api.refused("sendMessage", json!({ "chat_id": ada, "text": "this is part 2 of it" })).await;
        assert_eq!(refused, (400, "Bad Request: MESSAGE_TOO_LONG".to_owned()));
    }
    api.send(ada, "part 3").await;
    assert_eq!(telegram.bot_texts(ada), ["part 1", "part 3"]);
}

#[tokio::test]
async fn a_token_that_was_reset_is_worth_nothing() {
    let (telegram, old) = started().await;
    let poll = tokio::spawn({
        let old = old.clone();
        async move { old.answer("getUpdates", json!({ "timeout": 50 })).await }
    });
    telegram.until_called("getUpdates", 1).await;
    let token = telegram.reset_token();
    assert!(poll.await.unwrap().is_err(), "a pending poll must end");
    assert_eq!(old.refused("getMe", json!({})).await, (401, "Unauthorized".to_owned()));
    let new = crate::client::Api { base: format!("{}/bot{token}", telegram.url()), ..old };
    assert_eq!(new.call("getMe", json!({})).await["id"], telegram.bot().id);
}

#[tokio::test]
async fn a_slow_answer_is_executed_at_once() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::slow_answer(Duration::from_millis(300)));
    let started = Instant::now();
    let sent = tokio::spawn({
        let (api, id) = (api.clone(), ada.id());
        async move { api.send(id, "hello").await }
    });
    ada.hears("hello").await;
    assert!(!sent.is_finished());
    sent.await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300));
    telegram.fault(Fault::late(Duration::from_millis(50)));
    api.send(ada.id(), "late").await;
}

#[tokio::test]
async fn a_stalled_poll_ends_when_the_faults_are_lifted() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    telegram.fault(Fault::stall().on("getUpdates"));
    let poll = tokio::spawn({
        let api = api.clone();
        async move { api.answer("getUpdates", json!({ "timeout": 1 })).await }
    });
    telegram.until_called("getUpdates", 1).await;
    ada.says("anybody there?");
    telegram.clear_faults();
    assert!(poll.await.unwrap().is_err());
    assert_eq!(api.waiting().await.len(), 1);
}

#[tokio::test]
async fn an_outage_refuses_connections_and_keeps_what_was_said() {
    let (telegram, api) = started().await;
    let ada = telegram.person("Ada");
    let poll = tokio::spawn({
        let api = api.clone();
        async move { api.answer("getUpdates", json!({ "timeout": 50 })).await }
    });
    telegram.until_called("getUpdates", 1).await;
    telegram.start_outage(Outage::Refuse);
    assert!(poll.await.unwrap().is_err(), "a pending poll must end");
    ada.says("are you there?");
    // The listener closes a moment after the outage begins.
    let refused = soon("a connection is refused", async || {
        api.answer("getMe", json!({})).await.err().filter(reqwest::Error::is_connect)
    });
    let refused = refused.await;
    assert!(format!("{refused:?}").contains("refused"), "{refused:?}");
    telegram.end_outage();
    let waiting = soon("the server responds again", async || api.answer("getUpdates", json!({})).await.ok()).await;
    assert_eq!(waiting["result"][0]["message"]["text"], "are you there?");
}

#[tokio::test]
async fn an_unavailable_server_says_so() {
    let (telegram, api) = started().await;
    telegram.start_outage(Outage::Unavailable);
    assert_eq!(api.refused("getMe", json!({})).await, (503, "Service Unavailable".to_owned()));
    telegram.end_outage();
    api.call("getMe", json!({})).await;
}

#[tokio::test]
async fn a_port_can_be_taken_again_at_once() {
    let (telegram, api) = started().await;
    api.call("getMe", json!({})).await;
    let port = telegram.port();
    drop(telegram);
    let telegram = TelegramDouble::start_at(port).await;
    assert_eq!(telegram.port(), port);
}

#[tokio::test]
async fn connections_end_with_the_double() {
    let (telegram, api) = started().await;
    api.call("getMe", json!({})).await;
    drop(telegram);
    // A connection that was accepted last may still get a response.
    soon("calls fail", async || api.answer("getMe", json!({})).await.err()).await;
}
