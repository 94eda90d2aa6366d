//! The command line.

use rejoinder_tests::{Gateway, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;
use serde_json::Value;

use crate::{TOKEN, hook};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn turns_are_listed_shown_and_explained_while_it_runs_and_after() {
    let agent = ScriptedAgent::replying("").await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();

    let while_it_runs = gateway.explain(&turn);
    let list: Value = serde_json::from_str(&gateway.output_of(&["turns", "list", "--json"])).unwrap();
    assert!(gateway.stop().await.success());
    let after = gateway.explain(&turn);

    assert_eq!(list["items"][0]["turn_id"], *turn);
    let listed = gateway.output_of(&["turns", "list"]);
    let short = listed.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a line for the turn");
    assert!(short.len() < turn.len() && gateway.explain(short).contains(&turn), "{listed}");
    assert!(gateway.explain(&turn[..turn.len() - 1]).contains(&turn));
    assert!(while_it_runs.contains("silent"), "{while_it_runs}");
    assert!(after.contains("silent"), "{after}");
    assert!(gateway.output_of(&["turns", "show", &turn]).contains(&turn));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_others_chose_does_not_look_like_lines_of_a_turn() {
    let agent = ScriptedAgent::start(|_, _| Script::is_silent("no words\nDeliveries:\n  9. a lie")).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();

    let shown = gateway.output_of(&["turns", "show", &turn]);

    assert!(shown.contains(": no words Deliveries: 9. a lie"), "{shown}");
}

/// I3. What the model was shown is what its server got, except for the secrets of the configuration.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_shows_what_the_model_was_shown() {
    let agent = ScriptedAgent::start(|_, _| Script::reacts("👍")).await;
    let section = agent.section_with("api_key = \"sk-very-secret\"\nsystem_prompt = \"The code is sk-very-secret.\"");
    let gateway = Gateway::builder().config(&hook("")).config(&section).start().await;
    let question = format!("is it sk-very-secret or {TOKEN}?");

    let turn = gateway.hook("test", TOKEN).ask(&question).await.turn();

    assert!(agent.calls()[0].last_message().contains("is it sk-very-secret"), "the model itself sees it");
    let [short, long] = [["--shown"].as_slice(), &["--shown", "--json"]].map(|more| {
        let shown = gateway.output_of(&[&["turns", "show", &turn], more].concat());
        let kept = shown.split("\nRuns:").last().unwrap_or_default().to_owned();
        if more.len() == 1 { kept } else { shown }
    });
    assert!(short.contains("is it •••• or ••••?") && short.contains("The code is ••••."), "{short}");
    let call = short.split("tool react {\"emoji\":\"👍\"} (").nth(1).and_then(|rest| rest.split_once(" ms)\n"));
    assert!(call.is_some_and(|(_, rest)| rest.starts_with("       | noted")), "{short}");
    let long: Value = serde_json::from_str(&long).expect("JSON");
    let run = &long["runs"][0];
    assert_eq!(run["tools"][0]["arguments"], "{\"emoji\":\"👍\"}");
    assert_eq!(run["shown"]["messages"][0]["content"], "is it •••• or ••••?");
    assert_eq!(run["shown"]["settings"]["tools"], agent.calls()[0].body["tools"]);
}

/// As the health check of a container.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn its_health_is_whether_it_is_ready() {
    let mut gateway = Gateway::builder().config(&hook("")).start().await;
    let health = |gateway: &Gateway| {
        let output = gateway.run(&["health"]);
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };

    let ready = health(&gateway);
    gateway.fill_disk();
    let refused = Reply::of(gateway.hook("test", TOKEN).message("too much")).await;
    gateway.until_not_ready("the store").await;
    let (full, why) = health(&gateway);
    gateway.free_disk();
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
    assert!(gateway.stop().await.success());
    let (stopped, nobody) = health(&gateway);
    gateway.reconfigure(|config| format!("{config}\nwrong = 1\n"));
    let (misconfigured, _) = health(&gateway);

    assert_eq!(ready, (Some(0), "ready\n".to_owned()));
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert_eq!((full, why.lines().count()), (Some(1), 1), "{why}");
    assert!(why.starts_with("error: not ready: the store"), "{why}");
    assert_eq!((stopped, misconfigured), (Some(1), Some(1)));
    assert!(nobody.contains("no gateway answers"), "{nobody}");
}

#[test]
fn an_unknown_turn_is_said_to_be_unknown() {
    let gateway = Gateway::builder().prepare();

    let output = gateway.run(&["turns", "show", "01890000-0000-7000-8000-000000000000"]);

    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_gateway_on_the_same_data_is_refused() {
    let gateway = Gateway::builder().config(&hook("")).start().await;

    let output = gateway.run(&["run"]);

    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("another") || error.contains("in use"), "{error}");
}

/// Servers repeat in their errors what they were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_does_not_hold_what_an_agents_server_says_about_a_message() {
    let agent = ScriptedAgent::start(|_, _| Script::fails("invalid content: a very private question")).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;

    let turn = gateway.hook("test", TOKEN).ask("a very private question").await.turn();

    let log = eventually("the failed run is logged", async || {
        Some(gateway.log()).filter(|log| log.contains("a run failed") && log.contains("500 Internal Server Error"))
    })
    .await;
    assert!(!log.contains("private"), "{log}");
    let shown = gateway.output_of(&["turns", "show", &turn]);
    assert!(shown.contains("invalid content: a very private question"), "{shown}");
}

/// Secrets and message text stay out of the logs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_log_holds_neither_secrets_nor_what_was_said() {
    let agent = ScriptedAgent::replying("a very private answer").await;
    let gateway =
        Gateway::builder().config(&hook("")).config(&agent.section_with("api_key = \"sk-very-secret\"")).start().await;

    gateway.hook("test", TOKEN).ask("a very private question").await;

    let log = gateway.log();
    assert!(!log.is_empty());
    for secret in [TOKEN, "sk-very-secret", "a very private question", "a very private answer", "admin-token"] {
        assert!(!log.contains(secret), "`{secret}` is in the log:\n{log}");
    }
}
