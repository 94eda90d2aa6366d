//! Limits of the homeserver.

use std::time::Duration;

use rejoinder_matrix_server::{Fault, Homeserver, Settings};
use serde_json::json;

use crate::support::{Gateway, options};

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
    proxy.fails("PUT", "/send/m.room.message/", 1, Fault::Answer { status: 429, body });
    let asked = std::time::Instant::now();
    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    assert!(asked.elapsed() >= Duration::from_secs(2), "{:?}", asked.elapsed());
    gateway.stop().await;
}

/// H4. Drafts never use up what an answer needs, with the limits that Synapse has when nobody configures it.
#[tokio::test]
async fn drafts_leave_room_for_the_answer() {
    let homeserver = Homeserver::start(Settings::as_synapse_comes()).await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(homeserver.url(), &account)).await;
    let mut people = Vec::new();
    for number in 0..8 {
        people.push(homeserver.person(&format!("person{number}")).await);
    }
    let invited: Vec<&str> = people[1..].iter().map(|person| person.user()).chain([gateway.user()]).collect();
    let room = people[0].room("Friends", &invited).await;
    for person in &people[1..] {
        person.join(&room).await;
    }
    people[0].until_joined(&room, gateway.user()).await;

    // In threads, so that nobody waits for another one.
    for (number, person) in people[1..].iter().enumerate() {
        let root = person.says(&room, &format!("stay out of {number}")).await;
        person.says_in_thread(&room, &root, gateway.user(), "begin something").await;
    }
    gateway.agent_has(14).await;
    let asked = std::time::Instant::now();
    people[0].mentions(&room, gateway.user(), "say at once").await;

    let answered = async || people[0].hears(&room, gateway.user()).await.contains(&"at once".to_owned()).then_some(());
    people[0].until("the answer", answered).await;
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    for _ in 0..7 {
        gateway.agent_goes_on();
    }
    gateway.down().await;
}

/// Many rooms at once.
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
