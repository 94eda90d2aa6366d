//! The homeserver is unavailable, or its responses are lost.

use rejoinder_matrix_server::{Fault, Homeserver, Settings};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{Chat, Place, QUIET, between_on, matrix, patient, through_proxy, with_ada, with_chat};

/// D10, F1, F3, F5, H2: Synapse is stopped and started again while one answer is owed and another question arrives: nothing
/// is lost or duplicated.
#[tokio::test]
async fn a_homeserver_that_is_stopped_and_started_costs_nobody_an_answer() {
    let mut homeserver = Homeserver::start(Settings::default()).await;
    let (agent, release) = ScriptedAgent::holding("The first.").await;
    let account = homeserver.account("agent").await;
    let (builder, user) = between_on(homeserver.url(), account, &agent, QUIET);
    let gateway = builder.config("[guard]\nsoft_deadline = \"off\"\n").start().await;
    let (ada, bob) = (homeserver.person("ada").await, homeserver.person("bob").await);
    let (hers, his) = (ada.direct(&user).await, bob.direct(&user).await);
    ada.until_joined(&hers, &user).await;
    bob.until_joined(&his, &user).await;

    ada.says(&hers, "hello").await;
    agent.until_called(1).await;
    homeserver.stop();
    release.release_one();
    let during = gateway.until_not_ready("matrix.test").await;
    eventually("an attempt", async || gateway.metrics().await.contains("attempts_total").then_some(())).await;
    homeserver.restart().await;
    bob.says(&his, "are you there?").await;
    ada.until_hears(&hers, &user, 1).await;
    bob.until_hears(&his, &user, 1).await;

    gateway.until_settled().await;
    assert_eq!(ada.hears(&hers, &user).await, ["The first."]);
    assert_eq!(bob.hears(&his, &user).await, ["echo are you there?"]);
    assert!(during.contains("syncing fails"), "{during}");
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
}

/// E8, J1: an answer whose response is lost is sent again with the same transaction id, and shown once.
#[tokio::test]
async fn a_lost_receipt_shows_nothing_twice() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway =
        Gateway::builder().config(&matrix(proxy.url(), &account, QUIET)).config(&agent.section()).start().await;
    let chat = Chat::new(homeserver, Place::Encrypted, &account.user).await;
    chat.until_joined(&account.user).await;

    proxy.fail("PUT", "/send/m.room.encrypted/", 2, Fault::LoseAnswer);
    chat.says("hello").await;
    chat.until_hears(&account.user, 1).await;
    gateway.until_settled().await;

    assert_eq!(chat.hears(&account.user).await, ["Hello."]);
    let sends: Vec<_> = proxy
        .calls()
        .into_iter()
        .filter(|call| call.path.contains("/send/m.room.encrypted/"))
        .map(|call| call.path)
        .collect();
    assert_eq!(sends.len(), 3, "{sends:?}");
    assert!(sends.iter().all(|path| *path == sends[0]), "{sends:?}");
}

/// D17, F3: readiness reports a homeserver that is unreachable at the start; the gateway connects once it is back.
#[tokio::test]
async fn a_start_without_a_homeserver_goes_on_when_it_is_there() {
    let mut homeserver = Homeserver::start(Settings::default()).await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let account = homeserver.account("agent").await;
    let (builder, user) = between_on(homeserver.url(), account, &agent, QUIET);
    let mut gateway = builder.config("[guard]\nsoft_deadline = \"off\"\n").prepare();
    let ada = homeserver.person("ada").await;

    homeserver.stop();
    gateway.spawn(&[]);
    eventually("the gateway listens", async || gateway.http().get(gateway.url()).send().await.ok().map(drop)).await;
    let said = gateway.until_not_ready("cannot be reached").await;
    homeserver.restart().await;
    gateway.until_ready().await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &user, 1).await, ["Hello."]);
    assert!(said.contains("matrix.test"), "{said}");
    gateway.until_settled().await;
}

/// H2: a short outage does not exhaust the attempts of a delivery.
#[tokio::test]
async fn a_short_outage_of_sending_costs_nobody_an_answer() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway =
        Gateway::builder().config(&matrix(proxy.url(), &account, QUIET)).config(&agent.section()).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    ada.until_joined(&room, &account.user).await;

    let body = json!({ "errcode": "M_UNKNOWN", "error": "Internal server error" });
    proxy.fail("PUT", "/send/m.room.message/", 3, Fault::Answer { status: 500, body });
    ada.says(&room, "hello").await;

    assert_eq!(ada.until_hears(&room, &account.user, 1).await, ["Hello."]);
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &account.user).await, ["Hello."]);
}

