//! discord.py, the most popular client library, has a conversation with the server.

use std::{path::Path, process::Stdio};

use rejoinder_discord_server::DiscordServer;
use serde_json::json;
use tokio::process::Command;

#[tokio::test]
async fn discord_py_holds_a_conversation() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;
    let ada = server.person("Ada").await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("discord/discord_py.py");
    let mut judge = Command::new(rejoinder_discord_server::python())
        .arg("-B")
        .arg(script)
        .args([server.api_url(), server.gateway_url(), server.token(), guild.id()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("discord.py starts");
    server.until_connected().await;

    ada.slash(&channel, "ask", json!({ "text": "are you there?" })).await;
    assert_eq!(server.until_bot_texts(&channel, 1).await, ["are you there? Yes."]);

    let asked = ada.mentions(&channel, "buttons").await;
    let question = server
        .until("the question", async || {
            let visible = server.visible(&channel).await;
            visible
                .into_iter()
                .find(|message| message.reply_to.as_ref() == Some(&asked.id) && !message.buttons.is_empty())
        })
        .await;
    ada.clicks(&question, "Yes").await;
    let edited = async || server.visible(&channel).await.into_iter().find(|message| message.content == "You said Yes");
    assert!(server.until("the pick", edited).await.buttons.is_empty());

    ada.sends_files(&channel, "file", &[("notes.txt", b"notes")]).await;
    let sent_back = async || {
        let mut files = server.visible(&channel).await.into_iter().filter(|message| message.ours);
        files.find_map(|message| message.attachments.first().cloned())
    };
    let file = server.until("the returned file", sent_back).await;
    assert_eq!((file.name.as_str(), file.size), ("back.txt", 5));

    let message = ada.says(&channel, "thread").await;
    let thread = server.channel(&message.id);
    assert_eq!(server.until_bot_texts(&thread, 1).await, ["in the thread"]);

    channel.denies(&["send_messages"]).await;
    ada.dm("forbidden").await;
    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["Forbidden 50013"]);

    ada.dm("bye").await;
    let status = judge.wait().await.expect("discord.py ends");
    assert!(status.success(), "discord.py ended with {status}");
}
