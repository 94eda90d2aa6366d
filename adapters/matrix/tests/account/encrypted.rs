//! Encrypted rooms, with an independent client on the other side.

use std::time::Duration;

use rejoinder_matrix::MatrixSection;
use rejoinder_matrix_server::{Fault, Homeserver, Message};
use serde_json::{Value, json};

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
    assert_eq!(gateway.agent_texts(), ["say a secret"]);
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
    gateway.release_agent();

    let whole = |messages: &[Message]| {
        let message = messages.iter().find(|message| message.sender == gateway.user())?;
        (message.text == "a secret and that is all.").then_some(message.edits)
    };
    let edits = ada.until_sees(&room, whole).await;
    assert!((1..=2).contains(&edits), "{edits}");
    gateway.stop().await;
}

/// D1. The keys survive a restart.
#[tokio::test]
async fn a_restart_goes_on_in_an_encrypted_chat() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.until_settled().await;

    let down = gateway.shut_down().await;
    ada.says(&room, "say two").await;
    let gateway = down.restart().await;
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
    let turn = gateway.until_agent_has(1).await;
    ada.says(&room, "send text/plain data:text/plain;base64,cHVycg==").await;

    assert_eq!(turn.message.attachments[0].bytes.as_deref(), Some(&b"purr"[..]));
    let heard = ada.until_hears(&room, gateway.user(), 2).await;
    assert_eq!((&*heard[1].text, heard[1].is_encrypted), ("Here it is.", true));
    assert_eq!(ada.opens(&heard[1]).await, "purr");
    gateway.stop().await;
}

/// A message that arrives before its key waits for it, even over a restart, and is answered once.
#[tokio::test]
async fn what_comes_before_its_key_is_read_when_the_key_comes() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixSection { decrypt_patience: Duration::from_mins(10), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "say late").await;
    proxy.until("the key is held", |call| call.path.contains("/sendToDevice/")).await;
    gateway.until_waiting(1).await;
    let gateway = gateway.shut_down().await.restart().await;
    gateway.until_synced().await;
    assert_eq!(gateway.agent_texts(), Vec::<String>::new());
    proxy.clear_faults();
    proxy.release().await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, "late");
    gateway.stop().await;
}

/// After `decrypt_patience` the sender is informed.
#[tokio::test]
async fn what_cannot_be_read_is_said_to_be() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let impatient = MatrixSection { decrypt_patience: Duration::from_secs(1), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(impatient).await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/sendToDevice/", 100, Fault::Hold);
    ada.says(&room, "say never").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, UNREADABLE);
    assert_eq!(gateway.agent_texts(), Vec::<String>::new());
    proxy.clear_faults();
    ada.forgets_the_room_key(&room).await;
    ada.says(&room, "say again").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await[1].text, "again");
    gateway.stop().await;
}

/// A new member can read answers from then on.
#[tokio::test]
async fn who_joins_an_encrypted_room_reads_the_next_answer() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.human("ada").await, homeserver.human("bob").await);
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "say one").await;
    ada.until_hears(&room, gateway.user(), 1).await;

    ada.invites(&room, bob.user()).await;
    bob.joins(&room).await;
    ada.until_joined(&room, bob.user()).await;
    ada.mentions(&room, gateway.user(), "say two").await;
    ada.until_hears(&room, gateway.user(), 2).await;
    bob.mentions(&room, gateway.user(), "say three").await;

    let read = bob.until_sees(&room, |messages| {
        let theirs = messages.iter().filter(|message| message.sender == gateway.user() && message.is_encrypted);
        let texts: Vec<String> = theirs.map(|message| message.text.clone()).collect();
        texts.contains(&"three".to_owned()).then_some(texts)
    });
    assert_eq!(read.await, ["two", "three"]);
    assert_eq!(ada.until_hears(&room, gateway.user(), 3).await[2].text, "three");
    gateway.stop().await;
}

/// A waiting message takes its new text; the agent never sees the old one.
#[tokio::test]
async fn an_edit_changes_what_waits_in_an_encrypted_chat_too() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say tow").await;

    let edit = ada.edits(&room, &second, "say two").await;
    gateway.until_stored(&room, &edit).await;
    gateway.release_agent();

    let heard = ada.until_hears(&room, gateway.user(), 2).await;
    assert_eq!((&*heard[0].text, &*heard[1].text), ("one and that is all.", "two"));
    assert_eq!(gateway.agent_texts(), ["wait one", "say two"]);
    gateway.stop().await;
}

/// A waiting message that is redacted is not answered; the agent never sees it.
#[tokio::test]
async fn what_is_taken_back_in_an_encrypted_chat_is_not_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say two").await;
    gateway.until_stored(&room, &second).await;

    ada.redacts(&room, &second).await;
    let third = ada.says(&room, "say three").await;
    gateway.until_stored(&room, &third).await;
    gateway.release_agent();

    ada.until_hears(&room, gateway.user(), 2).await;
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all.", "three"]);
    assert_eq!(gateway.agent_texts(), ["wait one", "say three"]);
    gateway.stop().await;
}

