//! Coming into rooms, and out of them.

use rejoinder_matrix::{AutoJoin, MatrixOptions};
use rejoinder_matrix_server::Homeserver;

use crate::support::{Gateway, options};

/// N1, O2.
#[tokio::test]
async fn only_those_on_the_list_may_invite() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let invites_from = vec![ada.user().to_owned()];
    let chosen = MatrixOptions { auto_join: AutoJoin::Allowlist, invites_from, ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(chosen).await;

    let (from_eve, from_ada) = (eve.direct(gateway.user()).await, ada.direct(gateway.user()).await);
    ada.says(&from_ada, "say hello").await;
    ada.until_hears(&from_ada, gateway.user(), 1).await;

    let members = eve.members(&from_eve).await;
    assert_eq!(members, [eve.user()], "the invitation is left as it is");
    gateway.stop().await;
}

/// A18.
#[tokio::test]
async fn what_is_owed_to_a_room_that_put_us_out_is_visible() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("A chat", &[gateway.user()]).await;
    ada.says(&room, "wait one").await;
    gateway.agent_has(1).await;

    ada.kick(&room, gateway.user()).await;
    // What comes after it shows that it came.
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.agent_goes_on();
    gateway.settles().await;

    assert_eq!(gateway.undeliverable().await, 1);
    gateway.down().await;
}

#[tokio::test]
async fn a_room_that_is_upgraded_goes_on_as_another_one() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.agent_has(1).await;

    let next = ada.upgrade(&room, "10").await;
    ada.invite(&next, gateway.user()).await;
    ada.until_joined(&next, gateway.user()).await;
    ada.says(&next, "say two").await;
    gateway.agent_goes_on();

    let mut heard = ada.until_hears(&next, gateway.user(), 2).await;
    heard.sort();
    assert_eq!(heard, ["one and that is all.", "two"]);
    gateway.stop().await;
}
