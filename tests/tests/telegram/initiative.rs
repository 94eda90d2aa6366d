//! The gateway speaks first on Telegram, and the process ends at each step meanwhile.

use std::time::Duration;

use rejoinder_core::{Clock as _, ScheduleCall, ScheduledAction, SystemClock, When};
use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, TURN_STEPS, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::between;

/// The steps of a message of the gateway's own. At the last one it may have arrived without the gateway knowing.
const STEPS: [&str; 6] =
    ["received:1", "accepted:1", "before_commit:1", "after_commit:1", "attempt_started:1", "attempt_ended:1"];

async fn met(double: &TelegramDouble, agent: &ScriptedAgent) -> (Gateway, Person) {
    let mut gateway = between(double, agent).start().await;
    let ada = double.person("Ada");
    ada.says("hello");
    ada.hears("Hello.").await;
    gateway.until_settled().await;
    double.all_confirmed().await;
    gateway.stop().await;
    (gateway, ada)
}

/// A request of an operator, whose answer is lost if the process ends.
pub(crate) async fn posts(gateway: &Gateway, path: &str, body: &Value, key: &str) -> Option<StatusCode> {
    let request = gateway.admin_request(Method::POST, path, None).header("Idempotency-Key", key).json(body);
    request.send().await.ok().map(|response| response.status())
}

/// How many messages are in the audit for this reason.
async fn audited(gateway: &Gateway, reason: &str) -> usize {
    let request = gateway.admin_request(Method::GET, "audit?limit=100", None);
    let audit: Value = request.send().await.expect("it answers").json().await.expect("JSON");
    let items = audit["items"].as_array().expect("a list");
    items.iter().filter(|it| it["action"] == "message" && it["reason"] == reason).count()
}

/// Adds a schedule that is named after a step, runs it in a process that ends at the step, and asks for the same run again.
pub(crate) async fn runs_dying_at(gateway: &mut Gateway, step: &str, schedule: &Value) {
    let added = posts(gateway, "schedules", schedule, &format!("add {step}")).await;
    assert_eq!(added, Some(StatusCode::CREATED), "{step}");
    gateway.stop().await;
    gateway.spawn_crashing_at(step);
    gateway.until_ready().await;
    posts(gateway, &format!("schedules/{step}/run"), &json!({}), step).await;
    gateway.until_crashed().await;
    gateway.restart().await;
    posts(gateway, &format!("schedules/{step}/run"), &json!({}), step).await;
}

/// What was shown since, without the label of what may be a copy: how often, and how often without a label.
fn shown(double: &TelegramDouble, ada: &Person, before: usize, text: &str) -> (usize, usize) {
    let texts = double.bot_texts(ada.chat()).split_off(before);
    let shown = texts.iter().filter(|it| it.contains(text)).count();
    (shown, texts.iter().filter(|it| *it == text).count())
}

async fn until_shown(double: &TelegramDouble, ada: &Person, before: usize, text: &str) {
    let about = format!("{text} is shown");
    eventually(&about, async || (shown(double, ada, before, text).0 > 0).then_some(())).await;
}

/// J4. The caller repeats the request, and the message is shown once; a copy that may be one has its label.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_is_shown_once_whatever_step_the_process_ends_at() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (mut gateway, ada) = met(&double, &agent).await;

    for step in STEPS {
        let before = double.bot_texts(ada.chat()).len();
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        let body =
            json!({ "to": format!("telegram.test/{}", ada.chat()), "text": format!("After {step}."), "reason": step });
        posts(&gateway, "messages", &body, step).await;
        gateway.until_crashed().await;
        gateway.restart().await;
        assert_eq!(audited(&gateway, step).await, usize::from(step != "received:1"), "{step}");
        assert_eq!(posts(&gateway, "messages", &body, step).await, Some(StatusCode::ACCEPTED), "{step}");
        let text = format!("After {step}.");
        until_shown(&double, &ada, before, &text).await;
        gateway.until_settled().await;
        assert_eq!(audited(&gateway, step).await, 1, "{step}: the repeated request has the stored answer");
        gateway.stop().await;

        let (all, plain) = shown(&double, &ada, before, &text);
        let most = if step == "attempt_ended:1" { 2 } else { 1 };
        assert!(plain <= 1 && (1..=most).contains(&all), "{step}: {:?}", double.bot_texts(ada.chat()));
    }
    assert_eq!(gateway.undeliverable(), 0);
    assert_eq!(agent.calls().len(), 1, "the agent is not asked");
}

