//! Missed and repeated events.

use rejoinder_core::ChannelHealth;
use rejoinder_matrix::Login;
use rejoinder_matrix_server::{Call, Fault, Homeserver, Person, Proxy, Settings};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Gateway, http, options, send_many, server_error, until_hears_many};

/// D14, F5. More messages than one sync response contains.
#[tokio::test]
async fn what_was_said_while_we_were_away_is_answered_once_and_in_order() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    let expected: Vec<String> = (0..120).map(|number| format!("number {number}")).collect();
    for text in &expected {
        ada.says(&room, &format!("say {text}")).await;
    }
    let gateway = gateway.restart().await;

    let heard = until_hears_many(&ada, &room, gateway.user(), 121).await;
    let texts: Vec<String> = gateway.agent_texts().into_iter().map(|text| text.replacen("say ", "", 1)).collect();
    assert_eq!(texts, expected, "the agent got them in another order");
    assert_eq!(heard[1..], expected);
    gateway.stop().await;
}

/// D1, E3. The SDK has synced a message that we have not stored.
#[tokio::test]
async fn what_the_sdk_has_seen_and_we_have_not_stored_is_read_back() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(homeserver.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    // Restores an older database next to a newer SDK store.
    let gateway = gateway.shut_down().await;
    let database = gateway.path().join("test.db");
    let kept = std::fs::read(&database).expect("the database can be read");
    let up = gateway.restart().await;
    up.until_synced().await;
    ada.says(&room, "say lost").await;
    ada.until_hears(&room, up.user(), 2).await;
    up.until_settled().await;
    let down = up.shut_down().await;
    for name in ["test.db-wal", "test.db-shm"] {
        // They may not exist.
        let _ = std::fs::remove_file(down.path().join(name));
    }
    std::fs::write(&database, kept).expect("the database can be written");
    let gateway = down.restart().await;

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
    gateway.until_agent_has(1).await;

    homeserver.stop();
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    gateway.release_agent();
    homeserver.restart().await;
    ada.says(&room, "say two").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one and that is all.", "two"]);
    gateway.until_synced().await;
    gateway.stop().await;
}

/// E8. Repeating a transaction id sends nothing new.
#[tokio::test]
async fn an_answer_whose_receipt_is_lost_is_there_once() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/send/m.room.message/", 2, Fault::LoseAnswer);
    ada.says(&room, "say hello").await;

    let sends = || proxy.calls().into_iter().filter(|call| call.path.contains("/send/m.room.message/"));
    ada.until("a resend", async || (sends().count() >= 3).then_some(())).await;
    gateway.until_settled().await;
    let transactions: std::collections::HashSet<String> = sends().map(|call| call.path).collect();
    assert_eq!(transactions.len(), 1, "{transactions:?}");
    assert_eq!(ada.hears(&room, gateway.user()).await, ["hello"]);
    gateway.stop().await;
}

/// E4. Malformed events are read as far as possible, and hold nothing up.
#[tokio::test]
async fn an_event_of_another_year_holds_nothing_up() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    for content in [
        json!({ "msgtype": "m.text", "body": "say one", "info": 5 }),
        json!({ "msgtype": "m.text", "body": "say two", "m.relates_to": 5 }),
        json!({ "msgtype": "m.text", "body": "say three", "info": null, "format": null }),
        json!({ "msgtype": "org.example.dance", "body": "say four" }),
        json!({ "msgtype": "m.text", "body": "say five", "m.relates_to": { "m.in_reply_to": { "event_id": 5 } } }),
    ] {
        ada.sends(&room, &content).await;
    }
    ada.sends_event(&room, "org.example.dance", &json!({ "body": "say nothing", "m.relates_to": [] })).await;
    ada.sends_event(&room, "m.reaction", &json!({ "m.relates_to": { "rel_type": "m.annotation" } })).await;
    ada.says(&room, "say hello").await;

    let heard = ada.until_hears(&room, gateway.user(), 6).await;
    assert_eq!(heard, ["one", "two", "three", "four", "five", "hello"]);
    gateway.stop().await;
}

/// D14, F5. The homeserver returns only the latest messages, and the gateway kept running.
#[tokio::test]
async fn a_gap_is_filled_without_a_restart() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let texts = send_many(&ada, &room).await;
    proxy.clear_faults();

    let heard = until_hears_many(&ada, &room, gateway.user(), 1 + texts.len()).await;
    assert_eq!(heard[1..], texts);
    let is_limited =
        |call: &Call| call.path.contains("/sync") && call.answer["rooms"]["join"][&room]["timeline"]["limited"] == true;
    assert!(proxy.calls().iter().any(is_limited), "no sync was limited");
    gateway.stop().await;
}

