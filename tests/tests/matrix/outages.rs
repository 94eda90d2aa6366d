//! The homeserver is away, or its answers are lost.

use rejoinder_matrix_server::{Fault, Homeserver, Settings};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use serde_json::json;

use crate::{Chat, Place, QUIET, matrix, patient};

/// D10, F1, F3, F5, H2: Synapse is stopped and started again, with a question waiting for its answer and another one
/// just asked: nothing is lost, nothing is doubled.
#[tokio::test]
async fn a_homeserver_that_is_stopped_and_started_costs_nobody_an_answer() {
    let mut homeserver = Homeserver::start(Settings::default()).await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let (builder, user) = patient(&homeserver, &agent, QUIET).await;
    let gateway = builder.start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let (hers, his) = (ada.direct(&user).await, bob.direct(&user).await);
    ada.until_joined(&hers, &user).await;
    bob.until_joined(&his, &user).await;

    ada.says(&hers, "hello").await;
    agent.called(1).await;
    homeserver.stop();
    release.notify_one();
    let during = gateway.complains("matrix.test").await;
    eventually("it was tried", async || gateway.metrics().await.contains("attempts_total").then_some(())).await;
    homeserver.start_again().await;
    bob.says(&his, "are you there?").await;
    ada.until_hears(&hers, &user, 1).await;
    bob.until_hears(&his, &user, 1).await;

    gateway.settles().await;
    assert_eq!(ada.hears(&hers, &user).await, ["The first."]);
    assert_eq!(bob.hears(&his, &user).await, ["echo are you there?"]);
    assert!(during.contains("syncing fails"), "{during}");
    eventually("it is ready again", async || gateway.readiness().await.0.then_some(())).await;
}

/// E8, J1: an answer whose receipt is lost is sent again as the same transaction, and seen once.
#[tokio::test]
async fn a_lost_receipt_shows_nothing_twice() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (way, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway = Gateway::builder().config(&matrix(way.url(), &account, QUIET)).config(&agent.section()).start().await;
    let chat = Chat::new(homeserver, Place::Encrypted, &account.user).await;
    chat.is_joined(&account.user).await;

    way.fails("PUT", "/send/m.room.encrypted/", 2, Fault::LoseAnswer);
    chat.says("hello").await;
    chat.until_hears(&account.user, 1).await;
    gateway.settles().await;

    assert_eq!(chat.hears(&account.user).await, ["Hello."]);
    let sends: Vec<_> = way
        .calls()
        .into_iter()
        .filter(|call| call.path.contains("/send/m.room.encrypted/"))
        .map(|call| call.path)
        .collect();
    assert_eq!(sends.len(), 3, "{sends:?}");
    assert!(sends.iter().all(|path| *path == sends[0]), "{sends:?}");
}

/// D17, F3: a homeserver that cannot be reached at the start is named, and found when it is there.
#[tokio::test]
async fn a_start_without_a_homeserver_goes_on_when_it_is_there() {
    let mut homeserver = Homeserver::start(Settings::default()).await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user) = patient(&homeserver, &agent, QUIET).await;
    let mut gateway = builder.prepare();
    let ada = homeserver.person("ada").await;

    homeserver.stop();
    gateway.spawn(&[]);
    eventually("it listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    let said = gateway.complains("cannot be reached").await;
    homeserver.start_again().await;
    gateway.is_ready().await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["Hello."]);
    assert!(said.contains("matrix.test"), "{said}");
    gateway.settles().await;
}

/// H2: a short outage of sending uses up no delivery.
#[tokio::test]
async fn a_short_outage_of_sending_costs_nobody_an_answer() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (way, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway = Gateway::builder().config(&matrix(way.url(), &account, QUIET)).config(&agent.section()).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    ada.until_joined(&room, &account.user).await;

    let body = json!({ "errcode": "M_UNKNOWN", "error": "Internal server error" });
    way.fails("PUT", "/send/m.room.message/", 3, Fault::Answer { status: 500, body });
    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &account.user, 1).await, ["Hello."]);
    gateway.settles().await;
    assert_eq!(ada.hears(&room, &account.user).await, ["Hello."]);
}
