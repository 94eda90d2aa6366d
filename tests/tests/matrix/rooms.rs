//! Joining and leaving rooms.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{QUIET, matrix, patient, until_accepted, with_ada};

/// A room is upgraded while an answer is owed: that answer and the next are sent to the new room.
#[tokio::test]
async fn a_room_that_is_upgraded_goes_on_as_another_one() {
    let homeserver = Homeserver::shared().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (mut gateway, ada, room) = with_ada(builder, &user).await;
    ada.says(&room, "hello").await;
    agent.until_called(1).await;

    let next = ada.upgrade(&room, "10").await;
    ada.invite(&next, &user).await;
    ada.until_joined(&next, &user).await;
    // The homeserver knows of the join before the gateway does.
    until_accepted(homeserver, &user).await;
    release.release_one();
    ada.until_hears(&next, &user, 1).await;
    gateway.stop().await;
    gateway.restart().await;
    ada.says(&next, "still there?").await;

    assert_eq!(ada.until_hears(&next, &user, 2).await, ["The first.", "echo still there?"]);
    gateway.until_settled().await;
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// A tombstone is ignored if the room it names did not begin as the successor: answers stay in the old room.
#[tokio::test]
async fn a_room_that_did_not_begin_as_its_successor_is_not_followed() {
    let homeserver = Homeserver::shared().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let (room, trap) = (ada.room("A chat", &[&user]).await, eve.room("A chat", &[&user]).await);
    ada.until_joined(&room, &user).await;
    eve.until_joined(&trap, &user).await;

    ada.says(&room, "hello").await;
    agent.until_called(1).await;
    ada.sets(&room, "m.room.tombstone", &json!({ "body": "gone", "replacement_room": trap })).await;
    until_accepted(homeserver, &user).await;
    release.release_one();
    ada.until_hears(&room, &user, 1).await;
    ada.says(&room, "still there?").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await, ["The first.", "echo still there?"]);
    gateway.until_settled().await;
    assert!(eve.hears(&trap, &user).await.is_empty());
}

/// How the account leaves a room.
#[derive(Clone, Copy, Debug)]
enum Out {
    Kicked,
    Banned,
    /// Left by another client of the account.
    Left,
}

/// A18, I2: what is owed to a room that the account has left becomes a dead letter that names the reason; other rooms
/// continue.
#[rstest]
#[tokio::test]
async fn what_is_owed_to_a_room_that_we_are_out_of_is_visible(#[values(Out::Kicked, Out::Banned, Out::Left)] out: Out) {
    let homeserver = Homeserver::shared().await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, QUIET);
    let patience = "[guard]\nsoft_deadline = \"off\"\n";
    let gateway = Gateway::builder().config(&section).config(&agent.section()).config(patience).start().await;
    let (ada, user) = (homeserver.person("ada").await, account.user.as_str());
    let room = ada.room("A chat", &[user]).await;
    ada.says(&room, "hello").await;
    agent.until_called(1).await;
    let turn = gateway.only_turn();

    match out {
        Out::Kicked => ada.kick(&room, user).await,
        Out::Banned => ada.bans(&room, user).await,
        Out::Left => homeserver.log_in(&account).await.leaves(&room).await,
    }
    until_accepted(homeserver, user).await;
    release.release_one();
    eventually("the turn is undeliverable", async || (gateway.undeliverable() == 1).then_some(())).await;
    until_accepted(homeserver, user).await;

    let explained = gateway.explain(&turn);
    assert!(explained.contains("no longer in the room"), "{explained}");
    assert!(ada.hears(&room, user).await.is_empty());
    assert!(gateway.readiness().await.0);
}

/// F5: the account is kicked and invited again: later messages are answered once. Messages sent in between are ignored,
/// however many there are.
#[rstest]
#[case::little(1)]
#[case::more_than_a_sync_brings(70)]
#[tokio::test]
async fn a_room_that_takes_us_back_is_answered_again(#[case] behind_our_back: usize) {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[&user]).await;
    ada.says(&room, "one").await;
    ada.until_hears(&room, &user, 1).await;

    ada.kick(&room, &user).await;
    for n in 0..behind_our_back {
        ada.says(&room, &format!("behind our back {n}")).await;
    }
    ada.invite(&room, &user).await;
    ada.until_joined(&room, &user).await;
    ada.says(&room, "two").await;
    let is_answered = async || ada.hears(&room, &user).await.contains(&"echo two".to_owned()).then_some(());
    ada.until("the answer", is_answered).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, ["echo one", "echo two"]);
}

/// With `auto_join = "never"` invitations are not accepted; in a room that another client joined, the gateway answers.
#[tokio::test]
async fn it_comes_into_no_room_by_itself_where_it_may_not() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let account = homeserver.account("agent").await;
    let section = matrix(homeserver.url(), &account, &format!("{QUIET}\nauto_join = \"never\""));
    let gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let (ada, user) = (homeserver.person("ada").await, account.user.as_str());
    let (room, other) = (ada.direct(user).await, ada.direct(user).await);

    let is_named = |room: &str| {
        let log = gateway.log();
        log.lines().any(|line| line.contains("invitation not accepted") && line.contains(room))
    };
    eventually("the log names both", async || (is_named(&room) && is_named(&other)).then_some(())).await;
    homeserver.log_in(&account).await.join(&room).await;
    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, user, 1).await, ["echo hello"]);
    gateway.until_settled().await;
    assert_eq!(ada.members(&other).await, [ada.user()]);
}
