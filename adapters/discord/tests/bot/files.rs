//! Files that people sent.

use std::sync::Arc;

use rejoinder_config::Size;
use rejoinder_core::{Attachment, ChannelAdapter, ChannelId, FetchError, SystemClock};
use rejoinder_discord::{Discord, DiscordSection};
use rejoinder_discord_server::DiscordServer;

use crate::support::{http, options};

#[tokio::test]
async fn a_file_is_fetched_as_far_as_the_operator_and_the_core_allow_and_from_discord_alone() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let sent = ada.sends_files(&ada.direct().await, "look", &[("cat.txt", b"miaow")]).await;
    let file =
        |url: &str| Attachment { name: "cat.txt".to_owned(), media_type: "text/plain".to_owned(), url: url.to_owned() };
    let fetched = async |most: u32, limit: usize, url: &str| {
        let options = DiscordSection { max_attachment: Size::of_bytes(most), ..options(&server) };
        let channel = ChannelId::new("discord", "main");
        let discord = Discord::new(channel, options, Arc::new(SystemClock), http());
        discord.fetch(&file(url), limit).await
    };
    let url = &sent.attachments[0].url;

    assert_eq!(fetched(5, 5, url).await.expect("it is small enough"), b"miaow");
    assert!(matches!(fetched(4, 5, url).await, Err(FetchError::TooLarge { limit: 4 })));
    assert!(matches!(fetched(5, 3, url).await, Err(FetchError::TooLarge { limit: 3 })));
    assert!(matches!(fetched(5, 5, "http://127.0.0.1:1/cat.txt").await, Err(FetchError::NotOurs(_))));
}
