//! Uploads of the account's signing keys that the homeserver does not accept at first.

use rejoinder_matrix_server::{Fault, Homeserver};
use serde_json::json;

use crate::support::{Gateway, options, server_error};

/// The homeserver asks for the password before it accepts the account's keys.
#[tokio::test]
async fn our_device_is_signed_where_the_homeserver_asks_for_the_password() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let flows = json!([{ "stages": ["m.login.password"] }]);
    let body = json!({ "flows": flows, "params": {}, "session": "one" });
    // The SDK tries once by itself, then we do.
    proxy.fail("POST", "/keys/device_signing/upload", 2, Fault::Answer { status: 401, body });
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    let device = gateway.device();
    ada.until("a signature", async || ada.sees_signed(gateway.user(), &device).await.then_some(())).await;

    let calls = proxy.calls();
    let proven = calls.iter().find(|call| call.path.contains("/keys/device_signing/upload") && call.status == 200);
    let auth = &proven.expect("an accepted upload").body["auth"];
    assert_eq!((&auth["type"], &auth["session"]), (&json!("m.login.password"), &json!("one")));
    gateway.stop().await;
}

/// The homeserver failed when the account's keys were created: they are uploaded at the next start at the latest.
#[tokio::test]
async fn our_device_is_signed_after_trouble() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    proxy.fail("POST", "/keys/device_signing/upload", usize::MAX, server_error());
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    proxy.until("an upload", |call| call.path.contains("/keys/device_signing/upload")).await;

    let down = gateway.shut_down().await;
    proxy.clear_faults();
    let gateway = down.restart().await;

    let device = gateway.device();
    ada.until("a signature", async || ada.sees_signed(gateway.user(), &device).await.then_some(())).await;
    gateway.stop().await;
}
