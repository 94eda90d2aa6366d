//! Faults as serenity sees them.

use std::time::{Duration, Instant};

use rejoinder_discord_server::{DiscordServer, Fault, GatewayAction, Scope};
use serenity::{
    Error,
    all::{CreateMessage, Nonce},
    http::HttpError,
};

use super::client::{Judge, http, number, refusal, send};

const MESSAGES: &str = "/channels/*/messages";

fn once(content: &str) -> CreateMessage {
    CreateMessage::new().content(content).nonce(Nonce::String("a-nonce".to_owned())).enforce_nonce(true)
}

/// Checks that a call got no response.
fn unanswered<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(matches!(result, Err(Error::Http(HttpError::Request(_)))), "{result:?}");
}

/// H4.
#[tokio::test]
async fn a_rate_limit_says_how_long_and_for_what() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let url = format!("{}/api/v10/channels/{}/messages", server.api_url(), channel.id());
    let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
    for (scope, name) in [(Scope::User, "user"), (Scope::Shared, "shared"), (Scope::Global, "global")] {
        server.fault(Fault::on("POST", MESSAGES).rate_limited(Duration::from_millis(1500), scope)).await;

        let request = http.post(&url).header("Authorization", format!("Bot {}", server.token()));
        let response = request.json(&serde_json::json!({ "content": "hi" })).send().await.expect("there is a response");

        assert_eq!(response.status(), 429);
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
        assert_eq!(header("X-RateLimit-Scope").as_deref(), Some(name));
        assert_eq!(header("Retry-After").as_deref(), Some("2"));
        assert_eq!(header("X-RateLimit-Global").is_some(), scope == Scope::Global);
        assert_eq!(header("X-RateLimit-Bucket").is_none(), scope == Scope::Global);
        let body: serde_json::Value = response.json().await.expect("a body");
        assert_eq!((&body["retry_after"], &body["global"]), (&1.5.into(), &(scope == Scope::Global).into()));
    }
    assert!(server.visible(&channel).await.is_empty());
    assert_eq!(server.invalid_requests().await, 3);
}

#[tokio::test]
async fn a_real_limit_is_for_each_channel() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let (one, other) = (guild.channel("one").await, guild.channel("other").await);
    server.limits("POST", MESSAGES, 2, Duration::from_mins(1)).await;
    let http = http(&server);
    let say = async |channel| send(&http, channel, CreateMessage::new().content("hi")).await;

    say(&one).await.expect("the first");
    say(&one).await.expect("the second");
    assert_eq!(refusal(say(&one).await).0, 429);
    say(&other).await.expect("in the other channel");
}

/// E8.
#[tokio::test]
async fn what_was_executed_before_the_connection_was_cut_is_found_by_its_nonce() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let faults =
        [Fault::on("POST", MESSAGES).executed_then_dropped(), Fault::on("POST", MESSAGES).failed_after_executing(502)];
    for fault in faults {
        server.fault(fault).await;
        assert!(send(&http, &channel, once("hi")).await.is_err());
        assert_eq!(server.bot_texts(&channel).await, ["hi"]);
    }

    send(&http, &channel, once("hi")).await.expect("the earlier message is returned");
    assert_eq!(server.bot_texts(&channel).await, ["hi"]);
}

#[tokio::test]
async fn what_was_not_executed_has_no_effect() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);

    server.fault(Fault::on("POST", MESSAGES).reset()).await;
    unanswered(&send(&http, &channel, once("hi")).await);
    server.fault(Fault::on("POST", MESSAGES).refused(403, 50013, "Missing Permissions")).await;
    assert_eq!(refusal(send(&http, &channel, once("hi")).await), (403, 50013));
    server.fault(Fault::on("POST", MESSAGES).failed(500)).await;
    assert_eq!(refusal(send(&http, &channel, once("hi")).await).0, 500);

    assert!(server.visible(&channel).await.is_empty());
    let calls = server.calls_to("POST", "/messages").await;
    let outcomes: Vec<_> = calls.iter().map(|call| (call.status, call.executed, call.fault.as_deref())).collect();
    assert_eq!(
        outcomes,
        [(None, false, Some("reset")), (Some(403), false, Some("error")), (Some(500), false, Some("error"))]
    );
}

#[tokio::test]
async fn faults_count_their_calls() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    server.fault(Fault::on("POST", MESSAGES).failed(503).after(1).times(2)).await;
    let statuses = async |number: usize| {
        let mut statuses = Vec::new();
        for _ in 0..number {
            let sent = send(&http, &channel, CreateMessage::new().content("hi")).await;
            statuses.push(if sent.is_ok() { 200 } else { refusal(sent).0 });
        }
        statuses
    };
    assert_eq!(statuses(4).await, [200, 503, 503, 200]);

    let outage = server.fault(Fault::on_everything().failed(503).always()).await;
    assert_eq!(statuses(3).await, [503, 503, 503]);
    server.remove_fault(outage).await;
    assert_eq!(statuses(1).await, [200]);
}

#[tokio::test]
async fn a_fault_hits_only_the_words_that_it_is_for() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let say = async |content: &str| send(&http, &channel, CreateMessage::new().content(content)).await;
    server.fault(Fault::on("POST", MESSAGES).refused(400, 50035, "Invalid Form Body").saying("part 2").always()).await;

    say("part 1").await.expect("the message is sent");
    for _ in 0..2 {
        assert_eq!(refusal(say("this is part 2 of it").await), (400, 50035));
    }
    say("part 3").await.expect("the message is sent");

    assert_eq!(server.bot_texts(&channel).await, ["part 1", "part 3"]);
}

