//! What is said to the account.

use serde_json::json;

use crate::support::Gateway;

#[tokio::test]
async fn what_is_said_in_a_direct_chat_is_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    // Before we are in the room: clients write to whom they have just invited.
    ada.says(&room, "say hello").await;

    assert_eq!(ada.until_hears(&room, gateway.user(), 1).await, ["hello"]);
    ada.says(&room, "say more").await;
    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["hello", "more"]);
    gateway.stop().await;
}

/// D14. What was said before the first start is nobody's any more.
#[tokio::test]
async fn nothing_old_is_answered_at_the_first_start() {
    let homeserver = rejoinder_matrix_server::Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let options = crate::support::options(homeserver.url(), &account);
    let ada = homeserver.person("ada").await;
    let (before, invited) = (ada.direct(&account.user).await, ada.direct(&account.user).await);
    homeserver.join(&token, &before).await;
    ada.says(&before, "say old").await;
    ada.says(&invited, "say older").await;

    let gateway = Gateway::synced(options).await;
    ada.until_joined(&invited, gateway.user()).await;
    ada.says(&before, "say new").await;
    ada.says(&invited, "say newer").await;

    assert_eq!(ada.until_hears(&before, gateway.user(), 1).await, ["new"]);
    assert_eq!(ada.until_hears(&invited, gateway.user(), 1).await, ["newer"]);
    gateway.stop().await;
    assert_eq!(ada.hears(&before, &account.user).await, ["new"]);
    assert_eq!(ada.hears(&invited, &account.user).await, ["newer"]);
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
    assert_eq!(gateway.agent_has(3).await.quoted.as_deref(), Some("hello"));
    assert_eq!(said.content["m.mentions"], json!({ "user_ids": [ada.user()] }), "whoever asked hears of it");
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
    let root = bob.says(&room, "stay with the thread").await;

    ada.says_in_thread(&room, &root, gateway.user(), "say inside").await;

    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");
    assert_eq!((&*said.text, said.thread.as_deref()), ("inside", Some(&*root)));
    assert_eq!(gateway.agent_has(2).await.conversation.thread.as_deref(), Some(&*root));
    gateway.stop().await;
}

/// What waits takes its new words; the agent never sees the old ones.
#[tokio::test]
async fn an_edit_changes_what_waits() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.agent_has(1).await;
    let second = ada.says(&room, "say tow").await;

    ada.edits(&room, &second, "say two").await;
    // What comes after it shows that it came.
    ada.until("it is read", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == second)).await;
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.agent_goes_on();

    assert_eq!(ada.until_hears(&room, gateway.user(), 2).await, ["one and that is all.", "two"]);
    gateway.stop().await;
}

/// What waits and is taken back is not answered; the agent never sees it.
#[tokio::test]
async fn what_is_taken_back_while_it_waits_is_not_answered() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "wait one").await;
    gateway.agent_has(1).await;
    let second = ada.says(&room, "say two").await;
    ada.until("it is read", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == second)).await;

    ada.redacts(&room, &second).await;
    // What comes after it shows that it came.
    let other = ada.direct(gateway.user()).await;
    ada.says(&other, "say after").await;
    ada.until_hears(&other, gateway.user(), 1).await;
    gateway.agent_goes_on();
    ada.until_hears(&room, gateway.user(), 1).await;

    gateway.settles().await;
    assert_eq!(ada.hears(&room, gateway.user()).await, ["one and that is all."]);
    assert_eq!(gateway.told(), ["wait one", "say after"]);
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

    let turn = gateway.agent_has(1).await;
    let file = &turn.attachments[0];
    assert_eq!((&*file.attachment.name, file.bytes.as_deref()), ("notes.txt", Some(&b"purr"[..])));
    gateway.stop().await;
}

/// F7.
#[tokio::test]
async fn what_is_stored_is_marked_as_read() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;

    let said = ada.says(&room, "say hello").await;

    ada.until("it is read", async || ada.read_by(&room, gateway.user()).await.filter(|read| *read == said)).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_reaction_is_told_to_the_agent_with_what_it_is_on() {
    let (gateway, homeserver) = Gateway::new().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(gateway.user()).await;
    ada.says(&room, "say hello").await;
    ada.until_hears(&room, gateway.user(), 1).await;
    let said = ada.sees(&room).await.pop().expect("an answer");

    ada.reacts(&room, &said.id, "👍").await;

    let turn = gateway.agent_has(2).await;
    assert_eq!((turn.reaction.as_deref(), turn.quoted.as_deref()), (Some("👍"), Some("hello")));
    gateway.settles().await;
    gateway.down().await;
}
