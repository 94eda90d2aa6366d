//! serenity connects, leaves and reconnects.

use std::collections::HashSet;

use rejoinder_discord_server::{DiscordServer, GatewayAction};
use serde_json::json;
use serenity::all::{Event, GatewayIntents};

use super::client::{Judge, http, number};

#[tokio::test]
async fn a_client_is_told_of_its_guilds() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;

    let judge = Judge::connects(&server).await;

    let (id, channels) = judge
        .sees("its guild", |event| match event {
            Event::GuildCreate(event) => Some((event.guild.id, event.guild.channels)),
            _ => None,
        })
        .await;
    assert_eq!(id.get(), number(guild.id()));
    assert_eq!(channels.keys().map(|id| id.get()).collect::<HashSet<_>>(), HashSet::from([number(channel.id())]));
    assert_eq!(server.sessions().await.intents, GatewayIntents::all().bits());
}

#[tokio::test]
async fn a_client_is_told_of_a_guild_it_is_invited_to_later_and_of_its_end() {
    let server = DiscordServer::start().await;
    let judge = Judge::connects(&server).await;

    let guild = server.guild("Home").await;
    let created = |event| matches!(event, Event::GuildCreate(_)).then_some(());
    judge.sees("a guild", created).await;

    guild.kicks_the_bot().await;
    let deleted = |event| match event {
        Event::GuildDelete(event) => Some(event.guild.unavailable),
        _ => None,
    };
    assert!(!judge.sees("the guild's end", deleted).await);
}

/// E1.
#[tokio::test]
async fn what_was_said_while_a_client_was_cut_off_is_replayed() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;

    server.gateway(GatewayAction::Dispatches(false)).await;
    for number in 0..3 {
        ada.says(&channel, &format!("missed {number}")).await;
    }
    server.gateway(GatewayAction::Abort).await;

    for number in 0..3 {
        assert_eq!(judge.hears().await.content, format!("missed {number}"));
    }
    judge.sees("RESUMED", |event| matches!(event, Event::Resumed(_)).then_some(())).await;
    let sessions = server.sessions().await;
    assert_eq!((sessions.identifies, sessions.resumes), (1, 1));
}

#[tokio::test]
async fn what_was_said_before_a_new_session_is_only_in_the_history() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;
    let before = ada.says(&channel, "before").await;
    assert_eq!(judge.hears().await.content, "before");

    server.gateway(GatewayAction::Forget).await;
    ada.says(&channel, "missed").await;
    server.gateway(GatewayAction::Abort).await;
    judge.sees("a new READY", |event| matches!(event, Event::Ready(_)).then_some(())).await;
    ada.says(&channel, "after").await;

    assert_eq!(judge.hears().await.content, "after");
    let target = serenity::all::MessagePagination::After(number(&before.id).into());
    let missed = judge.http.get_messages(number(channel.id()).into(), Some(target), None).await.expect("the history");
    let missed: Vec<_> = missed.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(missed, ["after", "missed"]);
    assert_eq!(server.sessions().await.resumes_refused, 1);
}

#[tokio::test]
async fn a_client_follows_a_request_to_reconnect_and_an_invalid_session() {
    let server = DiscordServer::start().await;
    let judge = Judge::connects(&server).await;

    server.gateway(GatewayAction::Reconnect).await;
    judge.sees("RESUMED", |event| matches!(event, Event::Resumed(_)).then_some(())).await;

    server.gateway(GatewayAction::InvalidSession { resumable: false }).await;
    judge.sees("a new READY", |event| matches!(event, Event::Ready(_)).then_some(())).await;
    assert_eq!(server.sessions().await.identifies, 2);
}

/// F4.
#[tokio::test]
async fn a_client_whose_heartbeats_are_not_acknowledged_comes_back() {
    let server = DiscordServer::start().await;
    server.set(json!({ "heartbeat_interval": 0.2 })).await;
    let judge = Judge::connects(&server).await;

    server.gateway(GatewayAction::Acknowledges(false)).await;

    let anew = |event| matches!(event, Event::Resumed(_) | Event::Ready(_)).then_some(());
    judge.sees("a new connection", anew).await;
}

#[tokio::test]
async fn a_client_that_asks_for_a_privileged_intent_without_having_it_is_sent_away() {
    let server = DiscordServer::start().await;
    server.set(json!({ "message_content": false })).await;

    let _judge = Judge::connects_with(&server, GatewayIntents::all()).await;

    let refused = async || Some(server.sessions().await.refused_with).filter(|codes| !codes.is_empty());
    assert_eq!(server.until("the close code", refused).await, [4014]);
}

#[tokio::test]
async fn without_the_intent_only_what_is_meant_for_the_bot_has_content() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects_with(&server, GatewayIntents::non_privileged()).await;
    server.until_connected().await;

    ada.says(&channel, "to everybody").await;
    ada.mentions(&channel, "to you").await;
    ada.dm("between us").await;

    assert_eq!(judge.hears().await.content, "");
    assert_eq!(judge.hears().await.content, format!("{} to you", server.bot_mention()));
    assert_eq!(judge.hears().await.content, "between us");
}

#[tokio::test]
async fn every_identify_is_counted() {
    let server = DiscordServer::start().await;
    server.set(json!({ "identify_remaining": 1, "identify_reset_after": 60 })).await;
    let judge = Judge::connects(&server).await;

    let limit = http(&server).get_bot_gateway().await.expect("the Gateway's limits").session_start_limit;

    assert_eq!((limit.remaining, limit.total, limit.reset_after), (0, 1000, 60_000));
    judge.leaves().await;
}

#[tokio::test]
async fn a_client_that_leaves_with_1000_has_no_session_any_more() {
    let server = DiscordServer::start().await;
    let judge = Judge::connects(&server).await;

    judge.leaves().await;

    let gone = async || Some(server.sessions().await).filter(|now| now.connected == 0);
    let sessions = server.until("the client is gone", gone).await;
    assert_eq!((sessions.closed_with, sessions.sessions), (vec![1000], 0));
}
