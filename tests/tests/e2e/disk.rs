//! The disk is full: new turns are refused, accepted ones are kept, and the gateway recovers without a restart.

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;

use crate::{TOKEN, hook};

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

    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert_eq!(not_ready, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "kept safe");
    assert_eq!((retried.status, retried.text()), (StatusCode::OK, "room again"));
}
