//! Joining and leaving rooms.

use rejoinder_matrix::{AutoJoin, Login, MatrixSection};
use rejoinder_matrix_server::Homeserver;
use serde_json::json;

use crate::support::{Gateway, only, options, send_many, until_hears_many};

/// N1, O2.
#[tokio::test]
async fn only_those_on_the_list_may_invite() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let people = only(&ada);
    let chosen = MatrixSection { auto_join: AutoJoin::Allowlist, people, ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(chosen).await;

    let (from_eve, from_ada) = (eve.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    ada.says(&from_ada, "say hello").await;
    ada.until_hears(&from_ada, gateway.user(), 1).await;

    let members = eve.members(&from_eve).await;
    assert_eq!(members, [eve.user()], "the invitation is not accepted");
    gateway.stop().await;
}

#[tokio::test]
async fn with_never_we_come_into_no_room_by_ourselves() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.as_str().into());
    let ada = homeserver.person("ada").await;
    let people = only(&ada);
    let auto_join = AutoJoin::Never;
    let chosen = MatrixSection { auto_join, people, ..options(homeserver.url(), &account).with_login(login) };
    let gateway = Gateway::synced(chosen).await;

    let (left, joined) = (ada.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    // The operator does it, with another client.
    homeserver.join(&token, &joined).await;
    ada.says(&joined, "say hello").await;

    assert_eq!(ada.until_hears(&joined, gateway.user(), 1).await, ["hello"]);
    assert_eq!(ada.members(&left).await, [ada.user()], "the invitation is not accepted");
    gateway.stop().await;
}

/// A18.
#[tokio::test]
async fn what_is_owed_to_a_room_that_put_us_out_is_visible() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[gateway.user()]).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;

    ada.kick(&room, gateway.user()).await;
    // An answer to a later message shows that the change has arrived.
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.release_agent();
    gateway.until_settled().await;

    assert_eq!(gateway.undeliverable().await, 1);
    gateway.shut_down().await;
}

#[tokio::test]
async fn a_room_that_is_upgraded_goes_on_as_another_one() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;

    let next = ada.upgrade(&room, "10").await;
    ada.invite(&next, gateway.user()).await;
    ada.until_joined(&next, gateway.user()).await;
    ada.says(&next, "say two").await;
    gateway.release_agent();

    let mut heard = ada.until_hears(&next, gateway.user(), 2).await;
    heard.sort();
    assert_eq!(heard, ["one and that is all.", "two"]);
    gateway.stop().await;
}

/// A18. A room is upgraded, and we may not join its successor: the owed answer becomes a dead letter. Once we may join,
/// the conversation continues there.
#[tokio::test]
async fn a_room_that_goes_on_without_us_is_visible() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[gateway.user()]).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;

    let next = ada.upgrade(&room, "10").await;
    // An answer to a later message shows that the change has arrived.
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.release_agent();
    gateway.until_settled().await;
    assert_eq!(gateway.undeliverable().await, 1);
    ada.invite(&next, gateway.user()).await;
    ada.until_joined(&next, gateway.user()).await;
    ada.says(&next, "say two").await;

    assert_eq!(ada.until_hears(&next, gateway.user(), 1).await, ["two"]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&next, gateway.user()).await, ["two"]);
    gateway.shut_down().await;
}

/// The operator brought the account into the room: its successor needs no permission of its own.
#[tokio::test]
async fn a_room_that_is_upgraded_is_followed_where_invitations_are_not() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.as_str().into());
    let auto_join = AutoJoin::Never;
    let chosen = MatrixSection { auto_join, ..options(homeserver.url(), &account).with_login(login) };
    let gateway = Gateway::synced(chosen).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    homeserver.join(&token, &room).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    let next = ada.upgrade(&room, "10").await;
    ada.invite(&next, gateway.user()).await;
    ada.until_joined(&next, gateway.user()).await;
    ada.says(&next, "say two").await;

    assert_eq!(ada.until_hears(&next, gateway.user(), 1).await, ["two"]);
    gateway.stop().await;
}

