//! Threads and forums.

use rejoinder_discord::DiscordSection;
use rejoinder_discord_server::DiscordServer;

use crate::support::{Gateway, options};

/// L2.
#[tokio::test]
async fn a_thread_is_answered_in_the_thread() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let thread = ada.opens_thread(&general, "aside").await;

    ada.mentions(&thread, "say here").await;

    assert_eq!(server.until_bot_texts(&thread, 1).await, ["here"]);
    let conversation = gateway.until_agent_has(1).await.place.conversation;
    assert_eq!((&*conversation.chat, conversation.thread.as_deref()), (general.id(), Some(thread.id())));
    gateway.stop().await;
}

#[tokio::test]
async fn a_post_of_a_forum_is_answered_in_the_post() {
    let server = DiscordServer::start().await;
    let forum = server.guild("Friends").await.forum("questions").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    let post = ada.posts(&forum, "A question", &format!("{} say posted", server.bot_mention())).await;

    assert_eq!(server.until_bot_texts(&post, 1).await, ["posted"]);
    gateway.stop().await;
}

/// A restarted gateway fetches a thread that the earlier run knew.
#[tokio::test]
async fn a_thread_is_known_after_a_restart() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let thread = ada.opens_thread(&general, "aside").await;
    ada.mentions(&thread, "say one").await;
    server.until_bot_texts(&thread, 1).await;
    gateway.until_settled().await;
    let before = gateway.until_agent_has(1).await.place.session;

    let gateway = gateway.shut_down().await.restart(&server).await;
    ada.mentions(&thread, "say two").await;

    server.until_bot_texts(&thread, 2).await;
    assert_eq!(gateway.until_agent_has(1).await.place.session, before);
    gateway.stop().await;
}

#[tokio::test]
async fn a_mention_can_be_answered_in_a_thread_of_its_own() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::with(DiscordSection { auto_thread: true, ..options(&server) }).await;
    gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;

    let asked = ada.mentions(&general, "say one").await;
    let thread = server.until("a thread", async || {
        server.visible(&general).await.into_iter().find(|message| message.id == asked.id)?.thread
    });
    let thread = server.channel(&thread.await);
    assert_eq!(server.until_bot_texts(&thread, 1).await, ["one"]);
    ada.says(&thread, "say two").await;

    assert_eq!(server.until_bot_texts(&thread, 2).await, ["one", "two"]);
    assert_eq!(server.bot_texts(&general).await, Vec::<String>::new());
    let turns = gateway.turns();
    assert_eq!(turns[0].place.session, turns[1].place.session, "it is one conversation");
    gateway.stop().await;
}

#[tokio::test]
async fn where_no_thread_can_be_opened_the_answer_stays_in_the_channel() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    general.denies(&["create_public_threads"]).await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::with(DiscordSection { auto_thread: true, ..options(&server) }).await;
    gateway.until_health("it is connected", |health| health.inbound_at.is_some()).await;

    let asked = ada.mentions(&general, "say one").await;

    assert_eq!(server.until_bot_texts(&general, 1).await, ["one"]);
    let answer = server.visible(&general).await.pop().expect("an answer");
    assert_eq!(answer.reply_to, Some(asked.id));
    gateway.stop().await;
}

#[tokio::test]
async fn an_archived_thread_is_answered_in() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let thread = ada.opens_thread(&general, "aside").await;
    ada.mentions(&thread, "wait for it").await;
    gateway.until_agent_has(1).await;

    thread.is_archived(false).await;
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&thread, 1).await, ["for it and that is all."]);
    gateway.stop().await;
}
