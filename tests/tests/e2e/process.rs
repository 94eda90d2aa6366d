//! A process that answers: whatever becomes of its output, its file descriptors and its workers.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rejoinder_tests::{Gateway, GatewayBuilder, Hook, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;

use crate::{TOKEN, hook};

/// How soon a gateway that works says that it lives.
const SOON: Duration = Duration::from_secs(2);

/// Turns that are asked at once.
const CROWD: usize = 64;

fn failing() -> impl Future<Output = ScriptedAgent> {
    ScriptedAgent::start(|_, _| Script::Fails(404))
}

fn builder(agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&hook("")).config(&agent.section())
}

/// Many turns at once; every one gets the words of the ladder.
async fn ask_many(hook: &Hook) {
    for reply in join_all((0..CROWD).map(|_| hook.ask("hello"))).await {
        assert_eq!((reply.status, reply.state()), (StatusCode::OK, "answered"), "{reply:?}");
    }
}

async fn answers_health(gateway: &Gateway) {
    let asked = gateway.http().get(format!("{}/healthz", gateway.url())).timeout(SOON).send().await;
    assert_eq!(asked.expect("health is answered soon").status(), StatusCode::OK);
}

/// How many log lines were dropped, as the metrics say.
async fn dropped_lines(gateway: &Gateway) -> u64 {
    let asked = gateway.http().get(format!("{}/metrics", gateway.url())).send().await.expect("the metrics are there");
    let text = asked.text().await.expect("the metrics are text");
    let dropped = text.lines().find_map(|line| line.strip_prefix("rejoinder_log_lines_dropped_total "));
    dropped.map_or(0, |lines| lines.parse().expect("a number"))
}

/// `rejoinder 2>&1 | less`: nobody reads on, and hundreds of failing turns are told. First the pipe is full, then what
/// waits for it.
async fn with_a_log_that_overflows(agent: &ScriptedAgent) -> Gateway {
    let gateway = builder(agent).nobody_reads_its_output().start().await;
    let hook = gateway.hook("test", TOKEN);
    let begun = Instant::now();
    while dropped_lines(&gateway).await == 0 {
        assert!(begun.elapsed() < rejoinder_tests::PATIENCE, "no line was dropped");
        ask_many(&hook).await;
        answers_health(&gateway).await;
    }
    gateway
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_nobody_reads_holds_up_nothing_and_not_the_end() {
    let agent = failing().await;
    let mut gateway = with_a_log_that_overflows(&agent).await;

    let asked_to_end = Instant::now();
    let ended = gateway.stop().await;

    assert!(ended.success(), "{ended}");
    assert!(asked_to_end.elapsed() < Duration::from_secs(10), "it took {:?}", asked_to_end.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_that_is_read_again_says_what_is_missing() {
    let agent = failing().await;
    let mut gateway = with_a_log_that_overflows(&agent).await;
    let dropped = dropped_lines(&gateway).await;

    gateway.somebody_reads_its_output();
    let told = eventually("the log says what is missing", async || {
        gateway.log().lines().find(|line| line.contains("log lines were lost")).map(ToOwned::to_owned)
    })
    .await;
    gateway.hook("test", TOKEN).ask("hello again").await;
    assert!(gateway.stop().await.success());

    let lines = told.split_once("lines=").expect("a number of lines").1;
    let lines: u64 = lines.split_whitespace().next().and_then(|lines| lines.parse().ok()).expect("a number");
    assert!(lines >= dropped, "{dropped} were dropped: {told}");
    let log = gateway.log();
    assert!(log.trim_end().ends_with("stopped"), "the end is missing:\n{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_output_that_is_stuck_from_the_start_keeps_nobody_from_being_answered() {
    let agent = ScriptedAgent::replying("here").await;
    let mut gateway = builder(&agent).its_output_is_stuck().start().await;

    let reply = gateway.hook("test", TOKEN).ask("are you there?").await;

    assert_eq!(reply.words(), "here");
    assert!(gateway.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hostile_form_holds_up_nobody() {
    let agent = ScriptedAgent::replying("here").await;
    let gateway = builder(&agent).start().await;
    let hook = gateway.hook("test", TOKEN);
    let form = "=\u{fffd}&".repeat(((1 << 20) - 20) / 5) + "message=%EF%BF%BD";
    let send = || hook.call().header("Content-Type", "application/x-www-form-urlencoded").body(form.clone());

    let begun = Instant::now();
    let (replies, ()) = tokio::join!(join_all((0..8).map(|_| Reply::of(send()))), answers_health(&gateway));

    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    for reply in replies {
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{reply:?}");
        assert!(reply.body["detail"].as_str().is_some_and(|detail| detail.contains("64")), "{reply:?}");
    }
}
