//! Rate limits of the homeserver.

use std::time::{Duration, Instant};

use rejoinder_matrix_server::{Call, Fault, Homeserver, Person, Proxy, Settings};
use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use serde_json::json;

use crate::{QUIET, SEND, matrix};

/// The calls that sent a message.
fn sends(proxy: &Proxy) -> Vec<Call> {
    proxy.calls().into_iter().filter(|call| call.method == "PUT" && call.path.contains(SEND)).collect()
}

fn limited(milliseconds: u64) -> Fault {
    let body = json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": milliseconds });
    Fault::Answer { status: 429, body }
}

/// H4: the gateway waits for the end of a rate limit, and then sends the message once.
#[tokio::test]
async fn a_limit_is_waited_out() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let gateway =
        Gateway::builder().config(&matrix(proxy.url(), &account, QUIET)).config(&agent.section()).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    ada.until_joined(&room, &account.user).await;
    proxy.fail("PUT", SEND, 1, limited(2000));

    ada.says(&room, "hello").await;
    proxy.until("the answer is rate limited", |call| call.status == 429).await;
    let refused = Instant::now();
    ada.until_hears(&room, &account.user, 1).await;

    assert!(refused.elapsed() >= Duration::from_millis(1900), "{:?}", refused.elapsed());
    gateway.until_settled().await;
    assert_eq!(ada.hears(&room, &account.user).await, ["Hello."]);
    assert_eq!(sends(&proxy).iter().map(|call| call.status).collect::<Vec<_>>(), [429, 200]);
}

/// H5: the end of a rate limit is stored, and a restarted process does not retry before it.
#[tokio::test]
async fn a_block_survives_a_restart() {
    let (homeserver, agent) = (Homeserver::shared().await, ScriptedAgent::replying("Hello.").await);
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let mut gateway =
        Gateway::builder().config(&matrix(proxy.url(), &account, QUIET)).config(&agent.section()).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.direct(&account.user).await;
    ada.until_joined(&room, &account.user).await;
    proxy.fail("PUT", SEND, 1, limited(10_000));

    ada.says(&room, "hello").await;
    proxy.until("the answer is rate limited", |call| call.status == 429).await;
    let refused = Instant::now();
    eventually("the rate limit is stored", async || {
        gateway.explain(&gateway.only_turn()).contains("429").then_some(())
    })
    .await;
    gateway.stop().await;
    gateway.restart().await;
    ada.until_hears(&room, &account.user, 1).await;

    assert!(refused.elapsed() >= Duration::from_secs(9), "{:?}", refused.elapsed());
    gateway.until_settled().await;
    assert_eq!(sends(&proxy).len(), 2);
}

/// H4: with Synapse's default rate limits, drafts never delay answers.
#[tokio::test]
async fn drafts_leave_room_for_answers() {
    // Each answer takes a dozen seconds: unlimited drafts would exceed the burst of ten.
    const PEOPLE: usize = 3;
    let homeserver = Homeserver::start(Settings::synapse_defaults()).await;
    let model = rejoinder_tests::ModelServer::start().await;
    let (proxy, account) = (homeserver.proxy().await, homeserver.account("agent").await);
    let section = matrix(proxy.url(), &account, "pace = \"synapse\"\nstreaming = \"edit\"");
    let gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let mut people = Vec::new();
    for n in 0..PEOPLE {
        people.push(homeserver.person(&format!("person-{n}")).await);
    }
    let others: Vec<_> = people[1..].iter().map(Person::user).chain([&*account.user]).collect();
    let room = people[0].room("Friends", &others).await;
    for person in &people[1..] {
        person.join(&room).await;
    }
    people[0].until_joined(&room, &account.user).await;
    // In threads, so that the conversations do not wait for each other.
    let mut roots = Vec::new();
    for person in &people {
        roots.push(person.says(&room, "a thread").await);
    }

    for (person, root) in people.iter().zip(&roots) {
        person.says_in_thread(&room, root, &account.user, "zebra-long").await;
    }
    let are_whole = async || {
        let said = people[0].hears(&room, &account.user).await;
        (said.len() == PEOPLE && said.iter().all(|text| text.ends_with("fifty"))).then_some(())
    };
    people[0].until("the whole answers", are_whole).await;

    gateway.until_settled().await;
    let sends = sends(&proxy);
    assert!(sends.len() > PEOPLE + 2, "hardly any draft was sent: {sends:?}");
    assert!(sends.iter().all(|call| call.status == 200), "{sends:?}");
}
