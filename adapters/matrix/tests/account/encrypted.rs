//! Encrypted rooms, with a client that is not ours on the other side.

use std::time::Duration;

use rejoinder_matrix::MatrixOptions;
use rejoinder_matrix_server::{Fault, Homeserver};

use crate::support::{Gateway, UNREADABLE, options};

#[tokio::test]
async fn an_encrypted_chat_is_answered_encrypted() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.says(&room, "say a secret").await;

    let heard = ada.until_hears(&room, gateway.user(), 1).await;
    assert_eq!((&*heard[0].text, heard[0].is_encrypted), ("a secret", true));
    assert_eq!(gateway.told(), ["say a secret"]);
    gateway.stop().await;
}

#[tokio::test]
async fn an_answer_grows_in_an_encrypted_chat_too() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.says(&room, "begin a secret").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.agent_goes_on();

    let whole = |messages: &[rejoinder_matrix_server::Message]| {
        let message = messages.iter().find(|message| message.sender == gateway.user())?;
        (message.text == "a secret and that is all.").then(|| message.edits)
    };
    assert_eq!(ada.until_sees(&room, whole).await, 1);
    gateway.stop().await;
}

/// D1. The keys are still there after a restart.
#[tokio::test]
async fn a_restart_goes_on_in_an_encrypted_chat() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.settles().await;

    let down = gateway.down().await;
    ada.says(&room, "say two").await;
    let gateway = down.up().await;
    let heard = ada.until_hears(&room, gateway.user(), 2).await;
    ada.says(&room, "say three").await;

    assert_eq!(heard[1].text, "two");
    assert_eq!(ada.until_hears(&room, gateway.user(), 3).await[2].text, "three");
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn encrypted_files_go_both_ways() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.attaches(&room, "notes.txt", "purr").await;
    let turn = gateway.agent_has(1).await;
    ada.says(&room, "send data:text/plain;base64,cHVycg==").await;

    assert_eq!(turn.attachments[0].bytes.as_deref(), Some(&b"purr"[..]));
    let heard = ada.until_hears(&room, gateway.user(), 3).await;
    assert_eq!((&*heard[2].text, heard[2].is_encrypted), ("cat.txt", true));
    assert_eq!(ada.opens(&heard[2]).await, "purr");
    gateway.stop().await;
}

/// What comes before its key waits for it, over a restart as well, and is answered once.
#[tokio::test]
async fn what_comes_before_its_key_is_read_when_the_key_comes() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixOptions { decrypt_patience: Duration::from_mins(10), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let way = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &way).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    way.fails("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "say late").await;
    way.until("the key is held", |call| call.path.contains("/sendToDevice/")).await;
    gateway.until_waiting(1).await;
    let gateway = gateway.down().await.up().await;
    gateway.until_synced().await;
    assert_eq!(gateway.told(), Vec::<String>::new());
    way.heals();
    way.release().await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, "late");
    gateway.stop().await;
}

/// Past its patience the person is told.
#[tokio::test]
async fn what_cannot_be_read_is_said_to_be() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let impatient = MatrixOptions { decrypt_patience: Duration::from_secs(1), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(impatient).await;
    let way = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &way).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    way.fails("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "say never").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, UNREADABLE);
    assert_eq!(gateway.told(), Vec::<String>::new());
    way.heals();
    ada.forgets_the_room_key(&room).await;
    ada.says(&room, "say again").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await[1].text, "again");
    gateway.stop().await;
}
