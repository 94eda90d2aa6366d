//! Who may write to the account, and who may invite it.

use rejoinder_matrix_server::{Homeserver, Message};
use rejoinder_tests::{Gateway, ScriptedAgent};

use crate::{QUIET, SILENT, matrix, patient, with_ada};

/// N1, O2: a stranger's invitation is not accepted; people on the list are answered.
#[tokio::test]
async fn a_strangers_invitation_is_left_as_it_is() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let keys = format!("dm_policy = \"allowlist\"\nallow_from = [\"{}\"]", ada.user());
    let (builder, user) = patient(&agent, &keys).await;
    let gateway = builder.start().await;

    let hers = eve.direct(&user).await;
    eve.says(&hers, "let me in").await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(eve.members(&hers).await, [eve.user()]);
    assert_eq!(agent.calls().len(), 1);
    assert!(gateway.log().contains(eve.user()), "the log does not name the inviter");
}

/// N1: in a room that a stranger invited it to, the account answers only people on the list.
#[tokio::test]
async fn in_a_room_those_on_the_list_are_answered() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (ada, bob, eve) =
        (homeserver.person("ada").await, homeserver.person("bob").await, homeserver.person("eve").await);
    let keys = format!(
        "dm_policy = \"allowlist\"\nauto_join = \"always\"\nallow_from = [\"{}\", \"*:elsewhere.example\"]",
        ada.user()
    );
    let (builder, user) = patient(&agent, &keys).await;
    let gateway = builder.start().await;
    let room = eve.room("Friends", &[&user, ada.user(), bob.user()]).await;
    ada.join(&room).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    eve.mentions(&room, &user, "from eve").await;
    bob.mentions(&room, &user, "from bob").await;
    ada.mentions(&room, &user, "from ada").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    let heard = ada.hears(&room, &user).await;
    assert!(matches!(&heard[..], [only] if only.ends_with("from ada")), "{heard:?}");
}

/// A whole server can be on the list.
#[tokio::test]
async fn everybody_of_a_server_can_be_let_in() {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user) = patient(&agent, "dm_policy = \"allowlist\"\nallow_from = [\"*:localhost\"]").await;
    let (gateway, ada, room) = with_ada(builder, &user).await;

    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["Hello."]);
    gateway.until_settled().await;
}

/// B5, O1: conversations among others and notices from programs are owed nothing.
#[tokio::test]
async fn talk_among_others_is_owed_nothing() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, "").await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "nice weather").await;
    let mention = serde_json::json!({ "user_ids": [user] });
    ada.sends(&room, &serde_json::json!({ "msgtype": "m.notice", "body": "built", "m.mentions": mention })).await;
    bob.mentions(&room, &user, "are you there?").await;
    bob.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
}

/// B5, L4: messages directed at the account are answered with a reply to each; others are ignored.
#[tokio::test]
async fn a_room_is_answered_when_it_asks() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Here.").await);
    let (builder, user) = patient(&agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;
    let answers = async || -> Vec<Message> {
        ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect()
    };

    ada.says(&room, "nice weather").await;
    ada.mentions(&room, bob.user(), "are you there?").await;
    let mention = ada.mentions(&room, &user, "are you there?").await;
    ada.until_hears(&room, &user, 1).await;
    let reply = bob.replies(&room, &answers().await[0].id, "thank you").await;
    ada.until_hears(&room, &user, 2).await;
    // From a client without support for mentions.
    let name = ada.says(&room, &format!("{user}: one more")).await;
    ada.until_hears(&room, &user, 3).await;
    let command = bob.mentions(&room, &user, "!new").await;
    ada.until_hears(&room, &user, 4).await;

    gateway.until_settled().await;
    let asked: Vec<_> = answers().await.into_iter().map(|answer| answer.replies_to).collect();
    assert_eq!(asked, [mention, reply, name, command].map(Some));
    assert_eq!(agent.calls().len(), 3);
}

