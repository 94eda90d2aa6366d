//! Many conversations at once.

use rejoinder_discord_server::DiscordServer;
use rejoinder_tests::ScriptedAgent;

use crate::{between_with, hears};

const CROWD: usize = 400;

/// B11, E4, E6: hundreds of concurrent conversations are each answered once, while one of them floods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_at_once_are_each_answered_once() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between_with(&server, &agent, "streaming = \"off\"")
        .config("[guard]\nsoft_deadline = \"off\"\n")
        // What remains when the operator allows the flood.
        .config("[limits]\nturns_per_minute = \"off\"\nwaiting_turns = \"off\"\n[queue]\ncap = 1000\n")
        .start()
        .await;
    let (crowd, eve) = (server.crowd(CROWD).await, server.crowd(1).await);

    server.all_say(&crowd, 1, "one {}").await;
    server.all_say(&eve, CROWD, "flood {}").await;
    server.all_say(&crowd, 1, "two {}").await;
    for (_, chat) in &crowd {
        hears(&server, chat, "echo two 0").await;
    }
    hears(&server, &eve[0].1, &format!("echo flood {}", CROWD - 1)).await;
    gateway.until_settled().await;

    for (_, chat) in &crowd {
        assert_eq!(server.bot_texts(chat).await, ["echo one 0", "echo two 0"]);
    }
    let expected: Vec<_> = (0..CROWD).map(|n| format!("echo flood {n}")).collect();
    assert_eq!(server.bot_texts(&eve[0].1).await, expected);
}
