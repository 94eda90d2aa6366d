//! Encrypted rooms and their keys.

use std::collections::HashSet;

use rejoinder_matrix_server::{Fault, Homeserver};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use serde_json::json;

use crate::{Chat, Place, QUIET, UNREADABLE, matrix, patient, through_proxy, with_ada, with_chat};

/// A device sends a message and shares its key later: the message waits, even across a restart.
#[tokio::test]
async fn what_comes_before_its_key_is_answered_when_the_key_comes() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, "decrypt_patience = \"10m\"\nstreaming = \"off\"").await;
    let mut gateway = builder.start().await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "late").await;
    eventually("a wait for the key", async || gateway.log().contains("waiting for a key").then_some(())).await;
    gateway.stop().await;
    gateway.restart().await;
    assert!(agent.calls().is_empty());
    proxy.clear_faults();
    proxy.release().await;

    assert_eq!(ada.until_hears(&room, &user, 1).await[0].text, "echo late");
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &user).await, ["echo late"]);
}

/// The key never arrives: the person is informed, and the next message is answered.
#[tokio::test]
async fn what_cannot_be_read_is_said_to_be() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, "decrypt_patience = \"2s\"\nstreaming = \"off\"").await;
    let gateway = builder.start().await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "never").await;
    assert_eq!(ada.until_hears(&room, &user, 1).await[0].text, UNREADABLE);
    proxy.clear_faults();
    ada.forgets_the_room_key(&room).await;
    ada.says(&room, "again").await;

    assert_eq!(ada.until_hears(&room, &user, 2).await[1].text, "echo again");
    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
}

/// The account's one-time keys are used up: others can still start to encrypt for it.
#[tokio::test]
async fn keys_that_are_used_up_keep_nobody_from_writing() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, QUIET).await;
    let (mut gateway, chat) = with_chat(builder, Place::Encrypted, &user).await;
    chat.says("hello").await;
    chat.until_hears(&user, 1).await;
    gateway.until_settled().await;

    let ada = homeserver.human("ada").await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    // While the gateway is down, nobody uploads new ones.
    gateway.stop().await;
    let eve = homeserver.person("eve").await;
    let device = eve.devices_of(&user).await.pop().expect("a device");
    let keys = eve.uses_up_keys(&user, &device).await;
    ada.says(&room, "is anybody there?").await;
    gateway.restart().await;
    ada.says(&room, "hello").await;

    ada.until_hears(&room, &user, 2).await;
    gateway.until_settled().await;
    assert!(keys > 10, "only {keys} one-time keys");
    assert_eq!(ada.hears(&room, &user).await, ["echo is anybody there?", "echo hello"]);
}

/// A person verifies the account with their client: the log contains the emoji that the client shows.
#[tokio::test]
async fn a_person_verifies_the_account_by_emoji() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let account = homeserver.account("agent").await;
    let ada = homeserver.human("ada").await;
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [\"{}\"]\nstreaming = \"off\"", ada.user());
    let gateway =
        Gateway::builder().config(&matrix(homeserver.url(), &account, &list)).config(&agent.section()).start().await;
    let room = ada.direct(&account.user).await;
    ada.until_joined(&room, &account.user).await;
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &account.user, 1).await;

    let shown = ada.verifies(&account.user).await;

    assert_eq!(shown.len(), 7);
    eventually("a verification", async || gateway.log().contains("verification completed").then_some(())).await;
    let log = gateway.log();
    let said = log.lines().find(|line| line.contains("verification in progress")).expect("the log line");
    // Variation selectors are dropped, as not every client writes them; names of emoji differ, so only the emoji are
    // compared.
    let plain = |text: &str| text.replace('\u{fe0f}', "");
    let said = plain(said);
    let (_, mut rest) = said.split_once("\"shown\":").expect("the emoji in the log");
    for emoji in &shown {
        (_, rest) = rest.split_once(&plain(emoji)).unwrap_or_else(|| panic!("{shown:?} is not in {said}"));
    }
    gateway.until_settled().await;
}

/// The folder with the keys is gone: readiness reports it, and no new device is created without being asked for.
#[tokio::test]
async fn keys_that_are_gone_are_missed_and_the_rest_goes_on() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let account = homeserver.account("agent").await;
    let mut gateway = Gateway::builder()
        .config(&matrix(homeserver.url(), &account, QUIET))
        .config("[channels.webhook.test]\ntoken = \"token-of-these-tests\"\n")
        .config(&agent.section())
        .start()
        .await;
    let ada = homeserver.person("ada").await;
    let before = ada.devices_of(&account.user).await;

    gateway.stop().await;
    std::fs::remove_dir_all(gateway.data().join("matrix-test")).expect("the folder exists");
    gateway.spawn(&[]);
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    let said = gateway.until_not_ready("are gone").await;

    assert!(said.contains("matrix.test") && said.contains("start-anew"), "{said}");
    assert_eq!(gateway.hook("test", "token-of-these-tests").ask("hello").await.text(), "Hello.");
    assert_eq!(ada.devices_of(&account.user).await, before);
}

