//! The device survives restarts; its loss is reported.

use std::fs;

use rejoinder_core::ChannelAdapter;
use rejoinder_matrix::Login;
use rejoinder_matrix_server::{Call, Fault, Homeserver};
use serde_json::json;

use crate::support::{Gateway, options, send_many, server_error, token_of_another_device, until_hears_many};

fn is_login(call: &Call) -> bool {
    call.method == "POST" && call.path.ends_with("/login")
}

fn softly_ended() -> Fault {
    let body = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "expired", "soft_logout": true });
    Fault::Answer { status: 401, body }
}

#[tokio::test]
async fn a_restart_keeps_the_device() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let before = gateway.device();

    let gateway = gateway.shut_down().await.restart().await;
    gateway.until_synced().await;

    assert_eq!(gateway.device(), before);
    assert_eq!(proxy.calls().iter().filter(|call| is_login(call)).count(), 1);
    gateway.stop().await;
}

#[tokio::test]
async fn an_access_token_is_a_login_too() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let chosen = options(homeserver.url(), &account).with_login(Login::AccessToken(token.into()));
    let gateway = Gateway::synced(chosen).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    gateway.stop().await;
}

/// D1. The token stays in the configuration and is not stored.
#[tokio::test]
async fn a_restart_with_an_access_token_keeps_the_device() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.as_str().into());
    let gateway = Gateway::synced(options(proxy.url(), &account).with_login(login)).await;
    let before = gateway.device();
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let down = gateway.shut_down().await;
    ada.says(&room, "say two").await;
    let gateway = down.restart().await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one", "two"]);
    assert_eq!(gateway.device(), before);
    assert_eq!(ada.devices_of(gateway.user()).await, [before]);
    assert_eq!(proxy.calls().iter().filter(|call| is_login(call)).count(), 0);
    let session = fs::read_to_string(gateway.keys().join("session.json")).expect("a session");
    assert!(!session.contains(&token), "the token was stored");
    gateway.stop().await;
}

#[tokio::test]
async fn the_token_of_another_device_is_refused_and_nothing_is_lost() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let ours = Login::AccessToken(token.into());
    let chosen = options(homeserver.url(), &account).with_login(ours.clone());
    let gateway = Gateway::synced(chosen).await;
    let (before, ada) = (gateway.device(), homeserver.person("ada").await);
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let mut down = gateway.shut_down().await;
    ada.says(&room, "say two").await;
    let another = token_of_another_device(homeserver, &account).await;
    down.options = down.options.with_login(Login::AccessToken(another.into()));
    let gateway = down.restart().await;
    let health = gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let mut down = gateway.shut_down().await;
    down.options = down.options.with_login(ours);
    let gateway = down.restart().await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.starts_with("the access token belongs to device"), "{problem}");
    assert!(problem.contains(&format!("has the keys of {before}")), "{problem}");
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one", "two"]);
    assert_eq!(gateway.device(), before);
    gateway.stop().await;
}

/// Two programs with one device would overwrite each other's keys.
#[tokio::test]
async fn the_token_of_a_device_that_another_program_uses_is_refused() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.into());
    let chosen = options(homeserver.url(), &account).with_login(login);
    let other = Gateway::synced(chosen.clone()).await;

    let gateway = Gateway::with(chosen).await;
    let health = gateway.until_health("a health problem", |health| health.problem.is_some()).await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.contains(&format!("the keys of device {} are gone", other.device())), "{problem}");
    gateway.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn keys_that_are_gone_are_missed_and_said() {
    let (gateway, _) = Gateway::new().await;
    let (folder, before) = (gateway.keys(), gateway.device());
    let down = gateway.shut_down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");

    let gateway = down.restart().await;
    let health = gateway.until_health("a health problem", |health| health.problem.is_some()).await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.contains(&format!("the keys of device {before} are gone")), "{problem}");
    gateway.stop().await;
}

#[tokio::test]
async fn an_operator_can_start_anew() {
    let (gateway, homeserver) = Gateway::new().await;
    let (folder, before) = (gateway.keys(), gateway.device());
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;
    let down = gateway.shut_down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::write(folder.join("start-anew"), "").expect("a file can be made");
    ada.says(&room, "say two").await;

    let gateway = down.restart().await;
    gateway.until_synced().await;

    assert_ne!(gateway.device(), before);
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one", "two"], "nothing is lost or repeated");
    gateway.stop().await;
}

#[tokio::test]
async fn a_password_that_is_refused_is_named() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let chosen = options(homeserver.url(), &account).with_login(Login::Password("wrong".into()));
    let gateway = Gateway::with(chosen).await;

    let health = gateway.until_health("a health problem", |health| health.problem.is_some()).await;

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
    let before = gateway.device();

    proxy.fail("GET", "/sync", 1, softly_ended());
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    assert_eq!(proxy.calls().iter().filter(|call| is_login(call)).count(), 2);
    assert_eq!(gateway.device(), before);
    assert_eq!(gateway.adapter.health().problem, None);
    gateway.stop().await;
}

/// F3. With a token there is no login: the same token is tried again.
#[tokio::test]
async fn a_token_that_is_refused_once_is_tried_again() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let login = Login::AccessToken(token.into());
    let gateway = Gateway::synced(options(proxy.url(), &account).with_login(login)).await;
    let before = gateway.device();
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    let body = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "who are you?" });
    proxy.fail("GET", "/sync", 1, Fault::Answer { status: 401, body });
    let health = gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    ada.says(&room, "say hello").await;

    let problem = health.problem.unwrap_or_default();
    assert!(problem.starts_with("the homeserver has ended the session"), "{problem}");
    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    assert_eq!(gateway.device(), before);
    gateway.until_synced().await;
    gateway.stop().await;
}

/// D1, F3. The session ends while missed pages are read: they are read again.
#[tokio::test]
async fn a_session_that_ends_softly_while_rooms_are_read_back_is_begun_again() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let before = gateway.device();
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say before").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    let texts = send_many(&ada, &room).await;
    proxy.clear_faults();
    proxy.fail("GET", "/messages", 1, softly_ended());

    let heard = until_hears_many(&ada, &room, gateway.user(), 1 + texts.len()).await;
    assert_eq!(heard[1..], texts);
    assert_eq!(proxy.calls().iter().filter(|call| is_login(call)).count(), 2);
    assert_eq!(gateway.device(), before);
    gateway.stop().await;
}

/// D1, D10. A device that has not synced knows no rooms: deliveries wait until it has.
#[tokio::test]
async fn what_is_owed_waits_for_the_first_sync() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let folder = gateway.keys();
    let down = gateway.shut_down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::write(folder.join("start-anew"), "").expect("a file can be made");

    proxy.fail("GET", "/sync", usize::MAX, server_error());
    let gateway = down.restart().await;
    let turn = gateway.until_agent_has(1).await.turn;
    gateway.release_agent();
    // The new device has logged in but cannot sync.
    gateway.until_health("a health problem", |health| health.problem.is_some()).await;
    gateway.until_tried(turn, gateway.attempt_count(turn).await + 2).await;
    proxy.clear_faults();

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["one and that is all."]);
    gateway.stop().await;
}