/// D17, F1, F3: the gateway is not ready before its first sync succeeds; a sync that stalls is detected and repeated.
#[tokio::test]
async fn syncing_that_stalls_is_found_out() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (builder, user, proxy) = through_proxy(&agent, &format!("{QUIET}\nsync_timeout = \"1s\"")).await;
    let mut gateway = builder.time_passes_faster(10).config("[guard]\nsoft_deadline = \"off\"\n").prepare();
    let ada = homeserver.person("ada").await;

    proxy.fail("GET", "/sync", 1, Fault::Stall);
    gateway.spawn(&[]);
    proxy.until("the first sync", |call| call.path.contains("/sync")).await;
    let (before, said) = gateway.readiness().await;
    gateway.until_ready().await;
    let room = ada.direct(&user).await;
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    proxy.fail("GET", "/sync", 10_000, Fault::Stall);
    let stalled = gateway.until_not_ready("matrix.test").await;
    let first = channel(&gateway).await;
    // While the retried syncs stall, the time of the last successful sync does not change.
    let stalls = || proxy.calls().iter().filter(|call| call.path.contains("/sync") && call.status == 0).count();
    let before_it = stalls();
    eventually("two more syncs", async || (stalls() >= before_it + 2).then_some(())).await;
    let second = channel(&gateway).await;
    proxy.clear_faults();
    ada.says(&room, "again").await;
    ada.until_hears(&room, &user, 2).await;

    gateway.until_settled().await;
    assert!(!before, "ready although nothing came in yet: {said}");
    assert!(stalled.contains("syncing fails"), "{stalled}");
    assert_eq!((&first["live"], &second["live"]), (&json!(false), &json!(false)));
    assert!(first["inbound_at"].is_string() && first["inbound_at"] == second["inbound_at"], "{first} {second}");
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
    assert!(channel(&gateway).await["inbound_at"].as_str() > second["inbound_at"].as_str());
}

/// The channel `matrix.test` in the admin API.
async fn channel(gateway: &Gateway) -> Value {
    let channels = gateway.admin("channels").await;
    let items = channels["items"].as_array().expect("a list");
    items.iter().find(|item| item["channel"] == "matrix.test").expect("the channel is there").clone()
}

/// E1, E6, F5: events of a sync whose response was lost are delivered again, and answered once.
#[rstest]
#[tokio::test]
async fn what_came_with_a_lost_sync_is_answered_once(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let agent = ScriptedAgent::echoing().await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (gateway, chat) = with_chat(builder.config("[guard]\nsoft_deadline = \"off\"\n"), place, &user).await;

    for n in 0..3 {
        // The sync in progress and the one after it.
        proxy.fail("GET", "/sync", 2, Fault::LoseAnswer);
        chat.says(&format!("{n}")).await;
        chat.says(&format!("{n} again")).await;
        chat.until_hears(&user, 2 * (n + 1)).await;
    }

    gateway.until_settled().await;
    let expected: Vec<_> = (0..3).flat_map(|n| [format!("echo {n}"), format!("echo {n} again")]).collect();
    assert_eq!(chat.hears(&user).await, expected);
    eventually("the gateway is ready", async || gateway.readiness().await.0.then_some(())).await;
}

/// F3: the homeserver ends the session but keeps the device (`soft_logout`), during a sync or while missed messages are
/// read back: the gateway logs in again as the same device, and nothing is lost.
#[rstest]
#[case::while_it_syncs("/sync")]
#[case::while_it_reads_back("/messages")]
#[tokio::test]
async fn a_session_that_ends_is_begun_again(#[case] path: &str) {
    const MISSED: usize = 60;
    let agent = ScriptedAgent::echoing().await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (mut gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"off\"\n"), &user).await;
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.until_settled().await;
    let before = ada.devices_of(&user).await;

    gateway.stop().await;
    for n in 0..MISSED {
        ada.says(&room, &format!("{n}")).await;
    }
    let body = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "expired", "soft_logout": true });
    proxy.fail("GET", path, 1, Fault::Answer { status: 401, body });
    gateway.restart().await;
    ada.until_hears(&room, &user, MISSED + 1).await;

    gateway.until_settled().await;
    let expected: Vec<_> = (0..MISSED).map(|n| format!("echo {n}")).collect();
    assert_eq!(ada.hears(&room, &user).await[1..], expected);
    let logins = proxy.calls().into_iter().filter(|call| call.method == "POST" && call.path.ends_with("/login"));
    assert_eq!(logins.count(), 2);
    assert_eq!((ada.devices_of(&user).await, before.len()), (before, 1));
}

/// The wall clock jumps forward and back: later messages are answered as usual.
#[rstest]
#[tokio::test]
async fn a_clock_that_jumps_is_survived(#[values(Place::Direct, Place::Encrypted)] place: Place) {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user) = patient(&agent, QUIET).await;
    let (gateway, chat) = with_chat(builder.own_calendar(), place, &user).await;

    for (n, seconds) in [3600, -7200, 86_400, 0].into_iter().enumerate() {
        gateway.set_calendar_offset(seconds);
        chat.says("hello").await;
        chat.until_hears(&user, n + 1).await;
    }

    gateway.until_settled().await;
    assert_eq!(chat.hears(&user).await, ["Hello."; 4]);
    eventually("the gateway is ready", async || gateway.readiness().await.0.then_some(())).await;
}
