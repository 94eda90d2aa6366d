//! Two gateways in one room, each with an agent that answers the other's.

use rejoinder_matrix_server::Homeserver;
use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};

use crate::{QUIET, matrix};

/// How many messages of another agent are answered within a minute.
const MOST: usize = 10;

/// O1: two gateways whose agents answer everything, and mention each other, end by themselves. Meanwhile, and afterwards, a person
/// in their room is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_gateways_in_one_room_end_by_themselves() {
    let homeserver = Homeserver::shared().await;
    let accounts = [homeserver.account("left").await, homeserver.account("right").await];
    let [left, right] = [accounts[0].user.clone(), accounts[1].user.clone()];
    let mut gateways = Vec::new();
    for (account, other) in accounts.iter().zip([&right, &left]) {
        let other = other.clone();
        let answer = move |text: &str, number| match text {
            text if text.contains("still there") => "I am still here.".to_owned(),
            _ => format!("{other}: and what else? {number}"),
        };
        let agent = ScriptedAgent::start(move |call, number| Script::replies(&answer(&call.said(), number))).await;
        let section =
            matrix(homeserver.url(), account, &format!("{QUIET}\ngroup_policy = \"all\"\nallow_bots = [\"*\"]"));
        gateways.push(Gateway::builder().config(&section).config(&agent.section()).start().await);
    }
    let ada = homeserver.person("ada").await;
    let room = ada.room("Friends", &[&left, &right]).await;
    ada.until_joined(&room, &left).await;
    ada.until_joined(&room, &right).await;

    ada.mentions(&room, &left, "hello").await;
    let has_ended = |gateway: &Gateway| gateway.log().contains("another agent and this one answer each other");
    eventually("one does not hear the other any more", async || gateways.iter().any(has_ended).then_some(())).await;
    // Each answers what is under way, and that is all.
    for gateway in [&gateways[0], &gateways[1], &gateways[0]] {
        gateway.until_settled().await;
    }
    ada.mentions(&room, &left, "are you still there?").await;
    let is_answered = async || ada.hears(&room, &left).await.contains(&"I am still here.".to_owned()).then_some(());
    ada.until("the answer to a person", is_answered).await;
    for gateway in [&gateways[0], &gateways[1], &gateways[0]] {
        gateway.until_settled().await;
    }

    let said = [ada.hears(&room, &left).await.len(), ada.hears(&room, &right).await.len()];
    // Each answers Ada twice, and the other one at most so often.
    assert!(said.iter().all(|said| *said <= MOST + 2), "{said:?}");
    assert!(said.iter().any(|said| *said > MOST), "they did not answer each other: {said:?}");
}
