//! Slash commands.

use std::time::Duration;

use rejoinder_core::ChannelAdapter;
use rejoinder_discord::DiscordSection;
use rejoinder_discord_server::{DiscordServer, Fault, GatewayAction, Scope};
use rstest::rstest;
use serde_json::json;

use crate::support::{Gateway, options};

#[tokio::test]
async fn the_commands_are_registered_where_they_belong() {
    let server = DiscordServer::start().await;
    let guild = server.guild("Friends").await;
    let expected = [
        "agent", "ask", "budget", "export", "help", "history", "home", "language", "link", "model", "new", "queue",
        "retry", "session", "status", "stop", "undo", "unlink", "voice", "whoami",
    ];
    let gateway = Gateway::connected(&server).await;
    let sorted = |mut names: Vec<String>| {
        names.sort();
        Some(names).filter(|names| !names.is_empty())
    };

    let listed = server.until("all are listed", async || sorted(server.commands(None).await)).await;
    assert_eq!(listed, expected);
    assert!(server.commands(Some(&guild)).await.is_empty());
    gateway.stop().await;

    let command_guilds = vec![guild.id().to_owned()];
    let gateway = Gateway::with(DiscordSection { command_guilds, ..options(&server) }).await;
    let listed = server.until("all are listed", async || sorted(server.commands(Some(&guild)).await)).await;
    assert_eq!(listed, expected);
    gateway.stop().await;
}

#[tokio::test]
async fn a_question_is_answered_in_the_place_of_its_notice() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    let asked = ada.slash(&general, "ask", json!({"question": "wait for it"})).await;
    gateway.until_agent_has(1).await;
    let noticed =
        server.until("acknowledged", async || Some(server.interaction(&asked).await).filter(|it| it.acknowledged));
    assert_eq!(noticed.await.response.as_deref(), Some("deferred"));
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&general, 1).await, ["for it and that is all."]);
    let answered = server.interaction(&asked).await;
    let visible = server.visible(&general).await;
    assert_eq!(answered.message_id.as_ref(), visible.last().map(|message| &message.id));
    gateway.stop().await;
}

/// B3.
#[tokio::test]
async fn a_command_of_the_gateways_own_is_answered_by_it() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.slash(&ada.direct().await, "stop", json!({})).await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["Nothing to stop."]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_draft_of_an_answer_stands_in_the_place_of_the_notice() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.slash(&general, "ask", json!({"question": "begin here"})).await;
    assert_eq!(server.until_bot_texts(&general, 1).await, ["here"]);
    gateway.release_agent();
    gateway.until_settled().await;

    let visible = server.visible(&general).await;
    assert_eq!(visible.iter().filter(|message| message.ours).count(), 1);
    assert_eq!(visible.last().map(|message| message.content.as_str()), Some("here and that is all."));
    gateway.stop().await;
}

#[tokio::test]
async fn an_emoji_as_the_answer_to_a_command_is_said() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;

    ada.slash(&ada.direct().await, "ask", json!({"question": "react 👍"})).await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["👍"]);
    gateway.stop().await;
}

