//! The Gateway's close codes and sessions, over a bare WebSocket.

use rejoinder_discord_server::{DiscordServer, GatewayAction};
use serde_json::json;

use crate::bare::{ALL, Bare, Received, identify, resume};

/// <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>
#[tokio::test]
async fn what_a_client_does_wrong_has_a_code() {
    let server = DiscordServer::start().await;
    let token = server.token();
    let wrong = [
        (4001, json!({ "op": 77 }).to_string()),
        (4002, "{".to_owned()),
        (4002, json!({ "op": 2, "d": {} }).to_string()),
        (4003, json!({ "op": 3, "d": {} }).to_string()),
        (4004, json!({ "op": 2, "d": { "token": "another", "intents": 1 } }).to_string()),
        (4010, json!({ "op": 2, "d": { "token": token, "intents": 1, "shard": [2, 1] } }).to_string()),
        (4013, json!({ "op": 2, "d": { "token": token, "intents": 1_u64 << 40 } }).to_string()),
    ];
    for (code, text) in wrong {
        let mut bare = Bare::connects(&server).await;
        bare.sends_text(&text).await;
        assert_eq!(bare.end().await, code, "{text}");
    }

    let mut twice = Bare::identifies(&server, ALL).await.0;
    twice.sends(&identify(&server, ALL)).await;
    assert_eq!(twice.end().await, 4005);

    let mut old = Bare::connects_to(&format!("{}/?v=6&encoding=json", server.gateway_url())).await;
    assert_eq!(old.end().await, 4012);

    server.set(json!({ "gateway_commands": 3 })).await;
    let mut busy = Bare::identifies(&server, ALL).await.0;
    for _ in 0..3 {
        busy.sends(&json!({ "op": 1, "d": null })).await;
    }
    assert_eq!(busy.end().await, 4008);

    server.set(json!({ "members": false })).await;
    let mut curious = Bare::connects(&server).await;
    curious.sends(&identify(&server, 1 << 1)).await;
    assert_eq!(curious.end().await, 4014);

    server.set(json!({ "identify_remaining": 0 })).await;
    let mut one_too_many = Bare::connects(&server).await;
    one_too_many.sends(&identify(&server, 1)).await;
    assert_eq!(one_too_many.end().await, 4004);
}

#[tokio::test]
async fn a_heartbeat_is_acknowledged_unless_the_server_is_told_not_to() {
    let server = DiscordServer::start().await;
    let mut bare = Bare::identifies(&server, ALL).await.0;

    bare.sends(&json!({ "op": 1, "d": 1 })).await;
    assert_eq!(bare.payload().await["op"], 11);

    server.gateway(GatewayAction::Acknowledges(false)).await;
    bare.sends(&json!({ "op": 1, "d": 1 })).await;
    server.gateway(GatewayAction::Reconnect).await;
    assert_eq!(bare.payload().await["op"], 7);
    assert_eq!(server.sessions().await.heartbeats, 2);
}

#[tokio::test]
async fn a_resume_replays_what_came_after_the_number_it_names() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let (mut bare, session) = Bare::identifies(&server, ALL).await;
    ada.dm("one").await;
    assert_eq!(bare.event().await, ("MESSAGE_CREATE".to_owned(), 2));
    ada.dm("two").await;
    assert_eq!(bare.event().await, ("MESSAGE_CREATE".to_owned(), 3));
    bare.closes(4000).await;
    ada.dm("three").await;

    let mut back = Bare::connects(&server).await;
    back.sends(&resume(&server, &session, 2)).await;

    let replayed = [back.payload().await, back.payload().await];
    assert_eq!(replayed.map(|event| event["d"]["content"].clone()), ["two", "three"]);
    assert_eq!(back.event().await, ("RESUMED".to_owned(), 5));
    ada.dm("four").await;
    assert_eq!(back.event().await, ("MESSAGE_CREATE".to_owned(), 6));
}

