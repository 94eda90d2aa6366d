//! Trust in our device, and what a new device of ours can read.

use std::{
    fs,
    time::{Duration, Instant},
};

use rejoinder_matrix::{MatrixSection, account_state};
use rejoinder_matrix_server::{Call, Fault, Homeserver};

use crate::support::{Gateway, UNREADABLE, http, options};

/// Our device is signed with the account's keys, which are created once.
#[tokio::test]
async fn our_device_is_signed_by_our_account() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.person("ada").await;
    // Only people who share a room with us learn of our keys.
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    let device = gateway.device();
    let is_signed = async || ada.sees_signed(gateway.user(), &device).await.then_some(());
    ada.until("a signature", is_signed).await;
    let state = account_state(&http(), gateway.options(), &gateway.keys()).await.expect("an account that works");
    let gateway = gateway.shut_down().await.restart().await;
    gateway.until_synced().await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    assert_eq!((state.account.device.as_deref(), state.is_signed), (Some(&*device), Some(true)));
    assert!(ada.sees_signed(gateway.user(), &device).await);
    let made = proxy.calls().into_iter().filter(|call| call.path.contains("/keys/device_signing/upload"));
    assert_eq!(made.filter(|call| call.status == 200).count(), 1, "the account's keys are made once");
    gateway.stop().await;
}

/// A passphrase creates the account's recovery. With it a new device reads earlier messages, and is signed like the old
/// one.
#[tokio::test]
async fn a_new_device_with_the_recovery_key_reads_what_was_said_before() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let chosen = MatrixSection {
        recovery_key: Some("correct horse battery staple".into()),
        decrypt_patience: Duration::from_mins(10),
        ..options(proxy.url(), &account)
    };
    let gateway = Gateway::synced(chosen).await;
    let before = gateway.device();
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;
    // Ada's room key is in the backup.
    let session = ada.room_key(&room).await;
    let is_it = |call: &Call| {
        call.method == "PUT" && call.path.contains("/room_keys/keys") && call.body.to_string().contains(&session)
    };
    proxy.until("the key is kept", |call| is_it(call) && call.status == 200).await;

    let folder = gateway.keys();
    let down = gateway.shut_down().await;
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::write(folder.join("start-anew"), "").expect("a file can be made");
    ada.says(&room, "say two").await;
    assert_eq!(ada.room_key(&room).await, session, "encrypted for the old device only");
    let gateway = down.restart().await;

    let heard = ada.until_hears(&room, gateway.user(), 2).await;
    assert_eq!(heard[1].text, "two");
    let device = gateway.device();
    assert_ne!(device, before);
    let eve = homeserver.person("eve").await;
    let shared = eve.direct(gateway.user()).await;
    eve.until_joined(&shared, gateway.user()).await;
    let is_signed = async || eve.sees_signed(gateway.user(), &device).await.then_some(());
    eve.until("a signature", is_signed).await;
    let made = proxy.calls().into_iter().filter(|call| call.path.contains("/keys/device_signing/upload"));
    assert_eq!(made.filter(|call| call.status == 200).count(), 1, "the account's keys are the old ones");
    gateway.stop().await;
}

/// Notices about unreadable messages do not wait until our device is signed.
#[tokio::test]
async fn what_cannot_be_read_does_not_wait_for_our_device_to_be_signed() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    proxy.fail("POST", "/keys/device_signing/upload", usize::MAX, Fault::Stall);
    let started = Instant::now();
    let impatient = MatrixSection { decrypt_patience: Duration::from_secs(1), ..options(proxy.url(), &account) };
    let gateway = Gateway::synced(impatient).await;
    let ada_proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &ada_proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    ada_proxy.fail("PUT", "/sendToDevice/", usize::MAX, Fault::Hold);
    ada.says(&room, "say never").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, UNREADABLE);
    assert!(started.elapsed() < Duration::from_secs(30), "after that the first request would have timed out");
    proxy.until("an upload", |call| call.path.contains("/keys/device_signing/upload")).await;
    gateway.stop().await;
}

/// A wrong recovery key delays nothing, and the new device is not signed.
#[tokio::test]
async fn a_recovery_key_that_opens_nothing_keeps_nobody_waiting() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let recovery_key = Some("correct horse battery staple".into());
    let gateway = Gateway::synced(MatrixSection { recovery_key, ..options(homeserver.url(), &account) }).await;
    let (before, ada) = (gateway.device(), homeserver.person("ada").await);
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.until("a signature", async || ada.sees_signed(gateway.user(), &before).await.then_some(())).await;

    let folder = gateway.keys();
    let mut down = gateway.shut_down().await;
    down.options.recovery_key = Some("another horse".into());
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::write(folder.join("start-anew"), "").expect("a file can be made");
    let gateway = down.restart().await;
    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    assert!(!ada.sees_signed(gateway.user(), &gateway.device()).await);
    assert!(ada.sees_signed(gateway.user(), &before).await);
    gateway.stop().await;
}

/// Anybody with the account's password can request verification as another device of it. We do not accept, because no
/// person would compare the emoji.
#[tokio::test]
async fn another_device_of_our_account_is_not_confirmed() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let gateway = Gateway::synced(options(proxy.url(), &account)).await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    let twin = homeserver.human_of(&account).await;

    twin.starts_to_verify(&gateway.device()).await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let brought = |call: &Call| {
        call.path.contains("/sync") && call.answer["to_device"].to_string().contains("m.key.verification.start")
    };
    let calls = proxy.until("a verification request", brought).await;
    let taken_up = calls.iter().filter(|call| call.path.contains("/sendToDevice/m.key.verification.accept"));
    assert_eq!(taken_up.count(), 0);
    gateway.stop().await;
}