/// N1, O2: with an empty list, a stranger gets one notice with the id to add, runs no agent, and is owed nothing.
#[tokio::test]
async fn a_stranger_is_told_once_and_runs_no_agent() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, "dm_policy = \"allowlist\"\nauto_join = \"always\"").await;
    let gateway = builder.start().await;
    let (eve, mallory) = (homeserver.person("eve").await, homeserver.person("mallory").await);
    let (hers, his) = (eve.direct(&user).await, mallory.direct(&user).await);
    eve.until_joined(&hers, &user).await;
    mallory.until_joined(&his, &user).await;

    for n in 0..50 {
        eve.says(&hers, &format!("let me in {n}")).await;
    }
    let replies = eve.until_hears(&hers, &user, 1).await;
    // Events arrive in order: once Mallory has the notice, all of Eve's were received.
    mallory.says(&his, "let me in").await;
    mallory.until_hears(&his, &user, 1).await;

    gateway.until_settled().await;
    assert!(replies[0].contains(eve.user()), "{replies:?}");
    assert_eq!(eve.hears(&hers, &user).await.len(), 1);
    assert!(agent.calls().is_empty());
}

/// O2: a flood from a stranger does not affect people on the list.
#[tokio::test]
async fn a_flood_from_a_stranger_runs_no_agent() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let list = format!("dm_policy = \"allowlist\"\nauto_join = \"always\"\nallow_from = [\"{}\"]", ada.user());
    let (builder, user) = patient(&agent, &list).await;
    let gateway = builder.start().await;
    let (hers, flooded) = (ada.direct(&user).await, eve.direct(&user).await);
    ada.until_joined(&hers, &user).await;
    eve.until_joined(&flooded, &user).await;

    for n in 0..100 {
        eve.says(&flooded, &format!("flood {n}")).await;
    }
    ada.says(&hers, "hello").await;
    ada.until_hears(&hers, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert!(eve.hears(&flooded, &user).await.is_empty());
}

/// A room is admitted as a whole by its id, while direct chats are disabled.
#[tokio::test]
async fn a_room_on_the_list_is_let_in() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let account = homeserver.account("agent").await;
    let user = account.user.as_str();
    let mut rooms = Vec::new();
    for name in ["Family", "Others"] {
        let room = ada.room(name, &[user, bob.user()]).await;
        bob.join(&room).await;
        rooms.push(room);
    }
    let (family, others, direct) = (&rooms[0], &rooms[1], ada.direct(user).await);
    let keys = format!("dm_policy = \"disabled\"\nauto_join = \"always\"\ngroup_allow_from = [\"{family}\"]\n{QUIET}");
    let section = matrix(homeserver.url(), &account, &keys);
    let gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    for room in [family, others, &direct] {
        ada.until_joined(room, user).await;
    }

    ada.says(&direct, "hello").await;
    ada.mentions(others, user, "hello").await;
    bob.mentions(family, user, "hello").await;
    bob.until_hears(family, user, 1).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert!(ada.hears(others, user).await.is_empty() && ada.hears(&direct, user).await.is_empty());
}

/// B5: with `group_policy = "all"` the agent gets every message, but only those directed at the account are owed an answer.
#[tokio::test]
async fn what_is_overheard_is_told_and_owed_nothing() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("NO_REPLY").await);
    let (builder, user) = patient(&agent, "group_policy = \"all\"").await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let room = ada.room("Friends", &[&user, bob.user()]).await;
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "nice weather").await;
    agent.until_called(1).await;
    bob.mentions(&room, &user, "what do you think?").await;
    bob.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(bob.hears(&room, &user).await, [SILENT]);
    assert!(agent.calls()[0].last_message().contains("nice weather"));
}

/// With `group_policy = "disabled"` messages in rooms are ignored.
#[tokio::test]
async fn in_rooms_nobody_is_answered_where_that_is_off() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(&agent, "group_policy = \"disabled\"").await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let (room, direct) = (ada.room("Friends", &[&user, bob.user()]).await, ada.direct(&user).await);
    bob.join(&room).await;
    ada.until_joined(&room, &user).await;

    ada.mentions(&room, &user, "hello").await;
    ada.says(&direct, "hello").await;
    ada.until_hears(&direct, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(agent.calls().len(), 1);
    assert!(ada.hears(&room, &user).await.is_empty());
}

/// N1, N2, O2.
#[tokio::test]
async fn a_stranger_is_let_in_with_their_code() {
    const KEYS: &str = "dm_policy = \"pairing\"\nauto_join = \"always\"\nstreaming = \"off\"";
    rejoinder_tests::promise::a_stranger_is_let_in_with_their_code::<crate::promise::Matrix>(KEYS).await;
}
