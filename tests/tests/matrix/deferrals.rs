//! Answers that take long.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Script, ScriptedAgent};
use rstest::rstest;

use crate::{Chat, DEFERRAL, LATE, Place, QUIET, between, until_accepted, with_ada, with_chat};

const SOON: &str = "[guard]\nsoft_deadline = \"1s\"\n";

/// A10, B10: the deferral is edited into the answer.
#[rstest]
#[tokio::test]
async fn a_deferral_becomes_the_answer(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let (builder, user) = between(&agent, "").await;
    let (gateway, chat) = with_chat(builder.config(SOON), place, &user).await;

    chat.says("hello").await;
    chat.until_last(&user, DEFERRAL).await;
    release.release_one();
    chat.until_last(&user, "At last.").await;

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, ["At last."]);
}

/// D1: a deferral is a debt that outlives the process.
#[tokio::test]
async fn a_deferral_is_paid_after_a_restart() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("At last.").await);
    let (builder, user) = between(&agent, "").await;
    let mut gateway = builder.config(SOON).start().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;

    chat.says("hello").await;
    chat.until_last(&user, DEFERRAL).await;
    gateway.kill();
    release.release_one();
    gateway.restart().await;
    // The agent gets the turn again, and answers at once.
    chat.until_last(&user, "echo hello").await;

    gateway.until_settled().await;
    // It removes a deferral beside its answer before it ends.
    gateway.stop().await;
    assert_eq!(chat.hears(&user).await, ["echo hello"]);
}

/// B1, D18: a cancel settles at once, and a later answer is not shown.
#[tokio::test]
async fn a_cancel_settles_at_once() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("Never.").await);
    let (builder, user) = between(&agent, "").await;
    let gateway = builder.start().await;
    let chat = Chat::new(homeserver, Place::Direct, &user).await;

    chat.says("hello").await;
    agent.until_called(1).await;
    chat.says("!stop").await;
    chat.until_last(&user, "Cancelled.").await;
    release.release_one();

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, ["Cancelled."]);
}

/// A9, A10, D3, G2: after both deadlines the deferral becomes the fallback; the turn that waited is answered.
#[rstest]
#[tokio::test]
async fn a_stall_becomes_the_fallback(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("The next one."),
    })
    .await;
    let (builder, user) = between(&agent, QUIET).await;
    let (gateway, chat) = with_chat(builder.config(&format!("{SOON}hard_deadline = \"6s\"\n")), place, &user).await;

    chat.says("hello").await;
    agent.until_called(1).await;
    chat.says("and now?").await;
    chat.until_last(&user, "The next one.").await;

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, [LATE, "The next one."]);
}

/// B1, L4: a turn that waits for another one gets one deferral at most, and then its answer.
#[tokio::test]
async fn everybody_in_line_is_told_and_answered() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("the first").await);
    let (builder, user) = between(&agent, QUIET).await;
    let gateway = builder.config(SOON).start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    let first = ada.mentions(&room, &user, "one").await;
    agent.until_called(1).await;
    let second = bob.mentions(&room, &user, "two").await;
    let are_deferred = async || (ada.hears(&room, &user).await == [DEFERRAL; 2]).then_some(());
    ada.until("both are deferred", are_deferred).await;
    release.release_one();
    let are_answered = async || (!ada.hears(&room, &user).await.iter().any(|text| text == DEFERRAL)).then_some(());
    ada.until("both are answered", are_answered).await;

    gateway.until_settled().await;
    let said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    let answers: Vec<_> = said.iter().map(|message| (message.replies_to.as_ref(), &*message.text)).collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[0], (Some(&first), "the first"));
    assert_eq!(answers[1].0, Some(&second));
    assert!(answers[1].1.ends_with("two"), "{answers:?}");
}

/// A10: a deferral that somebody deletes is followed by the answer, as an edit of it would not be shown.
#[tokio::test]
async fn a_deferral_that_was_deleted_is_followed_by_the_answer() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("At last.").await);
    let (builder, user) = between(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config(SOON), &user).await;

    ada.says(&room, "hello").await;
    let is_deferred = async || ada.sees(&room).await.into_iter().find(|message| message.text == DEFERRAL);
    let deferral = ada.until("the deferral", is_deferred).await;
    ada.redacts(&room, &deferral.id).await;
    until_accepted(homeserver, &user).await;
    release.release_one();

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["At last."]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, ["At last."]);
}
