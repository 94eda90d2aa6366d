//! Rules of routing, and what `rejoinder route explain` says of them.

use rejoinder_tests::{Gateway, ScriptedAgent};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

const RULES: &str = r#"[routing]
default_agent = "main"
time_zone = "Europe/Vienna"
[[routing.rules]]
name = "group"
chat = "group"
language = "de"
[[routing.rules]]
name = "code"
command = "/code"
agent = "coder"
hard_deadline = "1h"
[[routing.rules]]
name = "night"
between = "22:00-07:00"
soft_deadline = "5s"
[guard.deadlines.webhook]
soft_deadline = "15s"
"#;

/// A gateway with two agents, and what they answer.
async fn gateway() -> (Gateway, [ScriptedAgent; 2]) {
    let (main, coder) = (ScriptedAgent::replying("I am main.").await, ScriptedAgent::replying("I am coder.").await);
    let of_coder = coder.section().replace("[agents.main]", "[agents.coder]");
    let builder = Gateway::builder().config(&hook("")).config(&main.section()).config(&of_coder).config(RULES);
    (builder.start().await, [main, coder])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_route_is_what_explain_said_and_stands_with_the_turn() {
    let (gateway, _agents) = gateway().await;
    let noon =
        ["route", "explain", "--channel", "webhook.test", "--person", "ada", "--at", "2026-05-01T12:00:00+02:00"];

    let text = gateway.output_of(&[&noon[..], &["--text", "/code fix it"]].concat());
    assert!(text.contains("group  no "), "{text}");
    assert!(text.contains(r#"chat = "group", but it is in a direct chat"#), "{text}");
    assert!(text.contains("Goes to     the agent coder\nOwed        an answer"), "{text}");
    assert!(text.contains("Deadlines   a deferral after 15.0 s, the ladder after 3600.0 s"), "{text}");
    let asked = gateway.hook("test", TOKEN).ask("/code fix it").await;
    assert_eq!(asked.text(), "I am coder.");
    assert_eq!(gateway.admin(&format!("turns/{}", asked.turn())).await["rule"], "code");
    let explained = gateway.output_of(&["turns", "explain", &asked.turn()]);
    assert!(explained.contains("It was routed by the rule `code`."), "{explained}");

    let at = |time: &str| -> Value {
        let arguments = ["route", "explain", "--channel", "webhook.test", "--chat", "ada", "--json", "--at", time];
        serde_json::from_str(&gateway.output_of(&arguments)).expect("it is JSON")
    };
    let (day, night) = (at("2026-05-01T12:00:00+02:00"), at("2026-05-01T21:30:00Z"));
    assert_eq!((&day["rule"], &day["soft_deadline_ms"], &day["agent"]), (&Value::Null, &json!(15_000), &json!("main")));
    assert_eq!((&night["rule"], &night["soft_deadline_ms"]), (&json!("night"), &json!(5_000)));
    assert_eq!(day["rules"][2]["found"], "came at 12:00");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_cannot_be_explained_is_an_error() {
    let (gateway, _agents) = gateway().await;

    for arguments in [["--channel", "webhook.other", "--chat", "1"], ["--channel", "webhook.test", "--at", "noon"]] {
        assert!(!gateway.run(&[&["route", "explain"], &arguments[..]].concat()).status.success(), "{arguments:?}");
    }
}
