//! Who may write, and who may invite.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::ScriptedAgent;

use crate::patient;

/// N1, O2: an invitation of a stranger is left as it is; those on the list are answered.
#[tokio::test]
async fn a_strangers_invitation_is_left_as_it_is() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (ada, eve) = (homeserver.person("ada").await, homeserver.person("eve").await);
    let keys = format!("dm_policy = \"allowlist\"\nallow_from = [\"{}\"]", ada.user());
    let (builder, user) = patient(homeserver, &agent, &keys).await;
    let gateway = builder.start().await;

    let hers = eve.direct(&user).await;
    eve.says(&hers, "let me in").await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.settles().await;
    assert_eq!(eve.members(&hers).await, [eve.user()]);
    assert_eq!(agent.calls().len(), 1);
    assert!(gateway.log().contains(eve.user()), "the log does not name who invites");
}

/// N1: in a room that somebody else brought it into, it answers those on the list alone, by server or by room.
#[tokio::test]
async fn in_a_room_those_on_the_list_are_answered() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::echoing().await);
    let (ada, bob, eve) =
        (homeserver.person("ada").await, homeserver.person("bob").await, homeserver.person("eve").await);
    let keys = format!(
        "dm_policy = \"allowlist\"\nauto_join = \"always\"\nallow_from = [\"{}\", \"*:elsewhere.example\"]",
        ada.user()
    );
    let (builder, user) = patient(homeserver, &agent, &keys).await;
    let gateway = builder.start().await;
    let room = eve.room("Friends", &[&user, ada.user(), bob.user()]).await;
    (ada.join(&room).await, bob.join(&room).await);
    ada.until_joined(&room, &user).await;

    eve.mentions(&room, &user, "from eve").await;
    bob.mentions(&room, &user, "from bob").await;
    ada.mentions(&room, &user, "from ada").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.settles().await;
    let heard = ada.hears(&room, &user).await;
    assert!(matches!(&heard[..], [only] if only.ends_with("from ada")), "{heard:?}");
}

/// A whole server is let in at once.
#[tokio::test]
async fn everybody_of_a_server_can_be_let_in() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) =
        patient(homeserver, &agent, "dm_policy = \"allowlist\"\nallow_from = [\"*:localhost\"]").await;
    let gateway = builder.start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&user).await;

    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["Hello."]);
    gateway.settles().await;
}

/// B5, O1: ambient talk and what programs say are owed nothing.
#[tokio::test]
async fn talk_among_others_is_owed_nothing() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user) = patient(homeserver, &agent, "").await;
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

    gateway.settles().await;
    assert_eq!(agent.calls().len(), 1);
    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
}
