//! What a kind of agent brings beside its runtime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use futures_util::FutureExt;
use rejoinder::{AgentLoop, BuiltAgent};
use rejoinder_core::AgentRuntime;
use reqwest::{StatusCode, header};
use tokio::sync::Notify;

use crate::support::{ADMIN_TOKEN, Echo, TestGateway, eventually, problem};

fn echo(agent: Echo) -> BuiltAgent {
    let agent: Arc<dyn AgentRuntime> = Arc::new(agent);
    agent.into()
}

#[tokio::test]
async fn the_routes_of_an_agent_are_served_below_its_name() {
    let routes = Router::new().route("/next", get(async || "a turn"));
    let gateway = TestGateway::start_with_built(BuiltAgent { routes: Some(routes), ..echo(Echo::at_once()) }).await;

    let response = gateway.get("/agents/main/next").send().await.unwrap();
    assert_eq!((response.status(), response.text().await.unwrap().as_str()), (StatusCode::OK, "a turn"));
    for path in ["/agents/other/next", "/agents/main/other", "/next"] {
        problem(gateway.get(path).send().await.unwrap(), StatusCode::NOT_FOUND).await;
    }
    let foreign = gateway.get("/agents/main/next").header(header::HOST, "evil.example").send().await.unwrap();
    assert!(foreign.status().is_client_error(), "{foreign:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn the_loop_of_an_agent_ends_after_its_last_run() {
    let (agent, release, started) = Echo::waiting();
    let (begun, is_released, ended_last): (Arc<Notify>, Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
    let run: AgentLoop = Arc::new({
        let (begun, is_released, ended_last) = (begun.clone(), is_released.clone(), ended_last.clone());
        move |stop| {
            let (begun, is_released, ended_last) = (begun.clone(), is_released.clone(), ended_last.clone());
            async move {
                begun.notify_one();
                stop.cancelled().await;
                ended_last.store(is_released.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            .boxed()
        }
    });
    let gateway = TestGateway::start_with_built(BuiltAgent { run: Some(run), ..echo(agent) }).await;
    begun.notified().await;

    let asking = tokio::spawn(gateway.ask("test", "are you there?").send());
    started.notified().await;
    gateway.begin_shutdown();
    eventually("no connection is accepted", async || gateway.get("/healthz").send().await.err()).await;
    is_released.store(true, Ordering::SeqCst);
    release.notify_one();
    asking.await.unwrap().unwrap();
    gateway.stop().await;
    assert!(ended_last.load(Ordering::SeqCst), "the loop ended before the run, or not at all");
}

#[tokio::test]
async fn a_reader_of_events_does_not_wait_for_a_loop_that_does_not_end() {
    let run: AgentLoop = Arc::new(|_| std::future::pending::<()>().boxed());
    let gateway = TestGateway::start_with_built(BuiltAgent { run: Some(run), ..echo(Echo::at_once()) }).await;
    let mut events = gateway.get("/admin/api/events").bearer_auth(ADMIN_TOKEN).send().await.unwrap();
    assert_eq!(events.status(), StatusCode::OK);

    let began = Instant::now();
    gateway.begin_shutdown();
    while events.chunk().await.unwrap().is_some() {}

    assert!(began.elapsed() < Duration::from_secs(4), "the reader waited for the loop: {:?}", began.elapsed());
    gateway.stop().await;
}
