//! Telegram is unavailable, slow, or polled by another process too.

use std::time::Duration;

use rejoinder_telegram_double::{Fault, Outage, TelegramDouble};
use rejoinder_tests::{Browser, Gate, Gateway, ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::Value;

use crate::{between, telegram};

async fn readiness(gateway: &Gateway) -> (bool, String) {
    let response = gateway.http().get(format!("{}/readyz", gateway.url())).send().await.expect("/readyz responds");
    (response.status().is_success(), response.text().await.expect("the body is text"))
}

/// F2: readiness reports a second poller, and recovers when it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_poller_is_named_and_survived() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    let other = tokio::spawn({
        let (url, token) = (double.url(), double.token().to_owned());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        async move {
            loop {
                let _ = http.get(format!("{url}/bot{token}/getUpdates?timeout=1")).send().await;
            }
        }
    });
    let said = eventually("readiness reports the second poller", async || {
        let (ready, said) = readiness(&gateway).await;
        (!ready).then_some(said)
    })
    .await;
    other.abort();
    ada.says("hello");
    ada.hears("Hello.").await;

    assert!(said.contains("telegram.test"), "{said}");
    assert!(gateway.log().contains("409") || gateway.log().contains("getUpdates"), "{}", gateway.log());
    eventually("the gateway is ready again", async || readiness(&gateway).await.0.then_some(())).await;
}

/// D17, F1: the gateway is not ready before its first poll succeeds; a poll that stalls is detected and repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn polling_that_stalls_is_found_out() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    double.fault(Fault::stall().on("getUpdates").forever());
    let mut gateway =
        Gateway::builder().time_passes_faster(10).config(&telegram(&double, "")).config(&agent.section()).prepare();
    let ada = double.person("Ada");

    gateway.spawn(&[]);
    double.until("the first poll", |view| (!view.calls("getUpdates").is_empty()).then_some(())).await;
    let before = readiness(&gateway).await;
    ada.says("hello");
    double.until("another poll", |view| (view.calls("getUpdates").len() > 1).then_some(())).await;
    double.clear_faults();
    ada.hears("Hello.").await;
    gateway.until_ready().await;

    assert!(!before.0, "ready although nothing came in yet: {}", before.1);
}

/// D10, F3, H2: ten minutes without Telegram, in both directions: nothing is lost or duplicated.
#[rstest]
#[case::refused(Outage::Refuse)]
#[case::unavailable(Outage::Unavailable)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_minutes_without_telegram_cost_nobody_an_answer(#[case] outage: Outage) {
    let double = TelegramDouble::start().await;
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => rejoinder_tests::Script::replies("The first.").waiting(&release),
            _ => rejoinder_tests::Script::replies("The second."),
        })
        .await
    };
    let gateway = Gateway::builder()
        .time_passes_faster(60)
        .config(&telegram(&double, "streaming = \"off\"\npoll_timeout = \"50s\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"24h\"\n")
        .start()
        .await;
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));

    ada.says("hello");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    double.start_outage(outage);
    release.release_one();
    bob.says("are you there?");
    // Ten seconds of ours are ten minutes of the gateway's.
    let (waits, before) = (Duration::from_secs(10), std::time::Instant::now());
    eventually("ten minutes have passed", async || (before.elapsed() >= waits).then_some(())).await;
    let during = readiness(&gateway).await;
    double.end_outage();
    ada.finds("the first answer", |message| message.ours && message.text.ends_with("The first.")).await;
    bob.hears("The second.").await;

    assert!(!during.0, "ready without Telegram: {}", during.1);
    assert_eq!((double.bot_texts(ada.chat()).len(), double.bot_texts(bob.chat()).len()), (1, 1));
}

/// The wall clock jumps forward and back: later messages are answered as usual.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_clock_that_jumps_is_survived() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&double, &agent).own_calendar().start().await;
    let ada = double.person("Ada");

    for (n, seconds) in [3600, -7200, 86_400, 0].into_iter().enumerate() {
        gateway.set_calendar_offset(seconds);
        ada.says("hello");
        double.until("another answer", |view| (view.bot_texts(ada.chat()).len() == n + 1).then_some(())).await;
    }

    assert!(double.bot_texts(ada.chat()).iter().all(|text| text == "Hello."), "{:?}", double.bot_texts(ada.chat()));
    eventually("the gateway is ready", async || readiness(&gateway).await.0.then_some(())).await;
}

async fn parked(gateway: &Gateway) -> Vec<Value> {
    gateway.admin("deliveries?state=parked").await["items"].as_array().expect("a list").clone()
}

/// H2, H3: polling works and sending does not, for so long that what waits is left to the probe. When sending works again, all of it
/// goes, though nobody writes, and the operator's page says both.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_waits_goes_when_sending_works_again() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let channel = telegram(&double, "streaming = \"off\"");
    let guard = "[guard]\nsoft_deadline = \"off\"\n";
    let builder = Gateway::builder().time_passes_faster(20).config(&channel).config(&agent.section()).config(guard);
    let gateway = builder.start().await;
    let mut browser = Browser::start("operator-back", &gateway.url());
    browser.reaches("all is answered").await;
    double.fault(Fault::page_before(502).on("sendMessage").forever());
    let people: Vec<_> = (0..5).map(|_| double.person("Ada")).collect();
    for person in &people {
        person.says("hello");
    }

    // After the ninth attempt the pause is 10 minutes.
    eventually("each was tried nine times", async || {
        let waiting = parked(&gateway).await;
        let is_tried = waiting.iter().all(|one| one["tries"].as_u64().is_some_and(|tries| tries >= 9));
        (waiting.len() == people.len() && is_tried).then_some(())
    })
    .await;
    browser.resume().await;
    browser.reaches("cannot send").await;
    // One that is tried right now does not wait.
    let waiting = eventually("all wait at once", async || {
        let waiting = parked(&gateway).await;
        (waiting.len() == people.len()).then_some(waiting)
    })
    .await;
    double.clear_faults();
    for person in &people {
        person.hears("Hello.").await;
    }
    gateway.until_settled().await;
    browser.resume().await;
    browser.reaches("answered").await;
    browser.resume().await;
    browser.succeeds().await;

    // ISO 8601 in UTC: its order is that of the times.
    let last = waiting.iter().max_by_key(|one| one["next_attempt_at"].as_str()).expect("five wait");
    let turn = gateway.admin(&format!("turns/{}", last["turn_id"].as_str().expect("an id"))).await;
    let attempts = turn["deliveries"][0]["attempts"].as_array().expect("a list").clone();
    let began = attempts.last().expect("an attempt")["started_at"].as_str();
    assert!(began < last["next_attempt_at"].as_str(), "it waited for its own time, {last}: {attempts:#?}");
}
