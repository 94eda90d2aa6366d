//! Workers fetch the turns of an agent, among them the one of `docs/examples/pull_worker.py`.

use std::path::{Path, PathBuf};

use rejoinder_tests::{AgeKey, Gateway, GatewayBuilder, Hook, Process, Reply, ScriptedAgent, eventually};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{TOKEN, hook};

const FAILED: &str = "Sorry, that did not work. Please try again.";

fn fleet(keys: &str) -> GatewayBuilder {
    let agent = format!("[agents.fleet]\nkind = \"pull\"\ntoken = \"{TOKEN}\"\n{keys}\n");
    Gateway::builder().config(&hook("")).config(&agent).config("[routing]\ndefault_agent = \"fleet\"\n")
}

fn url(gateway: &Gateway) -> String {
    format!("{}/agents/fleet", gateway.url())
}

/// The example, until it is dropped.
fn example(gateway: &Gateway) -> Process {
    worker(gateway, &example_path())
}

fn example_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/pull_worker.py")
}

fn worker(gateway: &Gateway, program: &Path) -> Process {
    Process::python(program, &[], &[("REJOINDER_URL", &url(gateway)), ("REJOINDER_TOKEN", TOKEN)])
}

/// What a worker that is not the example fetched.
pub(crate) async fn fetch(gateway: &Gateway) -> Value {
    eventually("a turn is fetched", async || fetch_within(gateway, 5).await).await
}

/// What a worker that is not the example fetched within so many seconds.
pub(crate) async fn fetch_within(gateway: &Gateway, seconds: u32) -> Option<Value> {
    let request = gateway.http().get(format!("{}/next?wait={seconds}", url(gateway))).bearer_auth(TOKEN);
    let response = request.send().await.ok()?;
    if response.status() == StatusCode::OK { response.json().await.ok() } else { None }
}

/// Posts something about a turn, and returns the status.
pub(crate) async fn post(gateway: &Gateway, turn: &Value, below: &str, mut body: Value) -> StatusCode {
    body["lease"] = turn["lease"].clone();
    let path = format!("{}/turns/{}{below}", url(gateway), turn["turn_id"].as_str().expect("an id"));
    let request = gateway.http().post(path).bearer_auth(TOKEN).json(&body);
    request.send().await.expect("an answer").status()
}

async fn settled(hook: &Hook, turn: &Value) -> String {
    hook.until_settled(turn["turn_id"].as_str().expect("an id")).await.text().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_example_answers() {
    let gateway = fleet("").start().await;
    let _worker = example(&gateway);

    for said in ["hello", "and again"] {
        let reply = gateway.hook("test", TOKEN).ask(said).await;

        assert_eq!((reply.state(), reply.text()), ("answered", format!("You said: {said}").as_str()));
    }
    eventually("the worker asks again", async || {
        let agents = gateway.admin("agents").await;
        agents["items"][0]["description"].as_str()?.starts_with("pull, 1 worker").then_some(())
    })
    .await;
}

/// No worker could fetch the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_of_it_says_at_once_that_a_gateway_must_run() {
    let both = "[agents.desk]\nkind = \"front-desk\"\n\
                [agents.both]\nkind = \"cascade\"\nmembers = [\"fleet\", \"desk\"]\n";
    let gateway = fleet("").config(both).prepare();

    let alone = gateway.run(&["agents", "test", "fleet"]);
    let as_member = gateway.output_of(&["agents", "test", "both"]);

    let said = String::from_utf8_lossy(&alone.stderr);
    let why = "workers fetch the turns of `fleet` from a running gateway only";
    assert!(alone.status.code() == Some(1) && said.contains(why), "{said}");
    assert!(as_member.contains(&format!("[it failed: the agent cannot be reached: {why}")), "{as_member}");
    assert!(as_member.contains("\nOutcome: reply, by desk\n"), "{as_member}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_two_workers_one_is_gone_and_the_turn_is_answered_once() {
    let gateway = fleet("lease = \"1s\"").start().await;
    let hook = gateway.hook("test", TOKEN);
    let accepted = hook.send("hello").await;

    let lost = fetch(&gateway).await;
    let _worker = example(&gateway);

    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "You said: hello");
    assert_eq!(post(&gateway, &lost, "", json!({ "reply": "too late" })).await, StatusCode::CONFLICT);
    assert_eq!(settled(&hook, &lost).await, "You said: hello");
    let log = gateway.log();
    assert!(log.contains("a worker let its lease end without an answer"), "{log}");
    assert!(log.contains("what a worker sent with this lease is not used"), "{log}");
    let path = format!("turns/{}", accepted.turn());
    let refused = eventually("it is recorded", async || {
        let record = gateway.admin(&path).await;
        record["remarks"].as_array()?.iter().find(|remark| remark["kind"] == "refused").cloned()
    })
    .await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.starts_with("`reply`, with the lease 1.1, from a worker of `fleet` at "), "{refused}");
    let explained = gateway.explain(&accepted.turn());
    assert!(explained.contains("Refused `reply`, with the lease 1.1"), "{explained}");
}

