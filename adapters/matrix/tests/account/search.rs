//! Messages that may have been sent long ago.

use std::time::Duration;

use rejoinder_matrix::MatrixSection;
use rejoinder_matrix_server::{Call, Fault, Homeserver, Proxy};

use crate::support::{Gateway, options, server_error};

/// Longer than a homeserver remembers transaction ids.
const LONG: Duration = Duration::from_hours(24);

async fn gateway_by(homeserver: &Homeserver, proxy: &Proxy) -> Gateway {
    let account = homeserver.account("agent").await;
    Gateway::synced(options(proxy.url(), &account)).await
}

fn is_send(call: &Call) -> bool {
    call.method == "PUT" && call.path.contains("/send/m.room.")
}

fn sends(proxy: &Proxy) -> usize {
    proxy.calls().iter().filter(|call| is_send(call)).count()
}

/// Two attempts, the first with the fault `first`, the second without effect. Then a long time passes.
async fn time_passes_after(first: Fault, gateway: &Gateway, proxy: &Proxy) {
    proxy.clear_faults();
    proxy.fail("PUT", "/send/m.room.", 1, first);
    proxy.fail("PUT", "/send/m.room.", usize::MAX, server_error());
    let turn = gateway.until_agent_has(1).await.turn;
    gateway.release_agent();
    gateway.until_tried(turn, 2).await;
    gateway.clock.advance(LONG);
    proxy.clear_faults();
}

/// D1, E8. The homeserver would accept a resend as a new message: the message is found by our field, and not sent again.
#[tokio::test]
async fn what_was_sent_a_day_ago_is_found_and_not_sent_again() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let gateway = gateway_by(homeserver, &proxy).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;

    time_passes_after(Fault::LoseAnswer, &gateway, &proxy).await;
    let before = sends(&proxy);
    gateway.until_settled().await;

    assert_eq!(sends(&proxy), before, "sent again");
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."]);
    gateway.stop().await;
}

/// D1. The message is not found, and sent again.
#[tokio::test]
async fn what_never_came_is_sent_a_day_later() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let gateway = gateway_by(homeserver, &proxy).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;

    time_passes_after(server_error(), &gateway, &proxy).await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["one and that is all."]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."]);
    gateway.stop().await;
}

/// D1, E8. In an encrypted room our field is encrypted too.
#[tokio::test]
async fn what_was_sent_encrypted_a_day_ago_is_found_and_not_sent_again() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixSection { decrypt_patience: Duration::from_hours(48), ..options(proxy.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "wait one").await;

    time_passes_after(Fault::LoseAnswer, &gateway, &proxy).await;
    let before = sends(&proxy);
    gateway.until_settled().await;

    assert_eq!(sends(&proxy), before, "sent again");
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."]);
    gateway.stop().await;
}