/// The run goes on after the press, and its answer is a message of its own. So it is after a restart.
#[rstest]
#[case::seen_by_all(false, false)]
#[case::seen_by_one(true, false)]
#[case::over_a_restart(false, true)]
#[tokio::test]
async fn a_question_in_the_middle_of_a_run_stays_above_the_answer(
    #[case] is_private: bool,
    #[case] is_restarted: bool,
) {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let mut gateway = Gateway::connected(&server).await;
    let ours = async || {
        let seen = ada.sees(&general).await;
        seen.into_iter().filter(|message| message.ours && !message.loading).collect::<Vec<_>>()
    };

    ada.slash(&general, "ask", json!({"question": "choose red blue", "private": is_private})).await;
    let question = server.until("the question", async || ours().await.pop()).await;
    if is_restarted {
        gateway = gateway.shut_down().await.restart(&server).await;
        gateway.until_live().await;
    }
    ada.clicks(&question, "red").await;

    let seen = server.until("the answer", async || {
        Some(ours().await).filter(|seen| seen.iter().any(|message| message.content == "It is chosen."))
    });
    let seen = seen.await;
    assert_eq!(seen[0].id, question.id, "{seen:?}");
    assert!(seen[0].content.starts_with("Which?"), "{seen:?}");
    assert_eq!(seen.last().map(|message| message.content.as_str()), Some("It is chosen."));
    let private_to = is_private.then(|| ada.id());
    assert!(seen.iter().all(|message| message.ephemeral_to.as_deref() == private_to), "{seen:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn after_fifteen_minutes_the_answer_goes_to_the_channel() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let asked = ada.slash(&general, "ask", json!({"question": "wait for it"})).await;
    gateway.until_agent_has(1).await;
    server.until("acknowledged", async || Some(server.interaction(&asked).await).filter(|it| it.acknowledged)).await;

    let time = Duration::from_mins(16);
    server.advance(time).await;
    gateway.clock.advance(time);
    gateway.release_agent();

    server
        .until("the answer", async || {
            let said = server.bot_texts(&general).await;
            said.contains(&"for it and that is all.".to_owned()).then_some(())
        })
        .await;
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_asked_in_private_is_answered_in_private() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    bob.says(&general, "stay").await;
    let gateway = Gateway::connected(&server).await;

    let text = format!("say {}", "long words ".repeat(300));
    ada.slash(&general, "ask", json!({"question": text, "private": true})).await;

    let both = server.until("both parts", async || {
        let ours = ada.sees(&general).await.into_iter().filter(|it| it.ours && !it.loading).collect::<Vec<_>>();
        (ours.len() == 2).then_some(ours)
    });
    assert!(both.await.iter().all(|message| message.ephemeral_to.as_deref() == Some(ada.id())));
    assert!(bob.sees(&general).await.iter().all(|message| !message.ours), "only Ada sees it");
    gateway.stop().await;
}

#[tokio::test]
async fn what_was_asked_in_private_is_answered_in_the_direct_chat_when_it_takes_too_long() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let asked = ada.slash(&general, "ask", json!({"question": "wait for it", "private": true})).await;
    gateway.until_agent_has(1).await;
    server.until("acknowledged", async || Some(server.interaction(&asked).await).filter(|it| it.acknowledged)).await;

    let time = Duration::from_mins(16);
    server.advance(time).await;
    gateway.clock.advance(time);
    gateway.release_agent();

    let chat = ada.direct().await;
    server
        .until("the answer", async || {
            let said = server.bot_texts(&chat).await;
            said.contains(&"for it and that is all.".to_owned()).then_some(())
        })
        .await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_survives_a_restart() {
    let server = DiscordServer::start().await;
    let general = server.guild("Friends").await.channel("general").await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    let asked = ada.slash(&general, "ask", json!({"question": "wait for it"})).await;
    gateway.until_agent_has(1).await;
    server.until("acknowledged", async || Some(server.interaction(&asked).await).filter(|it| it.acknowledged)).await;

    let gateway = gateway.shut_down().await.restart(&server).await;
    gateway.until_agent_has(1).await;
    gateway.release_agent();

    assert_eq!(server.until_bot_texts(&general, 1).await, ["for it and that is all."]);
    let answered = server.interaction(&asked).await;
    assert_eq!(answered.message_id, server.visible(&general).await.pop().map(|message| message.id));
    gateway.stop().await;
}

/// An acknowledgement that may have arrived is repeated; "already acknowledged" is not a failure.
#[tokio::test]
async fn an_acknowledgement_whose_answer_is_lost_counts() {
    let server = DiscordServer::start().await;
    let ada = server.person("Ada").await;
    let gateway = Gateway::connected(&server).await;
    server.fault(Fault::on("POST", "/interactions/*/*/callback").executed_then_dropped()).await;

    let asked = ada.slash(&ada.direct().await, "ask", json!({"question": "say hello"})).await;

    assert_eq!(server.until_bot_texts(&ada.direct().await, 1).await, ["hello"]);
    let answered = server.interaction(&asked).await;
    assert!(answered.acknowledged && !answered.failed && answered.message_id.is_some(), "{answered:?}");
    assert!(gateway.adapter.health().problem.is_none());
    gateway.stop().await;
}

/// Reading missed messages may take long; a command must be acknowledged within three seconds.
#[tokio::test]
async fn a_command_does_not_wait_for_what_was_missed() {
    let server = DiscordServer::start().await;
    let (ada, bob) = (server.person("Ada").await, server.person("Bob").await);
    let gateway = Gateway::connected(&server).await;
    ada.dm("say one").await;
    server.until_bot_texts(&ada.direct().await, 1).await;
    gateway.until_settled().await;
    let gateway = gateway.shut_down().await;
    server.gateway(GatewayAction::Forget).await;
    ada.dm("say two").await;
    server
        .fault(Fault::on("GET", "/channels/*/messages").rate_limited(Duration::from_hours(1), Scope::User).always())
        .await;
    let gateway = gateway.restart(&server).await;
    server.until_connected().await;

    let asked = bob.slash(&bob.direct().await, "ask", json!({"question": "say hello"})).await;

    assert_eq!(server.until_bot_texts(&bob.direct().await, 1).await, ["hello"]);
    assert!(!server.interaction(&asked).await.failed);
    assert_eq!(server.bot_texts(&ada.direct().await).await, ["one"], "the missed message is not read yet");
    gateway.stop().await;
}