/// Events that cannot be decrypted are counted, and make the channel unhealthy.
#[tokio::test]
async fn what_waits_for_its_key_is_counted() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, "decrypt_patience = \"15s\"\nstreaming = \"off\"").await;
    let gateway = builder.start().await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(&user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", "/sendToDevice/", 100, Fault::Hold);
    for n in 0..10 {
        ada.says(&room, &format!("{n}")).await;
    }
    let said = gateway.until_not_ready("could not be read").await;

    assert!(said.contains("10 of the last 10 encrypted events"), "{said}");
    ada.until_hears(&room, &user, 10).await;
    gateway.until_settled().await;
    let metrics = gateway.metrics().await;
    let counted = "rejoinder_matrix_locked_total{channel=\"matrix.test\",result=\"unreadable\"} 10";
    assert!(metrics.contains(counted), "{metrics}");
}

/// The account signs the gateway's device, so that clients show no warning beside its messages; also after a restart.
#[tokio::test]
async fn the_device_is_signed_by_its_account() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let mut gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let device = ada.until("a device", async || ada.devices_of(&user).await.pop()).await;

    let is_signed = async || ada.sees_signed(&user, &device).await.then_some(());
    ada.until("it is signed", is_signed).await;
    gateway.stop().await;
    gateway.restart().await;

    assert_eq!(ada.devices_of(&user).await, std::slice::from_ref(&device));
    assert!(ada.sees_signed(&user, &device).await);
    assert!(!gateway.log().contains("is not signed"), "{}", gateway.log());
}

/// With `recovery_key` a new device that the operator asked for is signed like the old one, and can decrypt messages that
/// were sent to that one.
#[tokio::test]
async fn a_new_device_reads_what_was_said_to_the_old_one() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let keys = format!("{QUIET}\ndecrypt_patience = \"10m\"\nrecovery_key = \"correct horse battery staple\"");
    let (builder, user, proxy) = through_proxy(&agent, &keys).await;
    let mut gateway = builder.config("[guard]\nsoft_deadline = \"off\"\n").start().await;
    let eve = homeserver.person("eve").await;
    let chat = Chat::new(homeserver, Place::Encrypted, &user).await;
    chat.until_joined(&user).await;
    chat.says("hello").await;
    chat.until_hears(&user, 1).await;
    gateway.until_settled().await;
    let old = eve.devices_of(&user).await;
    // Her room key and the account's.
    let backed_up = || {
        let calls =
            proxy.calls().into_iter().filter(|call| call.method == "PUT" && call.path.contains("/room_keys/keys"));
        let rooms = calls.flat_map(|call| call.body["rooms"].as_object().cloned().unwrap_or_default());
        let sessions = rooms.flat_map(|(_, room)| room["sessions"].as_object().cloned().unwrap_or_default());
        sessions.map(|(id, _)| id).collect::<HashSet<_>>().len()
    };
    eventually("the keys are backed up", async || (backed_up() >= 2).then_some(())).await;

    gateway.stop().await;
    chat.says("do you remember me?").await;
    let folder = gateway.data().join("matrix-test");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
    std::fs::create_dir(&folder).expect("the folder is created");
    std::fs::write(folder.join("start-anew"), "").expect("the file is created");
    gateway.restart().await;
    chat.until_hears(&user, 2).await;

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, ["echo hello", "echo do you remember me?"]);
    let new: Vec<_> = eve.devices_of(&user).await.into_iter().filter(|device| !old.contains(device)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert!(eve.sees_signed(&user, &new[0]).await, "the new device is not signed");
}

/// D10: a new device, which knows no rooms at first, sends what was owed before.
#[tokio::test]
async fn a_new_device_says_what_the_old_one_owed() {
    let (agent, _never) = ScriptedAgent::holding("never").await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (mut gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"off\"\n"), &user).await;
    ada.says(&room, "hello").await;
    agent.until_called(1).await;

    gateway.kill();
    let folder = gateway.data().join("matrix-test");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
    std::fs::create_dir(&folder).expect("the folder is created");
    std::fs::write(folder.join("start-anew"), "").expect("the file is created");
    let body = json!({ "errcode": "M_UNKNOWN", "error": "no" });
    proxy.fail("GET", "/sync", 10_000, Fault::Answer { status: 500, body });
    gateway.spawn(&[]);
    agent.until_called(2).await;
    let is_tried = async || {
        let metrics = gateway.metrics().await;
        let mut attempts = metrics.lines().filter(|line| line.starts_with("rejoinder_attempts_total{"));
        attempts.any(|line| !line.ends_with(" 0")).then_some(())
    };
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    eventually("an attempt", is_tried).await;
    proxy.clear_faults();

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["echo hello"]);
    gateway.until_settled().await;
}
