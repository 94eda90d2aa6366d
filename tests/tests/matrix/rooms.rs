//! Coming into rooms, and out of them.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{ScriptedAgent, eventually};

use crate::{QUIET, patient};

/// A room that is upgraded while an answer is owed: the answer comes in the new one, and so does the next.
#[tokio::test]
async fn a_room_that_is_upgraded_goes_on_as_another_one() {
    let homeserver = Homeserver::shared().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let (builder, user) = patient(homeserver, &agent, QUIET).await;
    let mut gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;
    agent.called(1).await;

    let next = ada.upgrade(&room, "10").await;
    ada.invite(&next, &user).await;
    ada.until_joined(&next, &user).await;
    release.notify_one();
    ada.until_hears(&next, &user, 1).await;
    gateway.stop().await;
    gateway.restart().await;
    ada.says(&next, "still there?").await;

    assert_eq!(ada.until_hears(&next, &user, 2).await, ["The first.", "echo still there?"]);
    gateway.settles().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// A18: what is owed to a room that put us out is a dead letter, and the others go on.
#[tokio::test]
async fn what_is_owed_to_a_room_that_put_us_out_is_visible() {
    let homeserver = Homeserver::shared().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let (builder, user) = patient(homeserver, &agent, QUIET).await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[&user]).await;
    ada.says(&room, "hello").await;
    agent.called(1).await;

    ada.kick(&room, &user).await;
    let other = ada.direct(&user).await;
    ada.says(&other, "after").await;
    ada.until_hears(&other, &user, 1).await;
    release.notify_one();
    eventually("it is given up", async || (gateway.undeliverable() == 1).then_some(())).await;

    assert_eq!(ada.until_hears(&other, &user, 1).await, ["echo after"]);
}

/// F5: put out and invited again: what is said then is answered, and nothing twice.
#[tokio::test]
async fn a_room_that_takes_us_back_is_answered_again() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(homeserver, &agent, QUIET).await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[&user]).await;
    ada.says(&room, "one").await;
    ada.until_hears(&room, &user, 1).await;

    ada.kick(&room, &user).await;
    ada.says(&room, "behind our back").await;
    ada.invite(&room, &user).await;
    ada.until_joined(&room, &user).await;
    ada.says(&room, "two").await;

    let heard = ada.until_hears(&room, &user, 2).await;
    gateway.settles().await;
    assert_eq!((heard.first(), heard.last()), (Some(&"echo one".to_owned()), Some(&"echo two".to_owned())));
    assert_eq!(ada.hears(&room, &user).await.iter().filter(|text| *text == "echo one").count(), 1);
}