/// D1: the first worker dies while it works, and would have held the turn otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_is_killed_leaves_its_turn_to_another_one() {
    let gateway = fleet("lease = \"1s\"").start().await;
    let hook = gateway.hook("test", TOKEN);
    let folder = tempfile::tempdir().expect("a folder");
    let (program, works) = (folder.path().join("worker.py"), folder.path().join("works"));
    let source = std::fs::read_to_string(example_path()).expect("the example");
    let hangs = source.replace("pause = 10", "pause = 0.2").replace(
        "    return {\"reply\"",
        &format!("    open({works:?}, \"w\"); time.sleep(600)\n    return {{\"reply\""),
    );
    std::fs::write(&program, hangs).expect("a worker");
    let first = worker(&gateway, &program);

    let accepted = hook.send("hello").await;
    eventually("the first worker works", async || works.exists().then_some(())).await;
    let _second = example(&gateway);
    eventually("both are there", async || {
        let agents = gateway.admin("agents").await;
        agents["items"][0]["description"].as_str()?.starts_with("pull, 2 workers").then_some(())
    })
    .await;
    let before = hook.result(&accepted.turn(), 2).await;
    let agents = gateway.admin("agents").await;
    assert_eq!((&agents["items"][0]["running"], &agents["items"][0]["waiting"]), (&json!(1), &json!(0)), "{agents}");
    first.kill();

    assert_eq!(before.state(), "accepted");
    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "You said: hello");
    let ended = gateway.log().matches("a worker let its lease end without an answer").count();
    assert_eq!(ended, 1, "{}", gateway.log());
}

/// The status of what a worker sends again until the gateway has begun.
async fn after_the_start(gateway: &Gateway, turn: &Value, below: &str, body: Value) -> StatusCode {
    eventually("the gateway has begun", async || {
        let status = post(gateway, turn, below, body.clone()).await;
        (status != StatusCode::SERVICE_UNAVAILABLE).then_some(status)
    })
    .await
}

/// D1. Its worker goes on with the lease that it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_outlives_a_gateway_that_is_killed_and_one_that_is_stopped() {
    let mut gateway = fleet("").start().await;
    let hook = gateway.hook("test", TOKEN);
    hook.send("hello").await;
    let turn = fetch(&gateway).await;

    gateway.kill();
    gateway.restart().await;
    assert_eq!(after_the_start(&gateway, &turn, "/renew", json!({})).await, StatusCode::OK);
    gateway.stop().await;
    gateway.restart().await;
    let answer = json!({ "reply": "after all" });
    assert_eq!(after_the_start(&gateway, &turn, "", answer.clone()).await, StatusCode::NO_CONTENT);

    assert_eq!(settled(&hook, &turn).await, "after all");
    assert_eq!(post(&gateway, &turn, "", answer).await, StatusCode::NO_CONTENT, "it may be sent again");
    assert_eq!(post(&gateway, &turn, "", json!({ "reply": "no" })).await, StatusCode::CONFLICT);
    let explained = gateway.explain(turn["turn_id"].as_str().expect("an id"));
    assert!(!explained.contains(turn["lease"].as_str().expect("a lease")), "{explained}");
}

