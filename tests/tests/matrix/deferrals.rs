//! Answers that take long.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::ScriptedAgent;
use rstest::rstest;

use crate::{Chat, DEFERRAL, Place, between};

const SOON: &str = "[guard]\nsoft_deadline = \"1s\"\n";

/// A10, B10: the deferral turns into the answer, in place.
#[rstest]
#[tokio::test]
async fn a_deferral_becomes_the_answer(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("At last.").await);
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.config(SOON).start().await;
    let chat = Chat::new(homeserver, place, &user).await;
    chat.is_joined(&user).await;

    chat.says("hello").await;
    chat.until_last(&user, DEFERRAL).await;
    release.notify_one();
    chat.until_last(&user, "At last.").await;

    gateway.settles().await;
    assert_eq!(chat.hears(&user).await, ["At last."]);
}

/// D1: a deferral is a debt that outlives the process.
#[tokio::test]
async fn a_deferral_is_paid_after_a_restart() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("At last.").await);
    let (builder, user) = between(homeserver, &agent, "").await;
    let mut gateway = builder.config(SOON).start().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;

    chat.says("hello").await;
    chat.until_last(&user, DEFERRAL).await;
    gateway.kill();
    release.notify_one();
    gateway.restart().await;
    // The agent is given it again, and answers at once.
    chat.until_last(&user, "echo hello").await;

    gateway.settles().await;
    assert_eq!(chat.hears(&user).await, ["echo hello"]);
}

/// B1, D18: a cancel settles at once, and the answer that comes later is not shown.
#[tokio::test]
async fn a_cancel_settles_at_once() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("Never.").await);
    let (builder, user) = between(homeserver, &agent, "").await;
    let gateway = builder.start().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;

    chat.says("hello").await;
    agent.called(1).await;
    chat.says("!stop").await;
    chat.until_last(&user, "Cancelled.").await;
    release.notify_one();

    gateway.settles().await;
    assert_eq!(chat.hears(&user).await, ["Cancelled."]);
}
