//! Turns that are past their time disappear, the file shrinks, and the gateway answers meanwhile.

use hmac::{Hmac, Mac};
use rejoinder_tests::{Gateway, Reply, ScriptedAgent, eventually};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;
use sha2::Sha256;

use crate::{TOKEN, hook};

/// Turns are past their time after two seconds.
const SHORT: &str = "[retention]\nturns = \"2s\"\npayloads = \"1s\"\n";

fn stats(gateway: &Gateway) -> Value {
    serde_json::from_str(&gateway.output_of(&["store", "stats", "--json"])).expect("it is JSON")
}

fn rows(stats: &Value, table: &str) -> u64 {
    stats["rows"][table].as_u64().unwrap_or_else(|| panic!("no table {table} in {stats}"))
}

/// `body`, signed as GitHub does.
fn by_hub(request: RequestBuilder, body: &'static str) -> RequestBuilder {
    let code = Hmac::<Sha256>::new_from_slice(b"hub-secret-of-these-tests")
        .expect("a key")
        .chain_update(body)
        .finalize()
        .into_bytes();
    request.header("X-Hub-Signature-256", format!("sha256={}", hex::encode(code))).body(body)
}

/// The tables are counted one after another, so a count may see the turns gone and their conversations still there.
async fn until_removed(gateway: &Gateway) -> Value {
    let is_empty = |stats: &Value| rows(stats, "turns") == 0 && rows(stats, "conversations") == 0;
    eventually("the turns are removed", async || Some(stats(gateway)).filter(is_empty)).await
}

/// D1: a crash after any step of the removal costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn turns_past_their_time_disappear_through_a_crash_and_the_file_shrinks() {
    const TURNS: usize = 300;
    let agent = ScriptedAgent::replying(&"x".repeat(8_000)).await;
    let mut gateway = Gateway::builder()
        .config(&hook("hub_secret = \"hub-secret-of-these-tests\""))
        .config(&agent.section())
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);
    let ask = |number: usize| hook.message(&"y".repeat(8_000)).header("Idempotency-Key", number.to_string());
    let replies = futures_util::future::join_all((0..TURNS).map(|number| Reply::of(ask(number)))).await;
    assert!(replies.iter().all(|reply| reply.status == StatusCode::OK), "{:?}", replies[0]);
    let result = Reply::of(by_hub(hook.bare(), "z").header("Prefer", "wait=0")).await;
    let result = result.body["result_url"].as_str().expect("a result that is fetched").to_owned();
    eventually("the result opens with its key", async || {
        let fetched = gateway.http().get(&result).send().await.ok()?;
        Some(fetched).filter(|fetched| fetched.status() == StatusCode::OK)
    })
    .await;
    let before = stats(&gateway);
    assert_eq!(rows(&before, "turns"), TURNS as u64 + 1);
    gateway.stop().await;
    gateway.reconfigure(|toml| format!("{toml}{SHORT}"));

    for step in ["removed:1", "removed:2", "removed:2"] {
        gateway.spawn_crashing_at(step);
        gateway.until_crashed().await;
    }
    gateway.restart().await;
    let after = until_removed(&gateway).await;
    let answered = Reply::of(ask(TURNS)).await;
    let gone = Reply::of(ask(0)).await;
    let result = gateway.http().get(&result).send().await.unwrap();
    let shrunk = eventually("the file shrinks", async || {
        Some(stats(&gateway)).filter(|after| after["bytes"].as_u64() < before["bytes"].as_u64().map(|bytes| bytes / 4))
    })
    .await;

    assert_eq!(rows(&after, "deliveries"), 0, "{after}");
    assert_eq!(answered.status, StatusCode::OK, "{answered:?} {shrunk}");
    assert_eq!((gone.status, agent.calls().len()), (StatusCode::GONE, TURNS + 2), "{gone:?}");
    assert_eq!(result.status(), StatusCode::NOT_FOUND, "the key of a removed result opens nothing");
    assert!(!gateway.log().contains("cannot remove"), "{}", gateway.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_gateways_database_is_compacted_and_a_running_ones_is_not() {
    let agent = ScriptedAgent::replying("done").await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    Reply::of(hook.message("hello")).await;

    let refused = gateway.run(&["store", "vacuum"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("stop the gateway first"), "{error}");
    gateway.stop().await;

    let compacted = gateway.output_of(&["store", "vacuum"]);
    assert!(compacted.contains("rejoinder.db had"), "{compacted}");
    assert_eq!(stats(&gateway)["free_bytes"], 0);
    gateway.restart().await;
    assert_eq!(rows(&stats(&gateway), "turns"), 1);
    assert_eq!(Reply::of(hook.message("again")).await.text(), "done");
}
