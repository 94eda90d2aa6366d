//! What the operator is told while some things fail and others work.

use rejoinder_telegram_double::{Fault, Person, TelegramDouble};
use rejoinder_tests::{Gateway, PATIENCE, Pager, ScriptedAgent, eventually};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{between, telegram};

/// Sends fail to nobody but them, which is no trouble of the channel: others write meanwhile, and are answered.
async fn eventually_while_others_are_answered<T>(about: &str, other: &Person, check: impl AsyncFn() -> Option<T>) -> T {
    eventually(about, async || {
        other.next_after(other.says("hello")).await;
        check().await
    })
    .await
}

fn told_by(pager: &Pager) -> String {
    format!("[alerts]\nto = [\"{}\"]\nafter = \"1s\"\nwindow = \"2s\"\n", pager.path().display())
}

async fn problems(gateway: &Gateway) -> Vec<Value> {
    gateway.admin("overview").await["problems"].as_array().expect("a list").clone()
}

/// An operator's message is owed to nobody, and still somebody should know.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_that_gets_nowhere_is_a_problem_until_it_arrives() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let pager = Pager::new();
    let gateway = Gateway::builder()
        .config(&telegram(&double, "streaming = \"off\""))
        .config(&agent.section())
        .config(&told_by(&pager))
        .start()
        .await;
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));
    ada.says("hello");
    ada.hears("Hello.").await;
    double.fault(Fault::page_before(502).on("sendMessage").in_chat(ada.chat()).forever());
    let message = json!({ "to": format!("telegram.test/{}", ada.chat()), "text": "We are back." });
    let sent = gateway.admin_request(Method::POST, "messages", None).json(&message).send().await.expect("it answers");
    assert!(sent.status().is_success(), "{sent:?}");

    let alert =
        eventually_while_others_are_answered("somebody is told", &bob, async || pager.told("parked").pop()).await;
    let problem = problems(&gateway).await.pop().expect("a problem");
    let status = gateway.run(&["status"]);
    let is_counted = async || gateway.readiness().await.1.contains("\"parked_deliveries\":1").then_some(());
    eventually("the readiness, which reads once a second, counts it", is_counted).await;

    let text = alert["text"].as_str().expect("a text");
    assert!(text.starts_with("One message gets nowhere on telegram.test since ") && text.contains(" ago): "), "{text}");
    assert_eq!((&problem["kind"], &problem["subject"]), (&json!("parked"), &json!("telegram.test")), "{problem}");
    let printed = String::from_utf8(status.stdout).expect("text");
    assert!(
        printed.contains("One message gets nowhere on telegram.test since ") && !status.status.success(),
        "{printed}"
    );
    double.clear_faults();
    ada.hears("We are back.").await;
    let is_over = |alert: &Value| alert["data"]["ended"][0]["kind"] == "parked";
    eventually("it is over", async || pager.alerts().iter().any(is_over).then_some(())).await;
    double.all_confirmed().await;
}

/// A channel that nobody uses any more must not hide that people on another one see no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn people_who_wait_on_one_channel_are_told_while_another_is_down() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let pager = Pager::new();
    let old = format!("[channels.telegram.old]\ntoken = \"1:dead\"\napi_url = \"{}\"\n", double.url());
    let config = "[guard]\nsoft_deadline = \"2s\"\nhard_deadline = \"10m\"\n";
    let mut gateway = Gateway::builder()
        .config(&telegram(&double, "streaming = \"off\""))
        .config(&old)
        .config(&agent.section())
        .config(config)
        .config(&told_by(&pager))
        .prepare();
    gateway.spawn(&[]);
    eventually("the old channel is told", async || pager.told("channel").pop()).await;
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));
    double.fault(Fault::page_before(502).on("sendMessage").in_chat(ada.chat()).forever());
    ada.says("are you there?");

    let alert =
        eventually_while_others_are_answered("somebody is told", &bob, async || pager.told("overdue").pop()).await;

    let text = alert["text"].as_str().expect("a text");
    assert!(text.contains("late") && !text.contains("telegram.old"), "{text}");
    double.clear_faults();
    ada.hears("Hello.").await;
    double.all_confirmed().await;
}

/// It may take a minute. Of two changes meanwhile the later holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn alerts_change_while_one_hangs() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (earlier, later) = (Pager::new(), Pager::new());
    let path = |pager: &Pager| pager.path().display().to_string();
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/alerts", silent.local_addr().expect("its address"));
    let gateway = between(&double, &agent).config(&told_by(&earlier).replace(&path(&earlier), &url)).start().await;
    gateway.reconfigure(|config| format!("{config}\n[nonsense]\n"));
    gateway.hang_up();
    let (held, _) = tokio::time::timeout(PATIENCE, silent.accept()).await.expect("in time").expect("an alert");

    gateway.reconfigure(|config| config.replace("[nonsense]\n", "").replace(&url, &path(&earlier)));
    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Changed: alerts.to.");
    gateway.reconfigure(|config| config.replace(&path(&earlier), &path(&later)));
    assert_eq!(gateway.output_of(&["config", "reload"]).trim(), "Changed: alerts.to.");
    let wrong = gateway.admin("alerts").await;

    assert_eq!(wrong["items"][0]["kind"], "error", "{wrong}");
    drop((held, silent));
    eventually("the later target is told", async || later.told("error").pop()).await;
    assert_eq!(earlier.alerts(), Vec::<Value>::new());
}

/// The same error is no news a second time, also over a restart, once somebody has seen it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_new_error_is_told_until_it_is_acknowledged() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let pager = Pager::new();
    let mut gateway = between(&double, &agent).config(&told_by(&pager)).start().await;
    gateway.reconfigure(|config| format!("{config}\n[nonsense]\n"));
    gateway.hang_up();
    let alert = eventually("somebody is told", async || pager.told("error").pop()).await;
    let headline = gateway.admin("overview").await["headline"].clone();
    // Commands read the configuration as well.
    gateway.reconfigure(|config| config.replace("[nonsense]\n", ""));

    let id = alert["subject"].as_str().expect("its id").to_owned();
    let text = alert["text"].as_str().expect("a text");
    assert!(text.starts_with("A new error, \u{201c}a reload was refused"), "{text}");
    assert!(headline.as_str().is_some_and(|words| words.starts_with("A new error, ")), "{headline}");
    let listed = gateway.output_of(&["errors", "list"]);
    assert!(listed.lines().any(|line| line.starts_with(&id) && line.contains(" new ")), "{listed}");
    let _ = gateway.output_of(&["errors", "acknowledge", &id, "--reason", "my typo"]);
    eventually("it is over", async || {
        pager.alerts().iter().any(|alert| alert["data"]["ended"][0]["kind"] == "error").then_some(())
    })
    .await;
    let audit = gateway.admin("audit").await;
    assert_eq!(audit["items"][0]["action"], "acknowledge_error", "{audit}");
    gateway.stop().await;
    gateway.restart().await;
    gateway.reconfigure(|config| format!("{config}\n[nonsense]\n"));
    gateway.hang_up();
    let is_counted = async || {
        let errors = gateway.admin("errors").await;
        let items = errors["items"].as_array().expect("a list").clone();
        items.into_iter().find(|error| error["id"].as_i64() == id.parse().ok() && error["count"] == 2)
    };
    eventually("it has happened again", is_counted).await;

    assert_eq!(gateway.admin("overview").await["problems"], json!([]));
    assert_eq!(pager.told("error").len(), 1);
}
