//! Rate limits of the homeserver.

use std::time::Duration;

use rejoinder_matrix_server::{Fault, Homeserver, Person, Settings};
use serde_json::json;

use crate::support::{Gateway, options};

/// How many answers have drafts at the same time: twice Synapse's burst.
const DRAFTS: usize = 20;

/// H4.
#[tokio::test]
async fn a_limit_is_waited_out() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    let body = json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "slow down", "retry_after_ms": 2000 });
    proxy.fail("PUT", "/send/m.room.message/", 1, Fault::Answer { status: 429, body });
    let asked = std::time::Instant::now();
    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    assert!(asked.elapsed() >= Duration::from_secs(2), "{:?}", asked.elapsed());
    gateway.stop().await;
}

/// H4. With Synapse's default limits, drafts leave room for answers.
#[tokio::test]
async fn drafts_leave_room_for_the_answer() {
    let homeserver = Homeserver::start(Settings::synapse_defaults()).await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let mut people = Vec::new();
    for number in 0..DRAFTS {
        people.push(homeserver.person(&format!("person{number}")).await);
    }
    let invited: Vec<&str> = people.iter().map(Person::user).chain([gateway.user()]).collect();
    let room = ada.room("Friends", &invited).await;
    for person in &people {
        person.join(&room).await;
    }
    ada.until_joined(&room, gateway.user()).await;

    // In threads, so that the conversations are independent.
    for (number, person) in people.iter().enumerate() {
        let thread = person.says(&room, &format!("stay out of {number}")).await;
        person.says_in_thread(&room, &thread, gateway.user(), "begin something").await;
    }
    gateway.until_agent_has(2 * DRAFTS).await;
    let sends = || proxy.calls().into_iter().filter(|call| call.path.contains("/send/m.room.message/"));
    ada.until("drafts", async || (sends().count() >= 5).then_some(())).await;
    ada.mentions(&room, gateway.user(), "say at once").await;

    let answered = async || ada.hears(&room, gateway.user()).await.contains(&"at once".to_owned()).then_some(());
    ada.until("the answer", answered).await;
    let limited = sends().filter(|call| call.status == 429).count();
    assert_eq!(limited, 0, "drafts have used up the rate limit");
    gateway.shut_down().await;
}

#[tokio::test]
async fn fifty_rooms_are_answered_at_once() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let mut rooms = Vec::new();
    for number in 0..50 {
        let room = ada.direct(gateway.user()).await;
        ada.says(&room, &format!("say {number}")).await;
        rooms.push(room);
    }

    for (number, room) in rooms.iter().enumerate() {
        assert_eq!(ada.until_hears(room, gateway.user(), 1).await, [number.to_string()]);
    }
    gateway.stop().await;
}