/// E1, E6. A proxy returns the same response again.
#[tokio::test]
async fn a_sync_that_comes_again_is_answered_once() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    let said = ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    let calls = proxy.calls();
    let brought = calls.iter().rfind(|call| call.path.contains("/sync") && call.answer.to_string().contains(&said));
    let brought = brought.expect("a sync with the message").answer.clone();
    proxy.fail("GET", "/sync", 3, Fault::Answer { status: 200, body: brought.clone() });
    let is_again = |call: &&Call| call.path.contains("/sync") && call.answer == brought;
    ada.until("a repeated sync", async || (proxy.calls().iter().filter(is_again).count() >= 4).then_some(())).await;
    ada.says(&room, "say two").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one", "two"]);
    gateway.until_settled().await;
    assert_eq!(gateway.agent_texts(), ["say one", "say two"]);
    gateway.stop().await;
}

/// F5. Servers' clocks may be wrong: an event with an old time does not hide the events before it.
#[tokio::test]
async fn an_event_with_a_wrong_time_hides_nothing() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.as_str().into());
    let gateway = Gateway::synced(options(proxy.url(), &account).with_login(login)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let texts = send_many(&ada, &room).await;
    // The page of the gap as the homeserver returns it, except for the time of one event.
    let mut page = latest_page(homeserver.url(), &token, &room).await;
    let odd = page["chunk"].as_array_mut().expect("events").iter_mut();
    let mut odd = odd.filter(|event| event["content"]["body"] == "say number 5");
    odd.next().expect("message 5")["origin_server_ts"] = json!(1_000_000_000_000_i64);
    proxy.clear_faults();
    proxy.fail("GET", "/messages", 1, Fault::Answer { status: 200, body: page });

    let heard = until_hears_many(&ada, &room, gateway.user(), 1 + texts.len()).await;
    assert_eq!(heard[1..], texts);
    gateway.stop().await;
}

/// E4, F1. A room whose history the homeserver cannot read does not delay the others, and is named.
#[rstest]
#[case::fails(server_error())]
#[case::hangs(Fault::Stall)]
#[tokio::test]
async fn a_room_that_cannot_be_read_deafens_no_other(#[case] fault: Fault) {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let (broken, whole) = (ada.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    for room in [&broken, &whole] {
        ada.says(room, "say before").await;
        ada.until_hears(room, gateway.user(), 1).await;
    }
    gateway.until_settled().await;

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let texts = send_many(&ada, &broken).await;
    ada.says(&whole, "say here").await;
    proxy.clear_faults();
    // URLs escape room ids, except for this part.
    let name = broken[1..].split(':').next().expect("a room id has a name");
    let hangs = matches!(fault, Fault::Stall);
    proxy.fail("GET", name, usize::MAX, fault);

    assert_eq!(ada.until_hears(&whole, gateway.user(), 2).await, ["before", "here"]);
    ada.says(&whole, "say more").await;
    assert_eq!(ada.until_hears(&whole, gateway.user(), 3).await[2], "more");
    if hangs {
        return gateway.stop().await;
    }
    let is_named = |health: &ChannelHealth| health.notice.as_deref().is_some_and(|it| it.contains(name));
    let health = gateway.until_health("the room is named", is_named).await;
    assert_eq!(health.problem, None);
    proxy.clear_faults();
    let heard = until_hears_many(&ada, &broken, gateway.user(), 1 + texts.len()).await;
    assert_eq!(heard[1..], texts, "missed messages are answered once they can be read");
    gateway.until_health("nothing is wrong", |health| health.notice.is_none()).await;
    gateway.stop().await;
}

/// E4, F1. The same at the very first start; nothing old is answered there either.
#[tokio::test]
async fn a_room_that_cannot_be_read_at_the_first_start_deafens_no_other() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let (broken, whole) = (ada.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    for room in [&broken, &whole] {
        ada.says(room, "say before").await;
        ada.until_hears(room, gateway.user(), 1).await;
    }
    gateway.until_settled().await;
    let down = gateway.shut_down().await;
    // The SDK knows the rooms, and the gateway begins anew.
    for name in ["test.db", "test.db-wal", "test.db-shm"] {
        // They may not exist.
        let _ = std::fs::remove_file(down.path().join(name));
    }
    // URLs escape room ids, except for this part.
    let name = broken[1..].split(':').next().expect("a room id has a name");
    proxy.fail("GET", name, usize::MAX, server_error());

    let gateway = down.restart().await;
    gateway.until_synced().await;
    ada.says(&whole, "say here").await;
    assert_eq!(ada.until_hears(&whole, gateway.user(), 2).await, ["before", "here"]);
    ada.says(&broken, "say there").await;

    assert_eq!(ada.until_hears(&broken, gateway.user(), 2).await, ["before", "there"]);
    assert_eq!(gateway.agent_texts(), ["say here", "say there"]);
    gateway.stop().await;
}

