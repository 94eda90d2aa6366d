//! Messages that are missed while the gateway is down.

use std::time::Duration;

use rejoinder_core::ChannelHealth;
use rejoinder_discord_server::{DiscordServer, Fault, GatewayAction};
use rejoinder_testkit::until;
use rstest::rstest;

use crate::support::Gateway;

/// D14. In direct chats, which Discord does not name, only what comes later is seen.
#[tokio::test]
async fn the_first_start_answers_what_was_just_said_in_servers() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    ada.mentions(&general, "say old").await;
    ada.dm("say old").await;

    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say new").await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["old", "new"]);
    assert_eq!(gateway.agent_texts(), ["say old", "say new"]);
    gateway.stop().await;
}

/// D14. A gateway that begins anew answers nothing again that its account has answered.
#[tokio::test]
async fn another_first_start_goes_on_after_our_last_message() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say old").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;
    gateway.stop().await;
    ada.mentions(&general, "say missed").await;

    let gateway = Gateway::connected(&server).await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["old", "missed"]);
    assert_eq!(gateway.agent_texts(), ["say missed"]);
    gateway.stop().await;
}

/// D1, D9: in channels, threads, forums and direct chats, each in order.
#[tokio::test]
async fn what_was_said_while_the_gateway_was_away_is_answered_once() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let (general, forum) = (guild.channel("general").await, guild.forum("questions").await);
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("say before").await;
    ada.mentions(&general, "say before").await;
    server.until_bot_texts(&ada.direct().await, 1).await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    ada.dm("say one").await;
    ada.mentions(&general, "say one").await;
    ada.mentions(&general, "say two").await;
    let thread = ada.opens_thread(&general, "aside").await;
    ada.mentions(&thread, "say aside").await;
    let post = ada.posts(&forum, "A question", &format!("{} say posted", server.bot_mention())).await;
    let gateway = gateway.restart(&server).await;

    assert_eq!(server.until_bot_texts(&general, 3).await, ["before", "one", "two"]);
    assert_eq!(server.until_bot_texts(&ada.direct().await, 2).await, ["before", "one"]);
    assert_eq!(server.until_bot_texts(&thread, 1).await, ["aside"]);
    assert_eq!(server.until_bot_texts(&post, 1).await, ["posted"]);
    gateway.until_settled().await;
    assert_eq!(server.bot_texts(&general).await.len(), 3);
    gateway.stop().await;
}

#[tokio::test]
async fn more_than_a_page_is_read() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say ready").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    let crowd = [(ada.clone(), general.clone())];
    server.all_say(&crowd, 230, "stay {}").await;
    ada.mentions(&general, "say done").await;
    let gateway = gateway.restart(&server).await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["ready", "done"]);
    gateway.until_agent_has(232 - 1).await;
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_too_old_is_not_read() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.dm("say one").await;
    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    ada.dm("say too old").await;
    let day = Duration::from_hours(25);
    server.advance(day).await;
    gateway.clock.advance(day);
    ada.dm("say new").await;
    let gateway = gateway.restart(&server).await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 2).await, ["one", "new"]);
    gateway.stop().await;
}

/// What cannot be read back yet delays only its own channel: others are answered, it is named, and what is said in it
/// meanwhile comes after what was missed.
#[rstest]
#[case::fails(false)]
#[case::hangs(true)]
#[tokio::test]
async fn a_channel_that_cannot_be_read_yet_delays_only_itself(#[case] hangs: bool) {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let (broken, general) = (guild.channel("broken").await, guild.channel("general").await);
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    for place in [&broken, &general] {
        ada.mentions(place, "say before").await;
        server.until_bot_texts(place, 1).await;
    }
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    ada.mentions(&broken, "say one").await;
    ada.mentions(&broken, "say two").await;
    let calls = Fault::on("GET", &format!("/channels/{}/messages", broken.id()));
    server.fault(if hangs { calls.silent() } else { calls.failed(500) }.always()).await;
    let gateway = gateway.restart(&server).await;
    gateway.until_live().await;
    ada.mentions(&general, "say open").await;
    ada.mentions(&broken, "say three").await;
    ada.dm("say direct").await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["before", "open"]);
    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["direct"]);
    if !hangs {
        let named = |health: &ChannelHealth| health.notice.as_deref().is_some_and(|it| it.contains("broken"));
        let health = gateway.until_health("the channel is named", named).await;
        assert_eq!(health.problem, None);
    }
    assert_eq!(server.bot_texts(&broken).await, ["before"]);
    server.clear_faults().await;
    if !hangs {
        assert_eq!(server.until_bot_texts(&broken, 4).await, ["before", "one", "two", "three"]);
        gateway.until_health("nothing is wrong", |health| health.notice.is_none()).await;
        gateway.until_settled().await;
        assert_eq!(server.bot_texts(&broken).await.len(), 4);
    }
    gateway.stop().await;
}