/// In a group only the sender of a reply to us is informed: relations are not encrypted.
#[tokio::test]
async fn what_cannot_be_read_in_a_group_is_said_to_be_where_it_answers_us() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let impatient = MatrixSection { decrypt_patience: Duration::from_secs(1), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(impatient).await;
    let proxy = homeserver.proxy().await;
    let (ada, bob) = (homeserver.human("ada").await, homeserver.human_through("bob", &proxy).await);
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.invites(&room, bob.user()).await;
    bob.joins(&room).await;
    ada.until_joined(&room, bob.user()).await;
    ada.mentions(&room, gateway.user(), "say hello").await;
    let answer = ada.until_hears(&room, gateway.user(), 1).await.remove(0);
    bob.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/sendToDevice/", usize::MAX, Fault::Hold);
    bob.says(&room, "say nothing to me").await;
    gateway.until_waiting(1).await;
    gateway.until_waiting(0).await;
    bob.replies(&room, &answer.id, "say why").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await[1].text, UNREADABLE);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["hello", UNREADABLE]);
    gateway.stop().await;
}

/// When too many events wait for their keys, the sender of the oldest is informed at once.
#[tokio::test]
async fn the_oldest_of_too_many_that_wait_is_said_to_be_unreadable() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixSection { decrypt_patience: Duration::from_mins(10), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    proxy.fail("PUT", "/sendToDevice/", usize::MAX, Fault::Hold);
    ada.says(&room, "say never").await;
    gateway.until_waiting(1).await;

    // Fills the list with events of rooms that we are no longer in.
    let down = gateway.shut_down().await;
    let list = |list: Option<String>| {
        let mut list: Vec<Value> = serde_json::from_str(&list.expect("a list")).expect("JSON");
        let since = list[0]["since"].clone();
        let another = |number| json!({ "room": "!gone:example.org", "event": format!("${number}"), "since": since });
        list.extend((1..1000).map(another));
        json!(list).to_string()
    };
    down.move_cursor("locked", list).await;
    let gateway = down.restart().await;
    gateway.until_waiting(1000).await;
    ada.says(&room, "say neither").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, UNREADABLE);
    gateway.until_waiting(1000).await;
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, [UNREADABLE]);
    gateway.stop().await;
}

/// E4. Decrypted content that is not an event is dropped, and holds nothing up.
#[tokio::test]
async fn what_is_nothing_once_it_is_read_holds_nothing_up() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixSection { decrypt_patience: Duration::from_mins(10), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/sendToDevice/", usize::MAX, Fault::Hold);
    ada.says(&room, "say one").await;
    ada.forges(&room, &json!({ "type": 5, "content": {} })).await;
    let nulls = json!({
        "msgtype": "m.text", "body": "say two", "info": null, "m.mentions": null, "m.relates_to": null,
    });
    ada.forges(&room, &json!({ "type": "m.room.message", "content": nulls })).await;
    gateway.until_waiting(3).await;
    proxy.clear_faults();
    proxy.release().await;

    gateway.until_waiting(0).await;
    ada.says(&room, "say three").await;
    let said = |messages: &[Message]| {
        let ours = messages.iter().filter(|message| message.sender == gateway.user());
        let texts: Vec<String> = ours.map(|message| message.text.clone()).collect();
        texts.contains(&"three".to_owned()).then_some(texts)
    };
    assert_eq!(ada.until_sees(&room, said).await, ["one", "two", "three"]);
    gateway.stop().await;
}

/// An event that is redacted while its key is missing is not answered when the key arrives.
#[tokio::test]
async fn what_is_taken_back_before_its_key_comes_is_not_answered() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let patient = MatrixSection { decrypt_patience: Duration::from_mins(10), ..options(homeserver.url(), &account) };
    let gateway = Gateway::synced(patient).await;
    let proxy = homeserver.proxy().await;
    let ada = homeserver.human_through("ada", &proxy).await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    proxy.fail("PUT", "/sendToDevice/", usize::MAX, Fault::Hold);
    let said = ada.says(&room, "say late").await;
    gateway.until_waiting(1).await;
    ada.redacts(&room, &said).await;
    gateway.until_waiting(0).await;
    proxy.clear_faults();
    proxy.release().await;
    ada.says(&room, "say after").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await[0].text, "after");
    gateway.until_settled().await;
    assert_eq!(gateway.agent_texts(), ["say after"]);
    gateway.stop().await;
}

/// Memberships and redactions inside encrypted events are not believed: only the homeserver may report them.
#[tokio::test]
async fn what_only_the_homeserver_may_say_is_not_believed_from_people() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.human("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say two").await;
    gateway.until_stored(&room, &second).await;

    let taken_back = json!({ "type": "m.room.redaction", "redacts": second, "content": { "redacts": second } });
    let forged = ada.forges(&room, &taken_back).await;
    gateway.until_stored(&room, &forged).await;
    gateway.release_agent();
    ada.until_hears(&room, gateway.user(), 2).await;
    gateway.until_settled().await;
    // A forged membership, read together with the message after it.
    let down = gateway.shut_down().await;
    let user = down.options.user.clone();
    let put_out = json!({ "type": "m.room.member", "state_key": user, "content": { "membership": "leave" } });
    ada.forges(&room, &put_out).await;
    ada.says(&room, "say three").await;
    let gateway = down.restart().await;

    let heard = ada.until_hears(&room, gateway.user(), 3).await;
    let heard: Vec<&str> = heard.iter().map(|message| &*message.text).collect();
    assert_eq!(heard, ["one and that is all.", "two", "three"]);
    gateway.stop().await;
}