/// D1. A schedule's time comes, and the process ends at a step of what it begins.
async fn a_time_is_acted_on_once(steps: &[&str], what: &str, text: &str) {
    // The draft of an answer may be left beside it, which then says that it replaces it.
    let has_draft = what == "prompt";
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (mut gateway, ada) = met(&double, &agent).await;

    for step in steps {
        let before = double.bot_texts(ada.chat()).len();
        gateway.restart().await;
        let to = format!("telegram.test/{}", ada.chat());
        runs_dying_at(&mut gateway, step, &json!({ "name": step, "every": "24h", "to": to, what: text })).await;
        until_shown(&double, &ada, before, "Hello.").await;
        gateway.until_settled().await;
        gateway.stop().await;

        let (all, plain) = shown(&double, &ada, before, "Hello.");
        let most = if has_draft || *step == "attempt_ended:1" { 2 } else { 1 };
        assert!(plain <= 1 && (1..=most).contains(&all), "{step}: {:?}", double.bot_texts(ada.chat()));
    }
    assert_eq!(gateway.undeliverable(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_scheduled_message_is_shown_once_whatever_step_the_process_ends_at() {
    a_time_is_acted_on_once(&STEPS, "message", "Hello.").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prompt_is_answered_once_whatever_step_the_process_ends_at() {
    a_time_is_acted_on_once(&TURN_STEPS, "prompt", "Say hello.").await;
}

/// The time passes while the gateway is down, and it is started twice afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_time_that_passes_while_the_gateway_is_down_is_made_up_for_once() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (mut gateway, ada) = met(&double, &agent).await;
    gateway.restart().await;
    let to = format!("telegram.test/{}", ada.chat());
    let made = gateway.output_of(&[
        "schedule",
        "add",
        "--in",
        "2s",
        "--to",
        &to,
        "--message",
        "It is time.",
        "--name",
        "soon",
    ]);
    assert!(made.starts_with(&format!("Schedule soon for {to}: next at ")), "{made}");
    gateway.kill();
    let soon = SystemClock.now() + Duration::from_secs(2);
    eventually("the time has passed", async || (SystemClock.now() > soon).then_some(())).await;

    gateway.restart().await;
    ada.hears("It is time.").await;
    gateway.until_settled().await;
    gateway.kill();
    gateway.restart().await;
    gateway.until_settled().await;
    gateway.stop().await;

    assert_eq!(shown(&double, &ada, 0, "It is time."), (1, 1));
}

/// "Remind me in two seconds": the model makes a schedule with its tool, and the reminder comes, also if the process is killed
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_reminds_of_something() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::schedules(ScheduleCall::Add {
            name: "tea".to_owned(),
            when: When::At(SystemClock.now() + Duration::from_secs(2)),
            time_zone: "UTC".into(),
            action: ScheduledAction::Message("Your tea!".to_owned()),
        }),
        _ => Script::replies("I will."),
    })
    .await;
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("Remind me of my tea.");
    ada.hears("I will.").await;
    gateway.until_settled().await;
    let told = agent.calls()[1].body["messages"].to_string();
    assert!(told.contains("Your tea!") && told.contains("next"), "{told}");
    gateway.kill();
    gateway.restart().await;
    ada.hears("Your tea!").await;
    gateway.until_settled().await;

    assert_eq!(double.bot_texts(ada.chat()), ["I will.", "Your tea!"]);
    let listed = gateway.output_of(&["schedule", "list", "--json"]);
    assert!(listed.contains("\"agent main\"") && listed.contains("\"tea\""), "{listed}");
}

/// After two messages the cheaper agent is asked to sum up, and says something only if it wants to.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_trigger_asks_an_agent_to_sum_up() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| match &*call.said() {
        said if said.contains("Sum it up.") => Script::replies("So much for that."),
        _ => Script::replies("Yes."),
    })
    .await;
    let trigger = "[triggers.summary]\nchannel = \"telegram\"\nafter_messages = 2\nprompt = \"Sum it up.\"\n";
    let mut gateway = between(&double, &agent).config(trigger).start().await;
    let ada = double.person("Ada");

    ada.says("one");
    ada.hears("Yes.").await;
    gateway.until_settled().await;
    gateway.kill();
    gateway.restart().await;
    ada.says("two");
    ada.hears("So much for that.").await;
    gateway.until_settled().await;

    let shown = double.bot_texts(ada.chat());
    assert_eq!(shown.iter().filter(|text| *text == "So much for that.").count(), 1, "{shown:?}");
}