#[tokio::test]
async fn an_answer_can_be_late_or_never_come() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let late = Duration::from_millis(300);
    server.fault(Fault::on("POST", MESSAGES).delayed(late)).await;
    let started = Instant::now();
    send(&http, &channel, CreateMessage::new().content("late")).await.expect("there is a response");
    assert!(started.elapsed() >= late);

    server.fault(Fault::on("POST", MESSAGES).answered_late(late)).await;
    let started = Instant::now();
    let waiting = send(&http, &channel, CreateMessage::new().content("seen before"));
    let (answer, seen) = tokio::join!(waiting, async {
        server.until_bot_texts(&channel, 2).await;
        started.elapsed()
    });
    answer.expect("there is a response");
    assert!(seen < late && started.elapsed() >= late, "{seen:?}, {:?}", started.elapsed());

    server.fault(Fault::on("POST", MESSAGES).executed_then_silent()).await;
    let waiting = send(&http, &channel, CreateMessage::new().content("silence"));
    let executed = server.until_bot_texts(&channel, 3);
    tokio::select! {
        answer = waiting => panic!("unexpected response: {answer:?}"),
        said = executed => assert_eq!(said, ["late", "seen before", "silence"]),
    }
}

/// A18.
#[tokio::test]
async fn permissions_are_lost_in_the_middle_of_a_conversation() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Home").await;
    let channel = guild.channel("general").await;
    let ada = server.person("Ada").await;
    let http = http(&server);
    let say = async |channel| send(&http, channel, CreateMessage::new().content("hi")).await;
    say(&channel).await.expect("the bot may send messages");

    channel.denies(&["send_messages"]).await;
    assert_eq!(refusal(say(&channel).await), (403, 50013));
    channel.denies(&["view_channel"]).await;
    assert_eq!(refusal(say(&channel).await), (403, 50001));
    channel.denies(&[]).await;
    say(&channel).await.expect("the bot may send messages again");
    guild.kicks_the_bot().await;
    assert_eq!(refusal(say(&channel).await), (403, 50001));
    channel.is_deleted().await;
    assert_eq!(refusal(say(&channel).await), (404, 10003));

    let direct = ada.direct().await;
    ada.closes_dms(true).await;
    assert_eq!(refusal(say(&direct).await), (403, 50007));
}

#[tokio::test]
async fn what_happens_where_the_bot_may_not_look_does_not_reach_it() {
    let server = DiscordServer::start().await;
    let (home, work) = (server.guild("Home").await, server.guild("Work").await);
    let (hidden, seen) = (home.channel("hidden").await, home.channel("seen").await);
    let left = work.channel("general").await;
    let ada = server.person("Ada").await;
    let judge = Judge::connects(&server).await;

    hidden.denies(&["view_channel"]).await;
    work.kicks_the_bot().await;
    ada.says(&hidden, "behind a door").await;
    ada.says(&left, "in another house").await;
    ada.says(&seen, "here").await;

    assert_eq!(judge.hears().await.content, "here");
}

#[tokio::test]
async fn an_archived_thread_is_opened_by_talking_unless_it_is_locked() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let thread = server.person("Ada").await.opens_thread(&channel, "A thread").await;
    let http = http(&server);
    let say = async || send(&http, &thread, CreateMessage::new().content("hi")).await;
    let archived = async || match http.get_channel(number(thread.id()).into()).await {
        Ok(serenity::all::Channel::Guild(thread)) => thread.thread_metadata.expect("the channel is a thread").archived,
        other => panic!("no thread: {other:?}"),
    };

    thread.is_archived(false).await;
    assert!(archived().await);
    say().await.expect("the message is sent");
    assert!(!archived().await);

    channel.denies(&["manage_threads"]).await;
    thread.is_archived(true).await;
    assert_eq!(refusal(say().await), (400, 160_005));
}

#[tokio::test]
async fn a_token_that_was_reset_is_worth_nothing() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);

    server.reset_token().await;

    let sent = send(&http, &channel, CreateMessage::new().content("hi")).await;
    assert_eq!(refusal(sent), (401, 0));
    assert!(http.get_bot_gateway().await.is_err());
}

#[tokio::test]
async fn who_makes_too_many_invalid_requests_is_banned() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    server.set(serde_json::json!({ "invalid_limit": 2 })).await;
    channel.denies(&["send_messages"]).await;
    let http = http(&server);

    for status in [403, 403, 429] {
        let sent = send(&http, &channel, CreateMessage::new().content("hi")).await;
        match sent {
            Err(Error::Http(error)) => {
                assert_eq!(error.status_code().map(|code| code.as_u16()), Some(status));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_is_away_refuses_the_gateway_too() {
    let server = DiscordServer::start().await;
    server.gateway(GatewayAction::Refuses(true)).await;

    let connected = tokio_tungstenite::connect_async(format!("{}/?v=10&encoding=json", server.gateway_url())).await;

    assert!(connected.is_err());
    assert_eq!(server.sessions().await.connections, 0);
}

#[tokio::test]
async fn a_message_is_looked_for_by_its_number() {
    let server = DiscordServer::start().await;
    let channel = server.guild("Home").await.channel("general").await;
    let http = http(&server);
    let sent = send(&http, &channel, once("hi")).await.expect("the message is sent");
    let place = number(channel.id()).into();

    let read = http.get_message(place, sent.id).await.expect("the message is read");
    assert_eq!(read.content, "hi");
    assert!(read.nonce.is_none(), "Discord does not promise a nonce");

    server.set(serde_json::json!({ "nonce_in_history": true })).await;
    let read = http.get_message(place, sent.id).await.expect("the message is read");
    assert!(matches!(read.nonce, Some(Nonce::String(nonce)) if nonce == "a-nonce"));
}