/// What is said in a channel while its missed messages are read is not lost, even if none of them can be read.
#[rstest]
#[case::history_is_hidden(None)]
#[case::channel_is_closed(Some(403))]
#[case::channel_is_gone(Some(404))]
#[tokio::test]
async fn what_is_said_in_a_channel_that_cannot_be_read_back_is_answered(#[case] refusal: Option<u16>) {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let (closed, general) = (guild.channel("closed").await, guild.channel("general").await);
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say ready").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    ada.mentions(&closed, "say missed").await;
    let reading = || Fault::on("GET", &format!("/channels/{}/messages", closed.id()));
    server.fault(reading().failed(500).always()).await;
    let gateway = gateway.restart(&server).await;
    gateway.until_live().await;
    ada.mentions(&closed, "say one").await;
    ada.mentions(&closed, "say two").await;
    ada.mentions(&general, "say open").await;
    assert_eq!(server.until_bot_texts(&general, 2).await, ["ready", "open"]);
    assert!(server.bot_texts(&closed).await.is_empty());
    server.clear_faults().await;
    match refusal {
        None => closed.denies(&["read_message_history"]).await,
        Some(status) => drop(server.fault(reading().refused(status, 50001, "Missing Access").always()).await),
    }

    assert_eq!(server.until_bot_texts(&closed, 2).await, ["one", "two"]);
    gateway.stop().await;
}

/// An edit is not lost either: the message that it changes may be stored already, and wait for its run.
#[tokio::test]
async fn an_edit_in_a_channel_that_is_being_read_back_is_not_lost() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let (busy, general) = (guild.channel("busy").await, guild.channel("general").await);
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&busy, "wait one").await;
    gateway.until_agent_has(1).await;
    let waiting = ada.mentions(&busy, "say tow").await;
    ada.mentions(&general, "say ready").await;
    server.until_bot_texts(&general, 1).await;

    let reads = async || server.calls_to("GET", &format!("{}/messages", busy.id())).await.len();
    let before = reads().await;
    server.fault(Fault::on("GET", &format!("/channels/{}/messages", busy.id())).failed(500).always()).await;
    server.gateway(GatewayAction::Forget).await;
    server.gateway(GatewayAction::Abort).await;
    let tried = async || (reads().await > before).then_some(());
    server.until("the channel is being read back", tried).await;
    ada.edits(&waiting, &format!("{} say two", server.bot_mention())).await;
    ada.mentions(&busy, "say three").await;
    ada.mentions(&general, "say later").await;
    server.until_bot_texts(&general, 2).await;
    server.clear_faults().await;
    // The third message may be read back from the channel before the edit of the second is stored.
    until("all is stored", async || gateway.open_texts().await == ["say three", "say two", "wait one"]).await;
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&busy, 3).await, ["one and that is all.", "two", "three"]);
    gateway.stop().await;
}

/// A channel that is closed to us blocks nothing.
#[tokio::test]
async fn a_channel_that_cannot_be_read_is_let_pass() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let (closed, general) = (guild.channel("closed").await, guild.channel("general").await);
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    ada.mentions(&general, "say ready").await;
    server.until_bot_texts(&general, 1).await;
    gateway.until_settled().await;

    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    closed.denies(&["view_channel", "read_message_history"]).await;
    ada.says(&closed, "among us").await;
    ada.mentions(&general, "say open").await;
    let gateway = gateway.restart(&server).await;

    assert_eq!(server.until_bot_texts(&general, 2).await, ["ready", "open"]);
    gateway.stop().await;
}
