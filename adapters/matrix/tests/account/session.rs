//! The device: it stays, and it is missed.

use std::fs;

use rejoinder_core::ChannelAdapter;
use rejoinder_matrix::{Login, MatrixOptions};
use rejoinder_matrix_server::{Fault, Homeserver};
use serde_json::{Value, json};

use crate::support::{Gateway, options};

fn device(gateway: &Gateway) -> String {
    let session = fs::read(gateway.folder().join("session.json")).expect("a session");
    let session: Value = serde_json::from_slice(&session).expect("JSON");
    session["device"].as_str().expect("a device").to_owned()
}

#[tokio::test]
async fn a_restart_keeps_the_device() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let before = device(&gateway);

    let gateway = gateway.down().await.up().await;
    gateway.until_synced().await;

    assert_eq!(device(&gateway), before);
    let logins = proxy.calls().into_iter().filter(|call| call.method == "POST" && call.path.ends_with("/login"));
    assert_eq!(logins.count(), 1);
    gateway.stop().await;
}

#[tokio::test]
async fn an_access_token_is_a_login_too() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let chosen = MatrixOptions { login: Login::AccessToken(token.into()), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(chosen).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    gateway.stop().await;
}

#[tokio::test]
async fn keys_that_are_gone_are_missed_and_said() {
    let (gateway, _) = Gateway::new().await;
    let (folder, before) = (gateway.folder(), device(&gateway));
    let down = gateway.down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");

    let gateway = down.up().await;
    let health = gateway.until_health("it is said", |health| health.problem.is_some()).await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.contains(&format!("the keys of device {before} are gone")), "{problem}");
    gateway.stop().await;
}

#[tokio::test]
async fn an_operator_can_start_anew() {
    let (gateway, homeserver) = Gateway::new().await;
    let (folder, before) = (gateway.folder(), device(&gateway));
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.settles().await;
    let down = gateway.down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::write(folder.join("start-anew"), "").expect("a file can be made");
    ada.says(&room, "say two").await;

    let gateway = down.up().await;
    gateway.until_synced().await;

    assert_ne!(device(&gateway), before);
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one", "two"], "nothing is lost, nothing doubled");
    gateway.stop().await;
}

#[tokio::test]
async fn a_password_that_is_refused_is_named() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let chosen = MatrixOptions { login: Login::Password("wrong".into()), ..options(homeserver.url(), &account) };
    let gateway = Gateway::with(chosen).await;

    let health = gateway.until_health("it is named", |health| health.problem.is_some()).await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.starts_with("the homeserver refused") && !problem.contains("wrong"), "{problem}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_session_that_ends_softly_is_begun_again_on_the_same_device() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let before = device(&gateway);

    let body = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "expired", "soft_logout": true });
    proxy.fails("GET", "/sync", 1, Fault::Answer { status: 401, body });
    let is_login = |call: &rejoinder_matrix_server::Call| call.method == "POST" && call.path.ends_with("/login");
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    assert_eq!(proxy.calls().iter().filter(|call| is_login(call)).count(), 2);
    assert_eq!(device(&gateway), before);
    assert_eq!(gateway.matrix.health().problem, None);
    gateway.stop().await;
}
