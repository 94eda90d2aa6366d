//! Servers and the other participants in them.

use rejoinder_discord_server::DiscordServer;
use rejoinder_tests::{Call, ScriptedAgent};
use serde_json::json;

use crate::{between, between_with, hears};

/// B5, L4: messages directed at the bot are answered with a reply to each; others are ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_is_answered_when_it_asks() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Here.").await);
    let gateway = between(&server, &agent).start().await;
    let guild = server.guild("Friends").await;
    let general = guild.channel("general").await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);

    ada.says(&general, "nice weather").await;
    ada.says(&general, "@everyone look at this").await;
    ada.says(&general, &format!("<@{}> are you there?", bob.id())).await;
    let mention = ada.mentions(&general, "are you there?").await;
    let answer = hears(&server, &general, "Here.").await;
    let reply = bob.replies(&answer, "thank you").await;
    server.until_bot_texts(&general, 2).await;
    let role = ada.says(&general, &format!("<@&{}> one more", guild.bot_role())).await;
    server.until_bot_texts(&general, 3).await;

    gateway.until_settled().await;
    let answers: Vec<_> = server.visible(&general).await.into_iter().filter(|message| message.ours).collect();
    let asked: Vec<_> = answers.into_iter().map(|answer| answer.reply_to).collect();
    assert_eq!(asked, [Some(mention.id), Some(reply.id), Some(role.id)]);
    assert_eq!(agent.calls().len(), 3);
}

/// B5: with `group_policy = "all"` the agent gets every message, but only those directed at the bot are owed an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_overheard_is_told_and_owed_nothing() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("NO_REPLY").await);
    let gateway = between_with(&server, &agent, "group_policy = \"all\"").start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;

    ada.says(&general, "nice weather").await;
    agent.until_called(1).await;
    ada.mentions(&general, "what do you think?").await;
    hears(&server, &general, crate::SILENT).await;

    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&general).await, [crate::SILENT]);
    assert!(agent.calls()[0].last_message().contains("nice weather"));
}

/// O1: messages from other bots and from webhooks are owed nothing, and no agent runs for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_bots_do_not_answer_each_other_for_ever() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between(&server, &agent).start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, chatterbox) = (server.person("Ada").await, server.another_bot("Chatterbox").await);

    chatterbox.mentions(&general, "hello, colleague").await;
    chatterbox.dm("hello, colleague").await;
    ada.posts_by_webhook(&general, &format!("{} hello", server.bot_mention())).await;
    ada.mentions(&general, "hello").await;
    server.until_bot_texts(&general, 1).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert_eq!(server.bot_texts(&general).await.len(), 1);
}

/// O1: a bot on `allow_bots` is answered like a person; the gateway's own messages never are.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bot_that_is_allowed_is_answered() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello, colleague.").await);
    let chatterbox = server.another_bot("Chatterbox").await;
    let keys = format!("allow_bots = [\"{}\"]", chatterbox.id());
    let gateway = between_with(&server, &agent, &keys).start().await;
    let general = server.guild("Friends").await.channel("general").await;

    chatterbox.mentions(&general, "hello").await;
    hears(&server, &general, "Hello, colleague.").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
}

/// A reaction to an answer is owed nothing. It is a turn only with `tell_reactions`; without, it is told with the next one, unless a
/// moderator has removed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_to_an_answer_owes_nothing() {
    for (tells, is_removed) in [(false, false), (false, true), (true, false)] {
        let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
        let gateway = between_with(&server, &agent, &format!("tell_reactions = {tells}")).start().await;
        let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
        let chat = ada.direct().await;

        ada.dm("hello").await;
        let answer = hears(&server, &chat, "Hello.").await;
        gateway.until_settled().await;
        ada.reacts(&answer, "👍").await;
        if is_removed {
            let all = json!({ "channel_id": answer.channel_id, "message_id": answer.id });
            server.event("MESSAGE_REACTION_REMOVE_ALL", &all).await;
        }
        // Events arrive in order: once Bob is answered, the reaction was received.
        bob.dm("hello").await;
        hears(&server, &bob.direct().await, "Hello.").await;
        let calls = if tells { 3 } else { 2 };
        agent.until_called(calls).await;

        gateway.until_settled().await;
        assert_eq!(agent.calls().len(), calls);
        ada.dm("and now?").await;
        agent.until_called(calls + 1).await;
        gateway.until_settled().await;
        let told: Vec<_> = agent.calls().iter().map(Call::last_answer).filter(|told| !told.is_null()).collect();
        let seen = json!({ "state": "seen", "reactions": [{ "emoji": "👍" }] });
        assert_eq!(told, if tells || is_removed { vec![] } else { vec![seen] });
    }
}

/// Discord does not say whose message it was, and the gateway has been started again since.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_that_is_removed_after_a_restart_is_not_told() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let mut gateway = between(&server, &agent).start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let chat = ada.direct().await;
    ada.dm("hello").await;
    let answer = hears(&server, &chat, "Hello.").await;
    gateway.until_settled().await;
    ada.reacts(&answer, "👍").await;
    bob.dm("hello").await;
    hears(&server, &bob.direct().await, "Hello.").await;
    gateway.until_settled().await;
    gateway.kill();
    gateway.restart().await;

    ada.removes_reaction(&answer, "👍").await;
    ada.dm("and now?").await;
    agent.until_called(3).await;

    gateway.until_settled().await;
    assert!(agent.calls()[2].last_answer()["reactions"].is_null(), "{:?}", agent.calls()[2].last_answer());
}

/// A server that invites the bot at run time is answered from then on; being removed from one causes no trouble.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn servers_come_and_go() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::echoing().await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;

    let late = server.guild("Latecomers").await;
    let general = late.channel("general").await;
    ada.mentions(&general, "welcome").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;
    late.kicks_the_bot().await;
    ada.dm("still there?").await;
    hears(&server, &ada.direct().await, "echo still there?").await;

    gateway.until_settled().await;
    assert!(gateway.readiness().await.0);
}

/// E4: malformed events and events of an unknown kind block nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_poisonous_event_blocks_nobody() {
    let (server, agent) = (DiscordServer::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&server, &agent).start().await;
    let ada = server.person("Ada").await;
    let chat = ada.direct().await;

    server.event("MESSAGE_CREATE", &json!({ "id": "not a number", "channel_id": chat.id(), "author": [] })).await;
    server.event("MESSAGE_CREATE", &json!({ "channel_id": chat.id() })).await;
    server.event("INTERACTION_CREATE", &json!({ "id": "1", "type": 2, "token": "t", "data": "nothing" })).await;
    server.event("GUILD_CREATE", &json!({ "id": [], "channels": 7 })).await;
    server.event("A_KIND_FROM_THE_FUTURE", &json!({ "anything": true })).await;
    ada.dm("hello").await;
    hears(&server, &chat, "Hello.").await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert_eq!(server.sessions().await.connections, 1);
}
