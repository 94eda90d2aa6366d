//! Messages to the account.

use rejoinder_matrix::{MatrixSection, ReadReceipts};
use rejoinder_matrix_server::{Call, Homeserver};
use serde_json::json;

use crate::support::{Gateway, only, options, uploaded};

#[tokio::test]
async fn what_is_said_in_a_direct_chat_is_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    // Before we have joined: clients write to people whom they have just invited.
    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    ada.says(&room, "say more").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["hello", "more"]);
    gateway.stop().await;
}

/// D14. What was said minutes before the first start is answered.
#[tokio::test]
async fn the_first_start_answers_what_was_just_said() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let options = options(homeserver.url(), &account);
    let ada = homeserver.person("ada").await;
    let (before, invited) = (ada.direct(&account.user).await, ada.direct(&account.user).await);
    homeserver.join(&token, &before).await;
    ada.says(&before, "say old").await;
    ada.says(&invited, "say older").await;

    let gateway = Gateway::synced(options).await;
    ada.until_joined(&invited, gateway.user()).await;
    ada.says(&before, "say new").await;
    ada.says(&invited, "say newer").await;

    assert_eq!(ada.until_hears(&before, gateway.user(), 2).await, ["old", "new"]);
    assert_eq!(ada.until_hears(&invited, gateway.user(), 2).await, ["older", "newer"]);
    gateway.stop().await;
    assert_eq!(ada.hears(&before, &account.user).await, ["old", "new"]);
    assert_eq!(ada.hears(&invited, &account.user).await, ["older", "newer"]);
}

/// A2.
#[tokio::test]
async fn in_a_group_only_what_is_meant_for_us_is_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.says(&room, "stay out of it").await;
    ada.mentions(&room, gateway.user(), "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    bob.replies(&room, &said.id, "say why").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["hello", "why"]);
    assert_eq!(gateway.until_agent_has(3).await.message.quoted.expect("a quote").text, "hello");
    assert_eq!(said.content["m.mentions"], json!({ "user_ids": [ada.user()] }), "the asker is mentioned");
    gateway.stop().await;
}

/// L2.
#[tokio::test]
async fn a_thread_is_answered_in_the_thread() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[gateway.user(), bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    let thread = bob.says(&room, "stay with the thread").await;

    ada.says_in_thread(&room, &thread, gateway.user(), "say inside").await;

    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    assert_eq!((&*said.text, said.thread.as_deref()), ("inside", Some(&*thread)));
    assert_eq!(gateway.until_agent_has(2).await.place.conversation.thread.as_deref(), Some(&*thread));
    gateway.stop().await;
}

/// A waiting message takes its new text; the agent never sees the old one.
#[tokio::test]
async fn an_edit_changes_what_waits() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say tow").await;

    ada.edits(&room, &second, "say two").await;
    // An answer to a later message shows that the change has arrived.
    ada.until("a read receipt", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == second)).await;
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.release_agent();

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one and that is all.", "two"]);
    gateway.stop().await;
}

/// Everybody in a room can send an edit of any message; only the author's counts.
#[tokio::test]
async fn nobody_changes_what_somebody_else_said() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let room = ada.room("Friends", &[gateway.user(), eve.user()]).await;
    eve.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.mentions(&room, gateway.user(), "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.mentions(&room, gateway.user(), "say two").await;
    gateway.until_stored(&room, &second).await;

    let mentions = json!({ "user_ids": [gateway.user()] });
    let new = json!({ "msgtype": "m.text", "body": "say something else", "m.mentions": mentions });
    let relation = json!({ "rel_type": "m.replace", "event_id": second });
    let edit = json!({
        "msgtype": "m.text", "body": "* say something else", "m.mentions": mentions,
        "m.new_content": new, "m.relates_to": relation,
    });
    let edit = eve.sends(&room, &edit).await;
    gateway.until_stored(&room, &edit).await;
    gateway.release_agent();

    ada.until_hears(&room, gateway.user(), 2).await;
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all.", "two"]);
    assert_eq!(gateway.agent_texts(), ["wait one", "say two"]);
    gateway.stop().await;
}

/// The same for our messages: after a restart we request them from the homeserver.
#[tokio::test]
async fn nobody_changes_what_we_said() {
    let (gateway, homeserver) = Gateway::new().await;
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let room = ada.room("Friends", &[gateway.user(), eve.user()]).await;
    eve.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    ada.mentions(&room, gateway.user(), "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    gateway.until_settled().await;

    eve.edits(&room, &said.id, "something else").await;
    let gateway = gateway.shut_down().await.restart().await;
    ada.replies(&room, &said.id, "say why").await;
    ada.until_hears(&room, gateway.user(), 2).await;

    let reply = gateway.turns().into_iter().find(|turn| turn.message.text == "say why").expect("a reply to us");
    assert_eq!(reply.message.quoted.expect("a quote").text, "hello");
    gateway.stop().await;
}

/// A waiting message that is redacted is not answered; the agent never sees it.
#[tokio::test]
async fn what_is_taken_back_while_it_waits_is_not_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let second = ada.says(&room, "say two").await;
    ada.until("a read receipt", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == second)).await;

    ada.redacts(&room, &second).await;
    // An answer to a later message shows that the change has arrived.
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.release_agent();
    ada.until_hears(&room, gateway.user(), 1).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."]);
    assert_eq!(gateway.agent_texts(), ["wait one", "say after"]);
    gateway.stop().await;
}

