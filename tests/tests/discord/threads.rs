//! Threads and forums.

use rejoinder_discord_server::{Channel, DiscordServer, Message};
use rejoinder_tests::ScriptedAgent;

use crate::{DEFERRAL, between, between_with, hears};

/// L2: each thread is a conversation of its own, and its answers stay in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thread_is_a_conversation_of_its_own() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Here.").await);
    let gateway = between(&server, &agent).start().await;
    let guild = server.guild("Family").await;
    let (general, forum) = (guild.channel("general").await, guild.forum("questions").await);
    let ada = server.person("Ada").await;
    let (trips, food) = (ada.opens_thread(&general, "Trips").await, ada.opens_thread(&general, "Food").await);

    ada.mentions(&trips, "where?").await;
    ada.mentions(&food, "what?").await;
    ada.mentions(&general, "who?").await;
    let post = ada.posts(&forum, "A question", &format!("{} why?", server.bot_mention())).await;

    for place in [&trips, &food, &general, &post] {
        hears(&server, place, "Here.").await;
    }
    gateway.until_settled().await;
    let words = ["where?", "what?", "who?", "why?"];
    for call in agent.calls() {
        let messages = call.body["messages"].to_string();
        let mixed = words.iter().filter(|word| messages.contains(**word)).count();
        assert_eq!(mixed, 1, "conversations are mixed: {messages}");
    }
    for place in [&trips, &food, &general, &post] {
        assert_eq!(server.bot_texts(place).await, ["Here."]);
    }
}

/// L2: a thread keeps its conversation after a restart, and is reopened if it was archived.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thread_goes_on_after_a_restart() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let mut gateway = between(&server, &agent).start().await;
    let general = server.guild("Family").await.channel("general").await;
    let ada = server.person("Ada").await;
    let aside = ada.opens_thread(&general, "aside").await;

    ada.mentions(&aside, "before").await;
    server.until_bot_texts(&aside, 1).await;
    gateway.until_settled().await;
    gateway.stop().await;
    gateway.restart().await;
    ada.mentions(&aside, "after").await;
    aside.is_archived(false).await;
    server.until_bot_texts(&aside, 2).await;

    gateway.until_settled().await;
    let messages = agent.calls().last().expect("two calls").body["messages"].to_string();
    assert!(messages.contains("before") && messages.contains("after"), "the conversation was forgotten: {messages}");
    assert!(server.bot_texts(&general).await.is_empty());
}

/// The thread that was started from a message.
async fn thread_of(server: &DiscordServer, channel: &Channel, message: &Message) -> Channel {
    let thread = server
        .until("a thread", async || server.visible(channel).await.into_iter().find(|it| it.id == message.id)?.thread);
    server.channel(&thread.await)
}

/// L2, A10: with `auto_thread` a mention is answered in a thread of its own, deferral included; the thread continues
/// without mentions.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_mention_can_be_answered_in_a_thread_of_its_own() {
    let server = DiscordServer::start().await;
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let gateway =
        between_with(&server, &agent, "auto_thread = true").config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let general = server.guild("Family").await.channel("general").await;
    let ada = server.person("Ada").await;

    let asked = ada.mentions(&general, "where to?").await;
    let thread = thread_of(&server, &general, &asked).await;
    let deferral = hears(&server, &thread, DEFERRAL).await;
    release.release_one();
    let answer = hears(&server, &thread, "At last.").await;
    ada.says(&thread, "and how?").await;
    hears(&server, &thread, "echo and how?").await;

    gateway.until_settled().await;
    assert_eq!(answer.id, deferral.id);
    assert!(server.bot_texts(&general).await.is_empty());
    let messages = agent.calls()[1].body["messages"].to_string();
    assert!(messages.contains("where to?"), "it is another conversation: {messages}");
}

/// A19: without the permission to create a thread, the answer is sent to the channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_no_thread_can_be_opened_the_answer_stays_in_the_channel() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Here.").await);
    let gateway = between_with(&server, &agent, "auto_thread = true").start().await;
    let general = server.guild("Family").await.channel("general").await;
    general.denies(&["create_public_threads"]).await;
    let ada = server.person("Ada").await;

    let asked = ada.mentions(&general, "where?").await;
    let answer = hears(&server, &general, "Here.").await;

    gateway.until_settled().await;
    assert_eq!(answer.reply_to, Some(asked.id));
}

/// D1: a crash before or after a thread is created leaves one thread with one answer.
#[rstest::rstest]
#[case::before_it("attempt_started:1")]
#[case::after_it("attempt_ended:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_around_the_opening_of_a_thread_leaves_one_answer(#[case] point: &str) {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Here.").await);
    let keys = "auto_thread = true\nstreaming = \"off\"";
    let mut gateway = between_with(&server, &agent, keys).prepare();
    let general = server.guild("Family").await.channel("general").await;
    let ada = server.person("Ada").await;

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let asked = ada.mentions(&general, "where?").await;
    gateway.until_crashed().await;
    gateway.restart().await;
    let thread = thread_of(&server, &general, &asked).await;
    hears(&server, &thread, "Here.").await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&thread).await, ["Here."]);
    assert!(server.bot_texts(&general).await.is_empty());
}