/// A room that the homeserver does not let us read.
struct RoomBehind {
    proxy: Proxy,
    gateway: Gateway,
    ada: Person,
    room: String,
    /// The part of its id that the paths of requests contain.
    name: String,
    /// What Ada has said since it was read last.
    texts: Vec<String>,
}

/// Makes a room that cannot be read back after an outage, and that syncs have brought events of since. Other rooms go on.
async fn room_behind() -> RoomBehind {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let (broken, whole) = (ada.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    for room in [&broken, &whole] {
        ada.says(room, "say before").await;
        ada.until_hears(room, gateway.user(), 1).await;
    }
    gateway.until_settled().await;

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let mut texts = send_many(&ada, &broken).await;
    proxy.clear_faults();
    texts.push("last".to_owned());
    // URLs escape room ids, except for this part.
    let name = broken[1..].split(':').next().expect("a room id has a name").to_owned();
    proxy.fail("GET", &name, usize::MAX, server_error());
    ada.says(&whole, "say here").await;
    ada.until_hears(&whole, gateway.user(), 2).await;
    ada.says(&broken, "say last").await;
    ada.says(&whole, "say more").await;
    ada.until_hears(&whole, gateway.user(), 3).await;
    RoomBehind { proxy, gateway, ada, room: broken, name, texts }
}

/// D14, F5. A room that could not be read is read once it can be, even after a restart. Later messages are answered
/// after the missed ones.
#[tokio::test]
async fn what_could_not_be_read_back_is_read_after_a_restart() {
    let RoomBehind { proxy, gateway, ada, room: broken, texts, .. } = room_behind().await;
    let down = gateway.shut_down().await;
    proxy.clear_faults();
    let gateway = down.restart().await;

    let heard = until_hears_many(&ada, &broken, gateway.user(), 1 + texts.len()).await;
    assert_eq!(heard[1..], texts);
    gateway.stop().await;
}

/// F5. What syncs brought while a room could not be read is answered even if the homeserver then closes its history.
#[tokio::test]
async fn what_came_while_a_room_could_not_be_read_is_answered_though_its_history_is_closed() {
    let RoomBehind { proxy, gateway, ada, room: broken, name, texts } = room_behind().await;
    let closed = json!({ "errcode": "M_FORBIDDEN", "error": "You may not read this" });
    proxy.clear_faults();
    proxy.fail("GET", &name, usize::MAX, Fault::Answer { status: 403, body: closed });

    // The first ones did not fit in the sync.
    let expected = &texts[10..];
    let heard = until_hears_many(&ada, &broken, gateway.user(), 1 + expected.len()).await;
    assert_eq!(&heard[1..], expected);
    gateway.until_health("nothing is wrong", |health| health.notice.is_none()).await;
    gateway.stop().await;
}

/// A2, F5. The lookup of a replied-to message is retried when the homeserver limits it.
#[tokio::test]
async fn a_reply_to_us_is_known_as_one_after_trouble() {
    let body = json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "slow down", "retry_after_ms": 100 });

    let proxy = reply_during_faults(5, Fault::Answer { status: 429, body }).await;

    let asked = proxy.calls().into_iter().filter(|call| call.path.contains("/event/") && call.status == 429);
    assert_eq!(asked.count(), 5);
}

/// The same with a proxy that fails for some seconds.
#[tokio::test]
async fn a_reply_to_us_is_known_as_one_after_some_seconds_of_trouble() {
    reply_during_faults(4, server_error()).await;
}

/// Bob replies to us after a restart, and `times` lookups of the replied-to message fail. He is answered.
async fn reply_during_faults(times: usize, fault: Fault) -> Proxy {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.mentions(&room, gateway.user(), "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    gateway.until_settled().await;
    // Once its own answer is synced, the gateway does not read it again after the restart.
    gateway.until_stored(&room, &said.id).await;

    // Messages from before a restart are not remembered.
    let gateway = gateway.shut_down().await.restart().await;
    proxy.fail("GET", "/event/", times, fault);
    bob.replies(&room, &said.id, "say why").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["hello", "why"]);
    assert_eq!(gateway.until_agent_has(1).await.message.quoted.expect("a quote").text, "hello");
    gateway.stop().await;
    proxy
}

/// The last events of a room, as a page of `/messages`.
async fn latest_page(homeserver: &str, token: &str, room: &str) -> Value {
    let url = format!("{homeserver}/_matrix/client/v3/rooms/{room}/messages?dir=b&limit=200");
    let sent = http().get(url).bearer_auth(token).send().await.expect("a response");
    serde_json::from_slice(&sent.bytes().await.expect("a body")).expect("JSON")
}