/// D1. The lease of a worker that is gone as well ends, and another one has the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_that_is_killed_with_its_worker_gets_one_answer() {
    let mut gateway = fleet("lease = \"3s\"").start().await;
    let hook = gateway.hook("test", TOKEN);
    hook.send("hello").await;
    let before = fetch(&gateway).await;

    gateway.kill();
    gateway.restart().await;
    let after = fetch(&gateway).await;

    assert_eq!((&after["turn_id"], &after["attempt"]), (&before["turn_id"], &json!(2)));
    assert_eq!(post(&gateway, &before, "/renew", json!({})).await, StatusCode::CONFLICT);
    assert_eq!(post(&gateway, &before, "", json!({ "reply": "before" })).await, StatusCode::CONFLICT);
    assert_eq!(post(&gateway, &after, "", json!({ "reply": "after" })).await, StatusCode::NO_CONTENT);
    assert_eq!(settled(&hook, &after).await, "after");
}

/// D1. The example works once, although the gateway is killed meanwhile and is away when it answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_example_answers_a_gateway_that_was_killed_while_it_worked() {
    let mut gateway = fleet("").start().await;
    let hook = gateway.hook("test", TOKEN);
    let folder = tempfile::tempdir().expect("a folder");
    let (program, works, done) =
        (folder.path().join("worker.py"), folder.path().join("works"), folder.path().join("done"));
    let source = std::fs::read_to_string(example_path()).expect("the example");
    let slow = format!(
        "    open({works:?}, \"a\").write(\"x\")\n    while not os.path.exists({done:?}): time.sleep(0.05)\n    return {{\"reply\""
    );
    std::fs::write(&program, source.replace("    return {\"reply\"", &slow)).expect("a worker");
    let _worker = worker(&gateway, &program);

    let accepted = hook.send("hello").await;
    eventually("it works", async || works.exists().then_some(())).await;
    gateway.kill();
    std::fs::write(&done, "").expect("it may answer");
    gateway.restart().await;

    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "You said: hello");
    assert_eq!(std::fs::read_to_string(&works).expect("what it did"), "x", "once");
}

/// A10.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_comes_late_pays_the_deferral() {
    let gateway = fleet("").config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = hook.ask("hello").await;
    let _worker = example(&gateway);

    assert_eq!(deferred.state(), "deferred");
    assert_eq!(hook.until_settled(&deferred.turn()).await.text(), "You said: hello");
}

