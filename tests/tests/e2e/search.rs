//! The search in what was said, over the admin API.

use rejoinder_tests::{Gateway, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

async fn items(gateway: &Gateway, query: &str) -> Vec<Value> {
    gateway.admin(&format!("search?{query}")).await["items"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_is_found_page_by_page_and_after_a_crash() {
    let agent = ScriptedAgent::replying("The night train leaves at 22:05.").await;
    let other = format!("[channels.webhook.other]\ntoken = \"{TOKEN}-other\"\n");
    let mut gateway = Gateway::builder().config(&hook("")).config(&other).config(&agent.section()).start().await;
    let turn = gateway.hook("test", TOKEN).ask("When does the train to Zürich leave?").await.turn();
    gateway.kill();
    gateway.restart().await;
    let later = gateway.hook("other", &format!("{TOKEN}-other")).ask("and the other train?").await.turn();
    eventually("all is indexed", async || (items(&gateway, "q=train").await.len() == 4).then_some(())).await;

    let found = items(&gateway, "q=zurich").await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["turn_id"], json!(turn));
    assert_eq!(found[0]["channel"], "webhook.test");
    assert_eq!(found[0]["speaker"], "person");
    assert_eq!(found[0]["excerpt"], "When does the train to Zürich leave?");
    assert!(found[0]["conversation_id"].is_string() && found[0]["at"].is_string(), "{found:?}");
    let found = items(&gateway, "q=%22night%20train%22%20leav&channel=webhook.other").await;
    assert_eq!((found.len(), &found[0]["turn_id"], &found[0]["name"]), (1, &json!(later), &json!("main")));
    let first = gateway.admin("search?q=train&limit=3").await;
    let next = first["next"].as_str().expect("there is another page");
    assert_eq!(
        (first["items"][0]["speaker"].as_str(), first["items"][0]["turn_id"].clone()),
        (Some("agent"), json!(later))
    );
    let second = gateway.admin(&format!("search?q=train&limit=3&before={next}")).await;
    assert_eq!((second["items"].as_array().map(Vec::len), &second["next"]), (Some(1), &Value::Null));

    let made = gateway.output_of(&["tokens", "create", "--role", "viewer", "--channel", "webhook.other", "--json"]);
    let made: Value = serde_json::from_str(&made).expect("it is JSON");
    let get = async |query: &str| {
        let path = format!("search?{query}");
        let request = gateway.admin_request(Method::GET, &path, made["token"].as_str());
        let response = request.send().await.expect("it answers");
        (response.status(), response.json::<Value>().await.expect("it is JSON"))
    };
    assert_eq!(get("q=train").await.1["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(get("q=train&channel=webhook.test").await.1["items"], json!([]));
    for (query, reason) in [
        ("", "q"),
        ("q=", "a word"),
        ("q=%3F%21", "a word"),
        ("q=%00", "U+0000"),
        ("q=train&limit=0", "limit"),
        ("q=train&conversation=x", "conversation"),
        ("q=train&since=x", "since"),
        (&format!("q={}", "a".repeat(257)), "256"),
    ] {
        let (status, problem) = get(query).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(reason)), "{query}: {problem}");
    }
}