#[tokio::test]
async fn a_session_ends_with_1000_and_1001_and_not_with_other_codes() {
    let server = DiscordServer::start().await;
    for (code, resumes) in [(1000, false), (1001, false), (4000, true), (3000, true)] {
        let (mut bare, session) = Bare::identifies(&server, ALL).await;
        bare.closes(code).await;

        let mut back = Bare::connects(&server).await;
        back.sends(&resume(&server, &session, 1)).await;

        let answer = back.payload().await;
        if resumes {
            assert_eq!(answer["t"], "RESUMED", "{code}");
        } else {
            assert_eq!((&answer["op"], &answer["d"]), (&json!(9), &json!(false)), "{code}");
        }
    }
}

#[tokio::test]
async fn a_resume_from_the_future_or_too_late_is_refused() {
    let server = DiscordServer::start().await;
    let (mut bare, session) = Bare::identifies(&server, ALL).await;
    bare.closes(4000).await;

    let mut early = Bare::connects(&server).await;
    early.sends(&resume(&server, &session, 99)).await;
    assert_eq!(early.end().await, 4007);

    let (mut bare, session) = Bare::identifies(&server, ALL).await;
    bare.closes(4000).await;
    server.set(json!({ "session_lifetime": 0 })).await;
    let mut late = Bare::connects(&server).await;
    late.sends(&resume(&server, &session, 1)).await;
    assert_eq!(late.payload().await["op"], 9);
    // The same connection may start a new session.
    late.sends(&identify(&server, ALL)).await;
    assert_eq!(late.payload().await["t"], "READY");
}

#[tokio::test]
async fn an_identify_can_come_too_soon_after_another() {
    let server = DiscordServer::start().await;
    server.set(json!({ "identify_interval": 3600 })).await;
    let _first = Bare::identifies(&server, ALL).await;

    let mut second = Bare::connects(&server).await;
    second.sends(&identify(&server, ALL)).await;

    assert_eq!(second.payload().await["op"], 9);
}

#[tokio::test]
async fn the_server_closes_with_the_code_it_is_told_and_cuts_when_it_is_told() {
    let server = DiscordServer::start().await;
    for code in [4000, 4008, 1001] {
        let mut bare = Bare::identifies(&server, ALL).await.0;
        server.gateway(GatewayAction::Close(code)).await;
        assert_eq!(bare.end().await, code);
    }
    let (mut bare, session) = Bare::identifies(&server, ALL).await;
    server.gateway(GatewayAction::Close(4009)).await;
    assert_eq!(bare.end().await, 4009);
    let mut back = Bare::connects(&server).await;
    back.sends(&resume(&server, &session, 1)).await;
    assert_eq!(back.payload().await["op"], 9, "4009 must end the session");

    let mut bare = Bare::identifies(&server, ALL).await.0;
    server.gateway(GatewayAction::Abort).await;
    assert_eq!(bare.next().await, Received::Closed(1006));
}

#[tokio::test]
async fn a_silent_connection_loses_nothing_for_the_resume() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let (mut bare, session) = Bare::identifies(&server, ALL).await;

    server.gateway(GatewayAction::Dispatches(false)).await;
    ada.dm("unheard").await;
    bare.sends(&json!({ "op": 1, "d": 1 })).await;
    assert_eq!(bare.payload().await["op"], 11, "no event may come first");
    drop(bare);

    let mut back = Bare::connects(&server).await;
    back.sends(&resume(&server, &session, 1)).await;
    assert_eq!(back.payload().await["d"]["content"], "unheard");
}

#[tokio::test]
async fn members_are_told_when_they_are_asked_for() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;
    let ada = server.person("Ada").await;
    ada.says(&channel, "hello").await;
    let mut bare = Bare::identifies(&server, ALL).await.0;
    bare.event().await;

    let request = json!({ "guild_id": guild.id(), "query": "ad", "limit": 0, "nonce": "n" });
    bare.sends(&json!({ "op": 8, "d": request })).await;

    let chunk = bare.payload().await;
    assert_eq!(chunk["t"], "GUILD_MEMBERS_CHUNK");
    assert_eq!(chunk["d"]["members"][0]["user"]["id"], ada.id());
    assert_eq!(chunk["d"]["nonce"], "n");
}
