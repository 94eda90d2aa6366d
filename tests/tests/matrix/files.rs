//! Files and other messages without text.

use rejoinder_matrix_server::{Fault, Homeserver, Proxy};
use rejoinder_tests::{Call, Gateway, Script, ScriptedAgent, SpeechServer, TranscriptionServer};
use serde_json::json;

use crate::matrix;

/// A minimal picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// A gateway with an agent that accepts images and numbers its answers, behind a proxy; the third value is its user id.
async fn seeing(homeserver: &Homeserver, keys: &str) -> (Gateway, ScriptedAgent, String, Proxy) {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let section = matrix(proxy.url(), &account, &format!("streaming = \"off\"\n{keys}"));
    let gateway = Gateway::builder()
        .config(&section)
        .config(&agent.section_with("images = true"))
        .config("[guard]\nsoft_deadline = \"off\"\n")
        .start()
        .await;
    (gateway, agent, account.user, proxy)
}

/// K3: a picture and its caption reach a multimodal model as one turn.
#[tokio::test]
async fn a_picture_is_seen() {
    let homeserver = Homeserver::shared().await;
    let (gateway, agent, user, _way) = seeing(homeserver, "").await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.shows(&room, "a.png", PNG, "what is this?").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains("what is this?"), "{text}");
    assert_eq!(text.matches("data:image/").count(), 1, "{text}");
    assert_eq!(agent.calls().len(), 1);
}

/// A voice message is no music.
#[tokio::test]
async fn an_agent_is_told_that_a_message_was_spoken() {
    let homeserver = Homeserver::shared().await;
    let (gateway, agent, user, _way) = seeing(homeserver, "").await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.speaks(&room, b"opus", 2600).await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains(r#""voice_note":{"seconds":3}"#), "{text}");
}

/// What is said in it is its text.
#[tokio::test]
async fn a_voice_message_is_written_down() {
    let homeserver = Homeserver::shared().await;
    let agent = ScriptedAgent::replying("Soup.").await;
    let transcriptions = TranscriptionServer::hearing(&["What is for dinner?"]).await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway = Gateway::builder()
        .config(&matrix(proxy.url(), &account, "streaming = \"off\""))
        .config(&agent.section())
        .config(&transcriptions.section())
        .config("[guard]\nsoft_deadline = \"off\"\n")
        .start()
        .await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;

    ada.speaks(&room, b"OggS what somebody says", 2600).await;
    ada.until_hears(&room, &account.user, 1).await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains("What is for dinner?"), "{text}");
    assert!(transcriptions.was_given(b"OggS what somebody says"));
}

/// Its sound is below the words.
#[tokio::test]
async fn an_answer_is_spoken() {
    let homeserver = Homeserver::shared().await;
    let (agent, speech) = (ScriptedAgent::replying("Soup.").await, SpeechServer::start().await);
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway = Gateway::builder()
        .config(&matrix(proxy.url(), &account, "streaming = \"off\"\nvoice = \"always\""))
        .config(&agent.section())
        .config(&speech.section())
        .config("[guard]\nsoft_deadline = \"off\"\n")
        .start()
        .await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;

    ada.says(&room, "What is for dinner?").await;
    let heard = ada.until_hears(&room, &account.user, 2).await;

    gateway.until_settled().await;
    assert_eq!(heard, ["Soup.", "voice.ogg"]);
    assert_eq!(speech.texts(), ["Soup."]);
}

/// K3: a message whose file is too large, or cannot be fetched, is answered without the file.
#[tokio::test]
async fn a_file_that_is_not_there_costs_nobody_the_text() {
    let homeserver = Homeserver::shared().await;
    let (gateway, agent, user, proxy) = seeing(homeserver, "max_attachment = \"1 KiB\"").await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.shows(&room, "large.png", &[7; 5000], "how large is this?").await;
    ada.until_hears(&room, &user, 1).await;
    let body = json!({ "errcode": "M_UNKNOWN", "error": "no" });
    proxy.fail("GET", "/media/", 10_000, Fault::Answer { status: 500, body });
    ada.shows(&room, "gone.png", PNG, "where is this?").await;
    ada.until_hears(&room, &user, 2).await;

    gateway.until_settled().await;
    let texts: Vec<_> = agent.calls().iter().map(Call::last_message).collect();
    assert!(texts[0].contains("how large is this?") && texts[0].contains("large.png"), "{texts:#?}");
    assert!(texts[1].contains("where is this?") && texts[1].contains("gone.png"), "{texts:#?}");
    assert!(texts.iter().all(|text| !text.contains("data:image/")), "{texts:#?}");
}

/// K3: a text file is inlined, even an encrypted one; a location and a sticker are described in text; the message replied
/// to is quoted.
#[tokio::test]
async fn what_is_no_text_is_told_in_words() {
    let homeserver = Homeserver::shared().await;
    let (gateway, agent, user, _way) = seeing(homeserver, "").await;
    let (ada, bob, cy) = (homeserver.person("ada").await, homeserver.person("bob").await, homeserver.human("cy").await);
    let (room, closed) = (ada.direct(&user).await, cy.direct(&user).await);
    cy.until_joined(&closed, &user).await;
    let friends = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&friends).await;
    ada.until_joined(&friends, &user).await;

    ada.attaches(&room, "notes.txt", "text/plain", b"milk, eggs").await;
    ada.until_hears(&room, &user, 1).await;
    cy.attaches(&closed, "secret.txt", "butter").await;
    cy.until_hears(&closed, &user, 1).await;
    ada.sends(&room, &json!({ "msgtype": "m.location", "body": "Berlin", "geo_uri": "geo:52.52,13.405" })).await;
    ada.until_hears(&room, &user, 2).await;
    let url = "mxc://localhost/sticker";
    ada.sends_event(&room, "m.sticker", &json!({ "body": "a waving hand", "url": url, "info": {} })).await;
    ada.until_hears(&room, &user, 3).await;
    let said = bob.says(&friends, "the moon is made of cheese").await;
    let relation = json!({ "m.in_reply_to": { "event_id": said } });
    let mentions = json!({ "user_ids": [user] });
    let reply = json!({ "msgtype": "m.text", "body": "is that so?", "m.relates_to": relation, "m.mentions": mentions });
    ada.sends(&friends, &reply).await;
    ada.until_hears(&friends, &user, 1).await;

    gateway.until_settled().await;
    let texts: Vec<_> = agent.calls().iter().map(Call::last_message).collect();
    let expected = [&["notes.txt", "milk, eggs"][..], &["secret.txt", "butter"], &["Berlin", "52.52"], &["waving"]];
    for (text, words) in texts.iter().zip(expected) {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    assert!(texts[4].contains("is that so?") && texts[4].contains("made of cheese"), "{texts:#?}");
}
