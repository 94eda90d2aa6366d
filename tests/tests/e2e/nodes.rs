//! Nodes, as operators see them: with SQLite there is one.

use rejoinder_tests::{Gateway, ScriptedAgent};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

async fn gateway() -> (Gateway, ScriptedAgent) {
    let agent = ScriptedAgent::replying("done").await;
    (Gateway::builder().config(&hook("")).config(&agent.section()).start().await, agent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_with_sqlite_is_one_node_that_has_everything() {
    let (gateway, _agent) = gateway().await;

    let list: Value = serde_json::from_str(&gateway.output_of(&["nodes", "list", "--json"])).expect("it is JSON");
    let [node] = list["items"].as_array().expect("a list").as_slice() else { panic!("{list}") };
    assert_eq!((&node["this"], &node["draining"], &node["clock_ms"]), (&json!(true), &json!(false), &json!(0)));
    assert_eq!(node["leases"], json!(["webhook.test", "housekeeper"]));
    assert!(node["since"].is_string() && node["held"][0]["since"].is_string(), "{node}");
    let text = gateway.output_of(&["nodes", "list"]);
    assert!(text.contains("webhook.test, housekeeper") && text.contains("works"), "{text}");
    let overview = gateway.admin("overview").await;
    assert_eq!(overview["nodes"][0]["node"], node["node"]);

    let metrics = gateway.metrics().await;
    for sample in ["rejoinder_nodes 1", "rejoinder_lease_held{lease=\"webhook.test\"} 1", "rejoinder_draining 0"] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
}

/// Its channels would stand still.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_only_node_is_not_drained() {
    let (gateway, _agent) = gateway().await;
    let drained = gateway.command(&["nodes", "drain", "--this"]).output().expect("it runs");
    assert!(!drained.status.success());
    let said = String::from_utf8_lossy(&drained.stderr);
    assert!(said.contains("no other node can take over"), "{said}");

    let unknown = "nodes/00000000-0000-7000-8000-000000000000/drain";
    let answer = gateway.admin_request(Method::POST, unknown, None).json(&json!({})).send().await.expect("it answers");
    assert!(answer.status().is_client_error(), "{answer:?}");
    let viewer = gateway.output_of(&["tokens", "create", "--role", "viewer", "--name", "ada"]);
    let viewer = viewer.trim();
    let answer = gateway.admin_request(Method::POST, unknown, Some(viewer)).send().await.expect("it answers");
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    gateway.hook("test", TOKEN).ask("hello").await;
}
