//! What is missed, and what is repeated.

use rejoinder_matrix_server::{Fault, Homeserver, Settings};
use serde_json::json;

use crate::support::{Gateway, options};

/// D14, F5. More than one sync brings, in order.
#[tokio::test]
async fn what_was_said_while_we_were_away_is_answered_once_and_in_order() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.settles().await;

    let gateway = gateway.down().await;
    let expected: Vec<String> = (0..120).map(|number| format!("number {number}")).collect();
    for text in &expected {
        ada.says(&room, &format!("say {text}")).await;
    }
    let gateway = gateway.up().await;

    let heard = ada.until_hears(&room, gateway.user(), 121).await;
    let told: Vec<String> = gateway.told().into_iter().map(|text| text.replacen("say ", "", 1)).collect();
    assert_eq!(told, expected, "the agent is told in another order");
    assert_eq!(heard[1..], expected);
    gateway.stop().await;
}

/// D1, E3. The SDK has seen it, and we had no time to store it.
#[tokio::test]
async fn what_the_sdk_has_seen_and_we_have_not_stored_is_read_back() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(homeserver.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.settles().await;

    // The database of that time, with the SDK's store of a later one.
    let gateway = gateway.down().await;
    let database = gateway.path().join("test.db");
    let kept = std::fs::read(&database).expect("the database can be read");
    let up = gateway.up().await;
    up.until_synced().await;
    ada.says(&room, "say lost").await;
    ada.until_hears(&room, up.user(), 2).await;
    up.settles().await;
    let down = up.down().await;
    for name in ["test.db-wal", "test.db-shm"] {
        // They need not be there.
        let _ = std::fs::remove_file(down.path().join(name));
    }
    std::fs::write(&database, kept).expect("the database can be written");
    let gateway = down.up().await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 3).await, ["before", "lost", "lost"]);
    gateway.stop().await;
}

/// F1, F3, F5.
#[tokio::test]
async fn a_homeserver_that_goes_and_comes_back_is_survived() {
    let mut homeserver = Homeserver::start(Settings::default()).await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(homeserver.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.agent_has(1).await;

    homeserver.stop();
    gateway.until_health("it is named", |health| health.problem.is_some()).await;
    gateway.agent_goes_on();
    homeserver.start_again().await;
    ada.says(&room, "say two").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one and that is all.", "two"]);
    gateway.until_synced().await;
    gateway.stop().await;
}

/// E8. The same transaction gives the same event.
#[tokio::test]
async fn an_answer_whose_receipt_is_lost_is_there_once() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fails("PUT", "/send/m.room.message/", 2, Fault::LoseAnswer);
    ada.says(&room, "say hello").await;

    let sends = || proxy.calls().into_iter().filter(|call| call.path.contains("/send/m.room.message/"));
    ada.until("it is sent again", async || (sends().count() >= 3).then_some(())).await;
    gateway.settles().await;
    let transactions: std::collections::HashSet<String> = sends().map(|call| call.path).collect();
    assert_eq!(transactions.len(), 1, "{transactions:?}");
    assert_eq!(ada.hears(&room, gateway.user()).await, ["hello"]);
    gateway.stop().await;
}

/// E4. What cannot be read holds nothing up.
#[tokio::test]
async fn an_event_of_another_year_holds_nothing_up() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    for content in [
        json!({ "msgtype": "m.text", "body": "", "info": 5 }),
        json!({ "msgtype": "m.text", "body": "x", "m.relates_to": 5 }),
        json!({ "msgtype": "org.example.dance", "body": "x" }),
    ] {
        ada.sends(&room, &content).await;
    }
    ada.says(&room, "say hello").await;

    let heard = ada.until_hears(&room, gateway.user(), 1).await;
    assert!(
        heard.contains(&"hello".to_owned())
            || ada.until_hears(&room, gateway.user(), 2).await.contains(&"hello".to_owned())
    );
    gateway.settles().await;
    gateway.down().await;
}
