//! Files and other messages without text.

use rejoinder_discord_server::{DiscordServer, Fault};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, SpeechServer, TranscriptionServer};
use serde_json::json;

use crate::{discord, finds, hears};

/// A minimal picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// A gateway with an agent that accepts images and numbers its answers.
async fn seeing(keys: &str) -> (DiscordServer, ScriptedAgent, Gateway) {
    let server = DiscordServer::start().await;
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway =
        Gateway::builder().config(&discord(&server, keys)).config(&agent.section_with("images = true")).start().await;
    (server, agent, gateway)
}

/// K3: several pictures and their text reach a multimodal model as one turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pictures_are_seen() {
    let (server, agent, gateway) = seeing("").await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.sends_files(&chat, "what are these?", &[("a.png", PNG), ("b.png", PNG), ("c.png", PNG)]).await;
    hears(&server, &chat, "answer 0").await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains("what are these?"), "{text}");
    assert_eq!(text.matches("data:image/").count(), 3, "{text}");
    assert_eq!(agent.calls().len(), 1);
}

/// A voice message is no music.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agent_is_told_that_a_message_was_spoken() {
    let (server, agent, gateway) = seeing("").await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.sends_voice(&chat, b"opus", 2.6).await;
    hears(&server, &chat, "answer 0").await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains(r#""voice_note":{"seconds":3}"#), "{text}");
}

/// What is said in it is its text.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_voice_message_is_written_down() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Soup.").await);
    let transcriptions = TranscriptionServer::hearing(&["What is for dinner?"]).await;
    let gateway = Gateway::builder().config(&discord(&server, "")).config(&agent.section());
    let gateway = gateway.config(&transcriptions.section()).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.sends_voice(&chat, b"OggS what somebody says", 2.6).await;
    hears(&server, &chat, "Soup.").await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains("What is for dinner?"), "{text}");
    assert!(transcriptions.was_given(b"OggS what somebody says"));
}

/// Its sound is below the words.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_is_spoken() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Soup.").await);
    let speech = SpeechServer::start().await;
    let gateway = Gateway::builder().config(&discord(&server, "voice = \"always\"")).config(&agent.section());
    let gateway = gateway.config(&speech.section()).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.dm("What is for dinner?").await;
    let shown = finds(&server, &chat, "the sound", |message| message.ours && !message.attachments.is_empty()).await;
    gateway.until_settled().await;

    let names: Vec<_> = shown.attachments.iter().map(|file| &*file.name).collect();
    assert_eq!((&*shown.content, names), ("", vec!["voice.ogg"]));
    assert_eq!(server.bot_texts(&chat).await, ["Soup.", ""]);
    assert_eq!(speech.texts(), ["Soup."]);
}

/// K3: a message with a file that is too large is answered without the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_too_large_costs_nobody_the_text() {
    let (server, agent, gateway) = seeing("max_attachment = \"1 KiB\"").await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    ada.sends_files(&chat, "what is this?", &[("film.mkv", &[7; 5000])]).await;
    hears(&server, &chat, "answer 0").await;

    gateway.until_settled().await;
    let text = agent.calls()[0].last_message();
    assert!(text.contains("what is this?") && text.contains("film.mkv"), "{text}");
}

/// K3: a text file is inlined, a sticker is described in text, and the message replied to is quoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_text_is_told_in_words() {
    let (server, agent, gateway) = seeing("").await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let chat = ada.direct().await;
    let general = server.guild("Friends").await.channel("general").await;

    ada.sends_files(&chat, "", &[("notes.txt", b"milk, eggs")]).await;
    hears(&server, &chat, "answer 0").await;
    ada.sends_sticker(&chat, "wave").await;
    hears(&server, &chat, "answer 1").await;
    let said = bob.says(&general, "the moon is made of cheese").await;
    ada.replies(&said, &format!("{} is that so?", server.bot_mention())).await;
    hears(&server, &general, "answer 2").await;

    gateway.until_settled().await;
    let texts: Vec<_> = agent.calls().iter().map(rejoinder_tests::Call::last_message).collect();
    assert!(texts[0].contains("milk, eggs"), "{texts:#?}");
    assert!(texts[1].contains("wave"), "{texts:#?}");
    let told = ["is that so?", "made of cheese", "\"name\":\"Bob\""];
    assert!(told.iter().all(|words| texts[2].contains(words)), "{texts:#?}");
}

/// K3, D1. Files of any kind are one message with the words, and the message is shown once although the gateway is killed while
/// Discord has it and the gateway does not know it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_are_one_message_with_the_words_also_over_a_kill() {
    let server = DiscordServer::start().await;
    let text = |name: &str| json!({ "name": name, "type": "text/plain", "data": "aGVsbG8=" });
    let answer = json!({ "reply": { "text": "Here they are.", "attachments": [text("a.txt"), text("b.txt")] } });
    let command = json!(["sh", "-c", format!("cat > /dev/null; echo '{answer}'")]);
    let agent = format!("[agents.main]\nkind = \"command\"\ncommand = {command}\n");
    let mut gateway = Gateway::builder().config(&discord(&server, "")).config(&agent).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;
    server.fault(Fault::on("POST", "/channels/*/messages").executed_then_silent()).await;

    ada.dm("show me").await;
    hears(&server, &chat, "Here they are.").await;
    gateway.kill();
    gateway.restart().await;
    gateway.until_settled().await;

    let shown = finds(&server, &chat, "the files", |message| message.ours && !message.attachments.is_empty()).await;
    let names: Vec<_> = shown.attachments.iter().map(|file| &*file.name).collect();
    assert_eq!((&*shown.content, names), ("Here they are.", vec!["a.txt", "b.txt"]));
    assert_eq!(server.bot_texts(&chat).await, ["Here they are."]);
}
