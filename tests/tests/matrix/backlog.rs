//! Messages that were sent while the gateway was down.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::ScriptedAgent;
use rstest::rstest;

use crate::{Chat, Place, QUIET, patient, with_chat};

/// D14: the first start answers what was said minutes before it.
#[tokio::test]
async fn the_first_start_answers_what_was_just_said() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (account, token) = homeserver.account_with_token("agent").await;
    let section = crate::matrix(homeserver.url(), &account, QUIET);
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    homeserver.join(&token, &room).await;
    ada.says(&room, "old").await;

    let gateway = rejoinder_tests::Gateway::builder().config(&section).config(&agent.section()).start().await;
    ada.says(&room, "new").await;

    assert_eq!(ada.until_hears(&room, &account.user, 2).await, ["echo old", "echo new"]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &account.user).await, ["echo old", "echo new"]);
}

/// D4, D9, D14, E1, E6, F5: all missed messages are answered once and in order, even more than one sync returns, and
/// encrypted ones too.
#[rstest]
#[case::in_the_open(Place::Direct, 110)]
#[case::encrypted(Place::Encrypted, 70)]
#[tokio::test]
async fn what_was_said_meanwhile_is_answered_in_order(#[case] place: Place, #[case] messages: usize) {
    let agent = ScriptedAgent::echoing().await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (mut gateway, chat) = with_chat(builder, place, &user).await;
    chat.says("hello").await;
    chat.until_hears(&user, 1).await;
    gateway.until_settled().await;

    gateway.kill();
    for n in 0..messages {
        chat.says(&format!("{n}")).await;
    }
    gateway.restart().await;
    chat.until_hears(&user, messages + 1).await;

    gateway.until_settled().await;
    let expected: Vec<_> = (0..messages).map(|n| format!("echo {n}")).collect();
    assert_eq!(chat.hears(&user).await[1..], expected);
}

/// D1, D9, E6, F5: people keep writing while the gateway is killed and restarted: each message is answered once, in order.
#[tokio::test]
async fn a_restart_while_people_talk_loses_nothing() {
    const TALK: usize = 20;
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (builder, user) = patient(&agent, QUIET).await;
    let mut gateway = builder.start().await;
    let mut chats = Vec::new();
    for place in [Place::Direct, Place::Group, Place::Encrypted] {
        let chat = Chat::new(homeserver, place, &user).await;
        chat.until_joined(&user).await;
        chats.push(chat);
    }

    let talking = async {
        for n in 0..TALK {
            for chat in &chats {
                chat.says(&format!("number {n}")).await;
            }
        }
    };
    let restarting = async {
        agent.until_called(6).await;
        gateway.kill();
        gateway.restart().await;
        agent.until_called(25).await;
        gateway.stop().await;
        gateway.restart().await;
    };
    tokio::join!(talking, restarting);
    for chat in &chats {
        chat.until_hears(&user, TALK).await;
    }
    gateway.until_settled().await;

    let expected: Vec<_> = (0..TALK).map(|n| format!("echo number {n}")).collect();
    for chat in &chats {
        assert_eq!(chat.hears(&user).await, expected);
    }
}
