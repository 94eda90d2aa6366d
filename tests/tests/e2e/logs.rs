//! The gateway's own log, as the operator reads it: lines and errors.

use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_went_wrong_is_in_the_log_and_counted() {
    let agent = ScriptedAgent::start(|_, _| Script::fails("out of order")).await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let failures = async |gateway: &Gateway, count: u64| {
        eventually("the failures are counted", async || {
            let errors = gateway.admin("errors").await["items"].as_array().expect("a list").clone();
            let is_failure = |error: &Value| error["message"] == "a run failed" && error["count"] == count;
            errors.into_iter().find(is_failure)
        })
        .await
    };

    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();
    let first = failures(&gateway, 1).await;
    gateway.hook("test", TOKEN).ask("are you there?").await;
    let both = failures(&gateway, 2).await;

    assert_eq!((&both["id"], &both["level"], &both["channel"]), (&first["id"], &"warn".into(), &"webhook.test".into()));
    assert_eq!(both["first_seen_at"], first["first_seen_at"]);
    assert!(both["last_seen_at"].as_str() > first["last_seen_at"].as_str(), "{both}");
    assert_eq!(both["fields"]["agent"], "main");
    let lines = gateway.admin(&format!("logs?level=warn&turn={turn}")).await;
    let [line] = &lines["items"].as_array().expect("a list")[..] else { panic!("one line: {lines}") };
    assert_eq!((&line["message"], &line["turn_id"]), (&"a run failed".into(), &turn.as_str().into()));
    assert_eq!((&line["channel"], &line["target"]), (&"webhook.test".into(), &"rejoinder_core::worker".into()));
    let page = gateway.admin("logs?level=warn&text=a%20run&limit=1").await;
    let rest =
        gateway.admin(&format!("logs?level=warn&text=a%20run&before={}", page["next"].as_str().expect("more"))).await;
    assert_eq!((&rest["items"], &rest["next"]), (&lines["items"], &Value::Null));
    let printed = gateway.output_of(&["logs", "--level", "warn", "--turn", &turn]);
    assert!(
        printed.contains(" WARN a run failed channel=webhook.test turn=") && printed.contains("agent=main"),
        "{printed}"
    );

    assert!(gateway.stop().await.success());
    gateway.restart().await;
    assert_eq!(gateway.admin("logs?text=waiting%20for%20running%20turns").await["items"][0]["level"], "info");
    assert_eq!(failures(&gateway, 2).await, both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_for_other_channels_sees_no_line_and_no_error() {
    let agent = ScriptedAgent::start(|_, _| Script::fails("out of order")).await;
    let other = format!("[channels.webhook.other]\ntoken = \"{TOKEN}-other\"\n");
    let gateway = Gateway::builder().config(&hook("")).config(&other).config(&agent.section()).start().await;
    gateway.hook("test", TOKEN).ask("hello").await;
    eventually("the failure is there", async || {
        gateway.admin("errors").await["items"].as_array().filter(|errors| !errors.is_empty()).map(drop)
    })
    .await;
    let items = async |token: &str, path: &str| {
        let response = gateway.admin_request(Method::GET, path, Some(token)).send().await.expect("it answers");
        response.json::<Value>().await.expect("it is JSON")["items"].clone()
    };
    let limited = |channel: &str| {
        let made = gateway.output_of(&["tokens", "create", "--role", "viewer", "--channel", channel, "--json"]);
        let made: Value = serde_json::from_str(&made).expect("it is JSON");
        made["token"].as_str().expect("there is a token").to_owned()
    };

    let (of_other, own) = (limited("webhook.other"), limited("webhook.test"));
    for path in ["logs", "errors", "logs?channel=webhook.test", "errors?channel=webhook.test"] {
        assert_eq!(items(&of_other, path).await, json!([]), "{path}");
    }
    assert_eq!(items(&own, "errors").await.as_array().map(Vec::len), Some(1));
    for path in ["logs?level=loud", "logs?turn=1", "logs?since=1", "errors?level=warn", "errors?limit=0"] {
        let response = gateway.admin_request(Method::GET, path, None).send().await.expect("it answers");
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_line_is_kept_if_the_operator_says_so() {
    let agent = ScriptedAgent::start(|_, _| Script::fails("out of order")).await;
    let keep = "[log]\nkeep = \"0s\"\n";
    let mut gateway = Gateway::builder().config(&hook("")).config(keep).config(&agent.section()).start().await;
    gateway.hook("test", TOKEN).ask("hello").await;
    assert!(gateway.stop().await.success());

    gateway.restart().await;

    assert!(gateway.log().contains("a run failed"));
    for path in ["logs", "errors"] {
        assert_eq!(gateway.admin(path).await["items"], json!([]), "{path}");
    }
}
