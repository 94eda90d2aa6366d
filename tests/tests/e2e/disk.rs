//! The disk is full, or the database file is gone: new turns are refused, `/readyz` tells, accepted turns are kept, and the
//! gateway recovers without a restart.

use std::{fs, path::Path, time::Duration};

use rejoinder_tests::{Gate, Gateway, Pager, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;
use rstest::rstest;

use crate::{TOKEN, hook, operate::Events};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_disk_refuses_new_turns_and_loses_no_accepted_one() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("kept safe").waiting(&release),
            _ => Script::replies("room again"),
        })
        .await
    };
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let ready = async || gateway.http().get(format!("{}/readyz", gateway.url())).send().await.unwrap().status();
    let accepted = hook.send("before the disk was full").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;

    gateway.fill_disk();
    let refused = Reply::of(hook.message("too much").header("Idempotency-Key", "later")).await;
    release.release_one();
    let not_ready =
        eventually("/readyz fails", async || Some(ready().await).filter(|status| !status.is_success())).await;
    gateway.free_disk();
    eventually("the gateway is ready again", async || ready().await.is_success().then_some(())).await;
    let retried = Reply::of(hook.message("too much").header("Idempotency-Key", "later")).await;
    let events = Events::follow(&gateway, "?topic=store.*", Some(0)).await.read(2).await;

    let topics: Vec<_> = events.iter().map(|(_, topic, _)| topic.as_str()).collect();
    assert_eq!(topics, ["store.down", "store.up"]);
    assert!(events[0].2["at"].as_str() < events[1].2["at"].as_str(), "{events:#?}");
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!(not_ready, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "kept safe");
    assert_eq!((retried.status, retried.text()), (StatusCode::OK, "room again"));
}

/// How often a line with this text and of this level is in the log.
fn lines(gateway: &Gateway, level: &str, text: &str) -> usize {
    let level = format!("\"level\":\"{level}\"");
    gateway.log().lines().filter(|line| line.contains(&level) && line.contains(text)).count()
}

/// There is room for small messages and for a probe, and not for a large message.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_nearly_full_disk_that_refuses_a_caller_is_told_at_once() {
    let agent = ScriptedAgent::replying("done").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    hook.ask("hello").await;

    gateway.fill_disk_up_to(1_000_000);
    let refused = Reply::of(hook.message(&"x".repeat(700_000))).await;
    let (is_ready, problem) = gateway.readiness().await;
    let small = hook.ask("is there room for me?").await;
    let (is_ready_later, _) = gateway.readiness().await;
    let store_up = gateway.metrics().await.contains("rejoinder_store_up 1\n");
    gateway.free_disk();
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;

    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(!is_ready && problem.contains("the store cannot write"), "{problem}");
    assert_eq!(small.text(), "done");
    assert!(!is_ready_later && !store_up);
    let told = (lines(&gateway, "WARN", "not ready"), lines(&gateway, "INFO", "the store can write again"));
    assert_eq!(told, (1, 1), "{}", gateway.log());
}

/// The alert cannot be logged before there is room; the log is what the next process knows. Other alerts may be wanted meanwhile.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_alert_about_a_full_disk_is_known_to_the_next_process(#[values(false, true)] is_reloaded: bool) {
    let (agent, pager) = (ScriptedAgent::replying("done").await, Pager::new());
    let alerts = format!("[alerts]\nto = [\"{}\"]\nafter = \"1s\"\n", pager.path().display());
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).config(&alerts).start().await;
    gateway.fill_disk();
    Reply::of(gateway.hook("test", TOKEN).message("too much")).await;
    eventually("somebody is told", async || pager.told("store").pop()).await;
    if is_reloaded {
        gateway.reconfigure(|text| text.replace("after = \"1s\"", "after = \"2s\""));
        gateway.hang_up();
        // The log cannot be written either.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    gateway.free_disk();
    let logged = Events::follow(&gateway, "?topic=alert.raised", Some(0)).await.read(1).await;
    gateway.kill();
    gateway.restart().await;
    let is_over = || pager.alerts().iter().any(|alert| alert["data"]["ended"][0]["kind"] == "store");
    eventually("somebody is told that it is over", async || is_over().then_some(())).await;

    assert_eq!(logged[0].2["data"]["kind"], "store", "{logged:?}");
    assert_eq!(pager.told("store").len(), 1, "{:#?}", pager.alerts());
}

fn delete(database: &Path) {
    fs::remove_file(database).unwrap();
}

/// As a restored backup does.
fn replace(database: &Path) {
    let copy = database.with_extension("copy");
    fs::copy(database, &copy).unwrap();
    fs::rename(copy, database).unwrap();
}

#[rstest]
#[case::deleted(delete)]
#[case::replaced(replace)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_whose_database_is_gone_promises_nothing_more(#[case] lose: fn(&Path)) {
    let agent = ScriptedAgent::replying("done").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).allow_open_turns().start().await;
    let hook = gateway.hook("test", TOKEN);
    hook.ask("hello").await;
    let database = gateway.data().join("rejoinder.db");

    lose(&database);
    let refused = Reply::of(hook.message("and now?")).await;
    let (is_ready, problem) = gateway.readiness().await;
    let refused_later = Reply::of(hook.message("and later?")).await;

    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert_eq!(refused_later.status, StatusCode::SERVICE_UNAVAILABLE, "{refused_later:?}");
    assert!(!is_ready && problem.contains(database.to_str().unwrap()), "{problem}");
    let told = || lines(&gateway, "ERROR", "rejoinder.db was deleted, moved or replaced");
    eventually("the log names it", async || (told() > 0).then_some(())).await;
    assert_eq!(told(), 1, "{}", gateway.log());
}