/// O1.
#[tokio::test]
async fn a_notice_is_owed_nothing() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    ada.sends(&room, &json!({ "msgtype": "m.notice", "body": "say one" })).await;
    ada.says(&room, "say two").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["two"]);
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn a_file_is_given_to_the_agent() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;

    ada.attaches(&room, "notes.txt", "text/plain", b"purr").await;

    let turn = gateway.until_agent_has(1).await;
    let file = &turn.message.attachments[0];
    assert_eq!((&*file.attachment.name, file.bytes.as_deref()), ("notes.txt", Some(&b"purr"[..])));
    gateway.stop().await;
}

/// K3.
#[tokio::test]
async fn a_voice_message_is_given_to_the_agent() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.until_joined(&room, gateway.user()).await;
    let url = uploaded(homeserver, "audio/ogg", b"OggS").await;

    // In the form in which clients send it.
    let content = json!({
        "msgtype": "m.audio", "body": "Voice message", "url": url,
        "info": { "mimetype": "audio/ogg", "size": 4, "duration": 1500 },
        "org.matrix.msc1767.audio": { "duration": 1500, "waveform": [0, 512, 1024] },
        "org.matrix.msc3245.voice": {},
    });
    ada.sends(&room, &content).await;

    let turn = gateway.until_agent_has(1).await;
    let file = &turn.message.attachments[0];
    assert_eq!((&*turn.message.text, turn.message.attachments.len()), ("", 1), "the file's name is not a text");
    assert_eq!((&*file.attachment.media_type, file.bytes.as_deref()), ("audio/ogg", Some(&b"OggS"[..])));
    ada.until_hears(&room, gateway.user(), 1).await;
    gateway.stop().await;
}

/// F7.
#[tokio::test]
async fn what_is_stored_is_marked_as_read() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    let said = ada.says(&room, "say hello").await;

    ada.until("a read receipt", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == said)).await;
    gateway.stop().await;
}

/// F7.
#[tokio::test]
async fn what_is_answered_is_marked_as_read() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let read_receipts = ReadReceipts::OnAnswer;
    let gateway = Gateway::synced(MatrixSection { read_receipts, ..options(proxy.url(), &account) }).await;
    let ada = homeserver.person("ada").await;
    let (room, other) = (ada.direct(gateway.user()).await, ada.direct(gateway.user()).await);

    let said = ada.says(&room, "wait one").await;
    gateway.until_agent_has(1).await;
    let answered = ada.says(&other, "say after").await;
    ada.until("a receipt", async || ada.read_by(&other, gateway.user()).await.filter(|read| *read == answered)).await;
    assert_eq!(ada.read_by(&room, gateway.user()).await, None, "not answered yet");
    gateway.release_agent();

    ada.until("a read receipt", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == said)).await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."], "marked as read before the answer");
    gateway.stop().await;
}

/// F7.
#[tokio::test]
async fn nothing_is_marked_as_read_where_nobody_wants_it() {
    let homeserver = Homeserver::shared().await;
    let proxy = homeserver.proxy().await;
    let account = homeserver.account("agent").await;
    let read_receipts = ReadReceipts::Off;
    let gateway = Gateway::synced(MatrixSection { read_receipts, ..options(proxy.url(), &account) }).await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    for number in 1..=3 {
        ada.says(&room, &format!("say {number}")).await;
        ada.until_hears(&room, gateway.user(), number).await;
    }
    gateway.stop().await;

    let receipts: Vec<Call> = proxy.calls().into_iter().filter(|call| call.path.contains("/receipt/")).collect();
    assert!(receipts.is_empty(), "{receipts:?}");
}

#[tokio::test]
async fn a_reaction_is_told_to_the_agent_with_what_it_is_on() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    gateway.until_settled().await;

    ada.reacts(&room, &said.id, "👍").await;

    let turn = gateway.until_agent_has(2).await;
    assert_eq!((turn.message.reaction.as_deref(), &*turn.message.quoted.expect("a quote").text), (Some("👍"), "hello"));
    gateway.until_settled().await;
    gateway.shut_down().await;
}

/// Otherwise each reply of a stranger to a message of long ago would cost requests to the homeserver.
#[tokio::test]
async fn for_a_stranger_nothing_is_looked_up() {
    let homeserver = Homeserver::shared().await;
    let (account, proxy) = (homeserver.account("agent").await, homeserver.proxy().await);
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let chosen = MatrixSection { people: only(&ada), ..options(proxy.url(), &account) };
    let gateway = Gateway::synced(chosen).await;
    let room = ada.room("Friends", &[gateway.user(), eve.user()]).await;
    eve.join(&room).await;
    ada.until_joined(&room, gateway.user()).await;
    let (of_eve, of_ada) = ("$unknown-to-eve", "$unknown-to-ada");

    eve.replies(&room, of_eve, "is that so?").await;
    let mention = json!({
        "msgtype": "m.text", "body": "say so", "m.mentions": { "user_ids": [gateway.user()] },
        "m.relates_to": { "m.in_reply_to": { "event_id": of_ada } },
    });
    ada.sends(&room, &mention).await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["so"]);
    let looked_up = |event: &str| proxy.calls().iter().any(|call| call.path.contains(event));
    assert!(looked_up("unknown-to-ada") && !looked_up("unknown-to-eve"));
    gateway.stop().await;
}
