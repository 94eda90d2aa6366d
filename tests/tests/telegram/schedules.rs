//! Schedules, as the operator sees them: one that pauses itself is told of, and the page has all of them.

use std::time::Duration;

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Browser, Gateway, GatewayBuilder, Pager, ScriptedAgent, eventually};
use reqwest::Method;
use serde_json::json;

use crate::between;

/// Grace is known, and nobody has written there: what is for her fails.
const BROKEN: &str = "\
[people.grace]
identities = [\"telegram.test/4242\"]

[schedules.broken]
every = \"1m\"
to = \"grace\"
message = \"Good morning.\"
missed = \"all\"
";

/// A gateway that was down for ten minutes, while its schedule's time came again and again.
async fn with_a_broken_schedule(gateway: GatewayBuilder) -> Gateway {
    let mut gateway = gateway.config(BROKEN).own_calendar().start().await;
    gateway.stop().await;
    gateway.set_calendar_offset(600);
    gateway.restart().await;
    eventually("it is paused", async || (state(&gateway).await == "paused").then_some(())).await;
    gateway
}

async fn state(gateway: &Gateway) -> String {
    gateway.admin("schedules/broken").await["state"].as_str().expect("a state").to_owned()
}

/// Whether the log has an entry with this topic.
async fn has_logged(gateway: &Gateway, topic: &str) -> bool {
    let path = format!("events?after=0&topic={topic}");
    let mut entries = gateway.admin_request(Method::GET, &path, None).send().await.expect("it answers");
    let mut read = String::new();
    while !read.contains(topic) {
        // There is no end: it waits for what comes next.
        match tokio::time::timeout(Duration::from_millis(500), entries.chunk()).await {
            Ok(Ok(Some(chunk))) => read.push_str(&String::from_utf8_lossy(&chunk)),
            _ => return false,
        }
    }
    true
}

/// J2, J4. Once, also over a restart, and until an operator resumes it. One that an operator pauses is no problem.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_schedule_that_pauses_itself_is_told_until_it_is_resumed() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let pager = Pager::new();
    let alerts = format!("[alerts]\nto = [\"{}\"]\nafter = \"1s\"\n", pager.path().display());
    let told = || pager.alerts();
    let mut gateway = with_a_broken_schedule(between(&double, &agent).config(&alerts)).await;
    eventually("somebody is told", async || (told().len() == 1).then_some(())).await;
    eventually("that is stored", async || has_logged(&gateway, "alert.raised").await.then_some(())).await;
    gateway.kill();
    gateway.restart().await;

    let begun = &told()[0]["data"]["begun"];
    assert_eq!((&begun[0]["kind"], &begun[0]["subject"]), (&json!("schedule"), &json!("broken")));
    let text = begun[0]["text"].as_str().expect("a text");
    assert!(text.starts_with("The schedule broken is paused: it failed 5 times in a row: "), "{text}");
    let problems = async || gateway.admin("overview").await["problems"].clone();
    assert_eq!(problems().await[0]["text"], text);
    let post = async |verb: &str| {
        let request = gateway.admin_request(Method::POST, &format!("schedules/broken/{verb}"), None);
        let answer = request.json(&json!({ "reason": "a test" })).send().await.expect("it answers");
        assert!(answer.status().is_success(), "{verb}: {answer:?}");
    };
    post("resume").await;
    assert_eq!(problems().await, json!([]));
    eventually("it is over", async || (told().len() == 2).then_some(())).await;
    let ended = &told()[1]["data"];
    assert_eq!(ended["ended"][0]["subject"], "broken", "{ended}");
    assert!(ended["text"].as_str().is_some_and(|text| text.contains("The schedule broken was resumed")), "{ended}");
    post("pause").await;
    assert_eq!((state(&gateway).await, problems().await), ("paused".to_owned(), json!([])));
}

/// The operator's page: what is broken is looked at and resumed; one is made, run, paused and removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_looks_after_schedules_in_a_browser() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Two letters have come.").await);
    let gateway = with_a_broken_schedule(between(&double, &agent)).await;
    let ada = double.person("Ada");
    ada.says("hello");
    ada.hears("Two letters have come.").await;
    gateway.until_settled().await;
    let mut browser = Browser::start("operator-schedules", &gateway.url());

    browser.reaches("signed in").await;
    ada.says(&format!("my chat is {}", ada.chat()));
    browser.resume().await;
    browser.reaches("run").await;
    eventually("it is sent", async || {
        (double.bot_texts(ada.chat()).iter().filter(|text| text.contains("letters")).count() >= 3).then_some(())
    })
    .await;
    browser.resume().await;

    browser.succeeds().await;
    let names = gateway.admin("schedules").await["items"].as_array().expect("a list").len();
    assert_eq!(names, 1, "the one that was made is removed");
}