/// B11. Anybody who may close a room can name any successor; one that does not name the room too is ignored.
#[tokio::test]
async fn a_room_that_names_a_false_successor_is_not_left() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let (room, other) = (eve.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    ada.says(&other, "say hello").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    eve.says(&room, "wait one").await;
    gateway.until_agent_has(2).await;

    let closed = json!({ "body": "This room goes on elsewhere", "replacement_room": other });
    eve.sets(&room, "m.room.tombstone", &closed).await;
    let after = eve.says(&room, "say two").await;
    gateway.until_stored(&room, &after).await;
    gateway.release_agent();

    assert_eq!(eve.until_hears(&room, gateway.user(), 2).await, ["one and that is all.", "two"]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&other, gateway.user()).await, ["hello"]);
    gateway.stop().await;
}

/// D14. Messages from the time when we were not in the room were for others, however many they are.
#[tokio::test]
async fn what_was_said_behind_our_back_is_not_answered_however_much_it_is() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[gateway.user()]).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    ada.kick(&room, gateway.user()).await;
    send_many(&ada, &room).await;
    ada.invite(&room, gateway.user()).await;
    ada.says(&room, "say again").await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "say after").await;

    ada.until_hears(&room, gateway.user(), 3).await;
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["before", "again", "after"]);
    assert_eq!(gateway.agent_texts(), ["say before", "say again", "say after"]);
    gateway.stop().await;
}

/// D14. The same while the gateway is down.
#[tokio::test]
async fn what_was_said_behind_our_back_while_we_were_away_is_not_answered() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.as_str().into());
    let gateway = Gateway::synced(options(homeserver.url(), &account).with_login(login)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[gateway.user()]).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let down = gateway.shut_down().await;
    ada.says(&room, "say seen").await;
    ada.kick(&room, &account.user).await;
    send_many(&ada, &room).await;
    ada.invite(&room, &account.user).await;
    homeserver.join(&token, &room).await;
    send_many(&ada, &room).await;
    let gateway = down.restart().await;

    let heard = until_hears_many(&ada, &room, gateway.user(), 62).await;
    gateway.until_settled().await;
    assert_eq!(heard.len(), 62);
    assert_eq!((&*heard[0], &*heard[1], &*heard[2]), ("before", "seen", "number 0"));
    assert_eq!(ada.hears(&room, gateway.user()).await, heard);
    gateway.stop().await;
}

/// Anybody can invite the account as often as they like; each invitation costs rows in the SDK's store.
#[tokio::test]
async fn invitations_beyond_a_hundred_are_declined_and_forgotten() {
    let homeserver = Homeserver::shared().await;
    let (account, proxy) = (homeserver.account("agent").await, homeserver.proxy().await);
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let people = only(&ada);
    let chosen = MatrixSection { auto_join: AutoJoin::Allowlist, people, ..options(proxy.url(), &account) };
    let gateway = Gateway::synced(chosen).await;

    for _ in 0..101 {
        eve.direct(gateway.user()).await;
    }
    let calls = proxy.until("one is forgotten", |call| call.path.ends_with("/forget")).await;

    assert_eq!(calls.iter().filter(|call| call.path.ends_with("/leave")).count(), 1);
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say hello").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"], "who may invite is not affected");
    gateway.stop().await;
}

#[tokio::test]
async fn an_invitation_that_is_withdrawn_is_forgotten() {
    let homeserver = Homeserver::shared().await;
    let (account, proxy) = (homeserver.account("agent").await, homeserver.proxy().await);
    let eve = homeserver.person("eve").await;
    let auto_join = AutoJoin::Allowlist;
    let gateway = Gateway::synced(MatrixSection { auto_join, ..options(proxy.url(), &account) }).await;

    let room = eve.room("A trap", &[gateway.user()]).await;
    eve.kick(&room, gateway.user()).await;

    proxy.until("it is forgotten", |call| call.path.ends_with("/forget")).await;
    gateway.stop().await;
}
