//! What Prometheus sees, the files for it in `ops`, and the figures of `rejoinder turns stats`.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use rejoinder_tests::{Gateway, ModelServer};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

async fn gateway() -> (ModelServer, Gateway) {
    let model = ModelServer::start().await;
    let agent = model.section_with("price = { input = 2.5, output = 10 }");
    let gateway = Gateway::builder().config(&hook("")).config(&agent).start().await;
    (model, gateway)
}

/// The value of a sample, which is written without its prefix and with single quotes.
fn value(metrics: &str, sample: &str) -> Option<f64> {
    let sample = format!("rejoinder_{} ", sample.replace('\'', "\""));
    metrics.lines().find_map(|line| line.strip_prefix(&sample)?.parse().ok())
}

/// Prometheus' own tool.
fn promtool() -> Command {
    Command::new(std::env::var_os("REJOINDER_PROMTOOL").expect("promtool: run `cargo xtask test`"))
}

/// Has it judge the names, types and help texts.
fn check(metrics: &str) {
    let mut process = promtool()
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = process.stdin.take().expect("its input is a pipe");
    input.write_all(metrics.as_bytes()).expect("it reads");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

const FIRST: &str = "first_signal_seconds_count{channel='webhook.test'}";
const SETTLED: &str = "settled_turns_total{channel='webhook.test',agent='main',signal='reply'}";
const SETTLEMENT: &str = "settlement_seconds_count{channel='webhook.test'}";
const SILENT: &str = "fallbacks_total{channel='webhook.test',cause='silent',rung='say:silent'}";
const COST: &str = "agent_cost_total{agent='main'}";

/// I3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_happens_is_counted_from_zero() {
    let (_model, gateway) = gateway().await;

    let metrics = gateway.metrics().await;
    for sample in [
        FIRST,
        SETTLED,
        SETTLEMENT,
        SILENT,
        COST,
        "events_total{channel='webhook.test',result='turn'}",
        "deferrals_total{channel='webhook.test'}",
        "labelled_deliveries_total{channel='webhook.test'}",
        "dead_letters_total{channel='webhook.test'}",
        "attempts_total{channel='webhook.test',result='unknown'}",
        "hook_requests_total{hook='test',status='503'}",
        "refused_requests_total{surface='webhook.test',reason='wrong'}",
        "runs_total{agent='main',result='failed'}",
        "agent_requests_total{agent='main',result='unreachable'}",
        "agent_tokens_total{agent='main',direction='output'}",
        "oldest_open_turn_seconds",
        "deferred_turns",
        "channel_paused{channel='webhook.test'}",
        "channel_inbound_age_seconds{channel='webhook.test'}",
        "rate_limited_seconds{channel='webhook.test'}",
    ] {
        assert_eq!(value(&metrics, sample), Some(0.0), "{sample}: {metrics}");
    }
    assert_eq!(value(&metrics, "channel_sends{channel='webhook.test'}"), Some(1.0));
    assert_eq!(value(&metrics, "agent_up{agent='main'}"), Some(1.0));
    assert!(value(&metrics, "store_free_bytes").is_some_and(|bytes| bytes > 1e6), "{metrics}");
    check(&metrics);

    gateway.hook("test", TOKEN).ask("hello").await;
    let metrics = gateway.metrics().await;
    for sample in [FIRST, SETTLED, SETTLEMENT, "runs_total{agent='main',result='reply'}"] {
        assert_eq!(value(&metrics, sample), Some(1.0), "{sample}: {metrics}");
    }
    assert_eq!(value(&metrics, SILENT), Some(0.0));
    assert!(value(&metrics, COST).is_some_and(|cost| cost > 0.0 && cost < 1.0), "{metrics}");
    assert!(metrics.contains("# TYPE rejoinder_agent_cost_total counter\n"), "{metrics}");

    gateway.hook("test", TOKEN).ask("zebra-empty").await;
    let metrics = gateway.metrics().await;
    assert_eq!((value(&metrics, SILENT), value(&metrics, SETTLED)), (Some(1.0), Some(2.0)), "{metrics}");
    // What was counted is what began at zero, with its labels in the same order.
    let samples = metrics.lines().filter(|line| line.starts_with("rejoinder_")).map(|line| {
        let mut words: Vec<_> =
            line.rsplit_once(' ').map_or(line, |(sample, _)| sample).split(['{', ',', '}']).collect();
        words.sort_unstable();
        words
    });
    let samples: Vec<_> = samples.collect();
    assert_eq!(samples.iter().collect::<BTreeSet<_>>().len(), samples.len(), "a sample is there twice: {metrics}");
    check(&metrics);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_member_of_an_agent_has_figures_of_its_own() {
    let model = ModelServer::start().await;
    let agent = model.section_with("price = { input = 2.5, output = 10 }");
    let both = "[agents.desk]\nkind = \"front-desk\"\n\
                [agents.both]\nkind = \"cascade\"\nmembers = [\"main\", \"desk\"]\n\
                [routing]\ndefault_agent = \"both\"\n";
    let gateway = Gateway::builder().config(&hook("")).config(&agent).config(both).start().await;

    gateway.hook("test", TOKEN).ask("hello").await;

    let agents = gateway.admin("agents").await;
    let both = agents["items"].as_array().and_then(|agents| agents.iter().find(|agent| agent["name"] == "both"));
    let both = both.expect("it is listed");
    let (main, desk) = (&both["members"][0], &both["members"][1]);
    assert!(main["p95_ms"].is_u64() && main["cost"]["amount"].as_f64() > Some(0.0), "{agents}");
    for figure in ["input_tokens", "output_tokens", "cost"] {
        assert_eq!(main[figure], both[figure], "one run, one member: {agents}");
    }
    assert_eq!((&desk["input_tokens"], &desk["p95_ms"], &desk["cost"]), (&json!(0), &Value::Null, &Value::Null));
    let metrics = gateway.metrics().await;
    let tokens = |member: &str| {
        value(&metrics, &format!("member_tokens_total{{agent='both',member='{member}',direction='output'}}"))
    };
    assert_eq!((tokens("main"), tokens("desk")), (main["output_tokens"].as_f64(), Some(0.0)), "{metrics}");
    assert!(value(&metrics, "member_cost_total{agent='both',member='main'}") > Some(0.0), "{metrics}");
    assert!(!metrics.contains("rejoinder_member_cost_total{agent=\"both\",member=\"desk\"}"), "{metrics}");
    check(&metrics);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_promise_is_told_as_figures() {
    let (_model, mut gateway) = gateway().await;
    for message in ["hello", "hello", "zebra-empty"] {
        gateway.hook("test", TOKEN).ask(message).await;
    }
    gateway.stop().await;

    let figures: Value = serde_json::from_str(&gateway.output_of(&["turns", "stats", "--json"])).expect("it is JSON");
    let of_hook = &figures["channels"]["webhook.test"];
    assert_eq!(of_hook, &figures["total"]);
    assert_eq!((&of_hook["owed"], &of_hook["open"], &of_hook["prompt"]), (&json!(3), &json!(0), &json!(3)));
    assert_eq!(of_hook["settled"], json!({ "reply": 3 }));
    assert_eq!(of_hook["fallbacks"], json!([{ "cause": "silent", "rung": "say:silent", "turns": 1 }]));
    assert!(figures["log_begins_at"].is_string(), "the log is younger than a week: {figures}");

    let text = gateway.output_of(&["turns", "stats", "--since", "1h", "--channel", "webhook.test"]);
    assert!(text.contains("webhook.test  silent  say:silent  1"), "{text}");
    let other = gateway.output_of(&["turns", "stats", "--channel", "webhook.other", "--json"]);
    let other: Value = serde_json::from_str(&other).expect("it is JSON");
    assert_eq!((&other["total"]["owed"], &other["total"]["p50_ms"]), (&json!(0), &Value::Null));
}

/// What is in `file`, whose path begins at the top of the repository.
fn text_of(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).expect(file)
}

/// The names of the samples that docs/metrics.md promises, such as `rejoinder_run_seconds_bucket`.
fn documented_samples() -> BTreeSet<String> {
    let page = text_of("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let samples = rows.flat_map(|(name, row)| {
        let suffixes: &[&str] = if row.starts_with("histogram ") { &["_bucket", "_count", "_sum"] } else { &[""] };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    });
    samples.collect()
}

/// A query for another name finds nothing: the alert stays silent, and the panel empty.
#[test]
fn alerts_and_the_dashboard_ask_for_samples_that_exist() {
    let documented = documented_samples();
    for file in ["ops/prometheus/alerts.yml", "ops/prometheus/alerts_test.yml", "ops/grafana/rejoinder.json"] {
        let text = text_of(file);
        let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let named: BTreeSet<_> =
            words.filter(|word| word.starts_with("rejoinder_") || word.starts_with("process_")).collect();
        let unknown: Vec<_> = named.iter().filter(|name| !documented.contains(**name)).collect();
        assert!(!named.is_empty() && unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn prometheus_accepts_the_rules_and_the_sample() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops/prometheus");
    for arguments in [
        "check rules --lint=all --lint-fatal alerts.yml",
        "test rules alerts_test.yml",
        // Without the files that it names: the token's is on the operator's machine only.
        "check config --syntax-only prometheus.yml",
    ] {
        let output = promtool().args(arguments.split(' ')).current_dir(&folder).output().expect("promtool starts");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {arguments}:\n{}", String::from_utf8_lossy(&said));
    }
}