/// C5.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn workers_that_are_all_gone_become_one_fallback() {
    let gateway = fleet("lease = \"1s\"\nmax_leases = 2").start().await;
    let hook = gateway.hook("test", TOKEN);
    let accepted = hook.send("hello").await;

    fetch(&gateway).await;
    fetch(&gateway).await;

    let result = hook.until_settled(&accepted.turn()).await;
    assert_eq!(result.text(), FAILED);
    let explained = gateway.explain(&accepted.turn());
    assert!(explained.contains("2 leases of workers ended without an answer"), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_that_is_cancelled_is_taken_from_its_worker() {
    let gateway = fleet("").start().await;
    let hook = gateway.hook("test", TOKEN);
    let accepted = hook.send("hello").await;
    let turn = fetch(&gateway).await;
    assert_eq!(post(&gateway, &turn, "/renew", json!({})).await, StatusCode::OK);

    let cancel = gateway.admin_request(reqwest::Method::POST, &format!("turns/{}/cancel", accepted.turn()), None);
    assert!(cancel.json(&json!({})).send().await.expect("an answer").status().is_success());

    eventually("the worker is told to stop", async || {
        (post(&gateway, &turn, "/renew", json!({})).await == StatusCode::CONFLICT).then_some(())
    })
    .await;
    assert_eq!(post(&gateway, &turn, "", json!({ "reply": "too late" })).await, StatusCode::CONFLICT);
    gateway.until_settled().await;
}

/// The asker opens the answer with a real implementation of age, and nobody else can: not the store, the log nor the operator.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_is_sealed_is_read_by_its_asker_alone() {
    let gateway = fleet("").start().await;
    let (hook, key) = (gateway.hook("test", TOKEN), AgeKey::new());
    let _worker = example(&gateway);
    let asks = |message: &str, seal_to: Option<&str>| {
        hook.call().json(&json!({ "message": message, "conversation": "ada", "seal_to": seal_to }))
    };

    let sealed = Reply::of(asks("what is it?", Some(&key.recipient))).await;
    let plain = Reply::of(asks("and now?", None)).await;

    assert_eq!((sealed.state(), &sealed.body["sealed"]), ("answered", &json!(true)));
    assert_eq!(key.open(sealed.text()).as_deref(), Some("You said: what is it?"));
    assert_eq!(AgeKey::new().open(sealed.text()), None, "another key opens it");
    assert_eq!((plain.text(), &plain.body["sealed"]), ("You said: and now?", &Value::Null));
    let result = format!("{}/hooks/test/turns/{}", gateway.url(), sealed.turn());
    let again = Reply::of(gateway.http().get(result).bearer_auth(TOKEN).header("Accept", "text/plain")).await;
    assert_eq!(again.body, sealed.text());
    let explained = gateway.explain(&sealed.turn());
    assert!(explained.contains("(a sealed answer)") && !explained.contains("You said"), "{explained}");
    assert!(is_stored(&gateway, "You said: and now?") && !is_stored(&gateway, "You said: what is it?"));
}

/// Whether the text stands in a file of the gateway's data.
fn is_stored(gateway: &Gateway, text: &str) -> bool {
    let files = std::fs::read_dir(gateway.data()).expect("a folder").map(|file| file.expect("a file").path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = std::fs::read(path).expect("it is read");
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

/// The worker still has the turn, and may end it without an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_in_the_clear_is_refused_to_an_asker_who_wants_it_sealed() {
    let gateway = fleet("").start().await;
    let (hook, key) = (gateway.hook("test", TOKEN), AgeKey::new());
    let request = hook.call().json(&json!({ "message": "what is it?", "seal_to": key.recipient }));
    let accepted = Reply::of(request.header("Prefer", "wait=0")).await;

    let turn = fetch(&gateway).await;
    assert_eq!(turn["seal_to"], key.recipient);
    assert_eq!(post(&gateway, &turn, "", json!({ "reply": "the heart" })).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(post(&gateway, &turn, "", json!({ "sealed": "the heart" })).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(post(&gateway, &turn, "", json!({ "silent": "no idea" })).await, StatusCode::NO_CONTENT);

    let result = hook.until_settled(&accepted.turn()).await;
    assert_eq!((&result.body["fallback"]["cause"], &result.body["sealed"]), (&json!("silent"), &Value::Null));
}

/// What a model says is never sealed, so it is not asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agent_that_cannot_seal_is_not_asked() {
    let agent = ScriptedAgent::replying("In the clear.").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let (hook, key) = (gateway.hook("test", TOKEN), AgeKey::new());

    let reply = Reply::of(hook.call().json(&json!({ "message": "what is it?", "seal_to": key.recipient }))).await;
    let refused = Reply::of(hook.call().json(&json!({ "message": "what is it?", "seal_to": "age1nobody" }))).await;

    assert_eq!((reply.text(), &reply.body["fallback"]["cause"]), (FAILED, &json!("error")));
    assert_eq!((refused.status, &refused.body["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("seal_to")));
    assert!(agent.calls().is_empty());
    let explained = gateway.explain(&reply.turn());
    assert!(explained.contains("is to be sealed to the key of the asker"), "{explained}");
}
