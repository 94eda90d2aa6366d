//! What happens elsewhere comes in at a hook and is told on Telegram.

use hmac::{Hmac, Mac};
use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, TURN_STEPS, eventually};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::between;

const SECRET: &str = "the secret of these tests";

/// A hook as GitHub calls it, with these keys.
fn hook(ada: &Person, keys: &str) -> String {
    format!(
        "[channels.webhook.github]\nhub_secret = \"{SECRET}\"\ndeliver_to = \"telegram.test/{}\"\n{keys}",
        ada.chat()
    )
}

/// Something happens at GitHub, in a delivery that is the same for an equal body; `None` if the gateway does not answer.
async fn happens(gateway: &Gateway, body: &Value) -> Option<StatusCode> {
    let delivery: String = hex::encode(body.to_string()).chars().take(60).collect();
    happens_in(gateway, body, &delivery).await
}

async fn happens_in(gateway: &Gateway, body: &Value, delivery: &str) -> Option<StatusCode> {
    let body = body.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key fits");
    mac.update(body.as_bytes());
    let request = gateway
        .hook("github", "")
        .bare()
        .header("content-type", "application/json")
        .header("x-github-event", "issues")
        .header("x-github-delivery", delivery)
        .header("x-hub-signature-256", format!("sha256={}", hex::encode(mac.finalize().into_bytes())))
        .body(body);
    request.send().await.ok().map(|response| response.status())
}

fn opened(title: &str) -> Value {
    json!({ "action": "opened", "issue": { "title": title }, "sender": { "login": "eve" } })
}

/// J4. The agent speaks only of what is worth it, and what a stranger wrote does not pass for what it is told to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agent_tells_of_what_happens_elsewhere() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| match call.said() {
        said if said.contains("It burns") => Script::replies("Something burns."),
        _ => Script::is_silent("it does not matter"),
    })
    .await;
    let ada = double.person("Ada");
    let hook = hook(&ada, "owes = \"nothing\"\nprompt = \"Tell Ada.\"\n");
    let gateway = between(&double, &agent).config(&hook).start().await;

    assert_eq!(happens(&gateway, &opened("A typo")).await, Some(StatusCode::ACCEPTED));
    assert_eq!(happens(&gateway, &opened("It burns")).await, Some(StatusCode::ACCEPTED));
    ada.hears("Something burns.").await;

    assert_eq!(double.bot_texts(ada.chat()), ["Something burns."]);
    let asked: Value = serde_json::from_str(&agent.calls()[1].last_message()).expect("a frame");
    assert_eq!(asked["task"], "Tell Ada.");
    assert_eq!(asked["quoted"]["from"], json!({ "name": "webhook.github", "let_in": false }));
    assert!(asked["quoted"]["text"].as_str().is_some_and(|text| text.contains("It burns")), "{asked}");
}

/// No agent is asked, and a stranger's words are no markup.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_happens_elsewhere_is_sent_as_the_template_says() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = double.person("Ada");
    let template = "deliver_only = true\ntemplate = \"\"\"\n{% if body.action == 'opened' %}**{{ body.sender.login }}** in \
        {{ headers['x-github-event'] }}: {{ body.issue.title }}{% endif %}\"\"\"\n";
    let gateway = between(&double, &agent).config(&hook(&ada, template)).start().await;

    assert_eq!(happens(&gateway, &json!({ "action": "closed" })).await, Some(StatusCode::NO_CONTENT));
    assert_eq!(happens(&gateway, &opened("*It* [burns](https://evil.example)")).await, Some(StatusCode::ACCEPTED));
    ada.hears("eve in issues: *It* [burns](https://evil.example)").await;

    assert_eq!(double.bot_texts(ada.chat()).len(), 1);
    assert_eq!(agent.calls().len(), 0);
}

/// A backup that fails tonight as last night is told again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_equal_event_in_another_delivery_is_told_again() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = double.person("Ada");
    let gateway = between(&double, &agent).config(&hook(&ada, "deliver_only = true\n")).start().await;
    let failed = json!({ "message": "The backup failed." });

    for delivery in ["one", "one", "two"] {
        assert_eq!(happens_in(&gateway, &failed, delivery).await, Some(StatusCode::ACCEPTED));
    }
    gateway.until_settled().await;

    assert_eq!(double.bot_texts(ada.chat()), ["The backup failed.", "The backup failed."]);
}

/// D1. GitHub sends it again, and it is told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_is_told_once_whatever_step_the_process_ends_at() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let ada = double.person("Ada");
    let mut gateway = between(&double, &agent).config(&hook(&ada, "owes = \"nothing\"\n")).start().await;
    gateway.stop().await;

    for step in TURN_STEPS {
        let before = double.bot_texts(ada.chat()).len();
        let shown = || double.bot_texts(ada.chat()).split_off(before);
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        happens(&gateway, &opened(step)).await;
        gateway.until_crashed().await;
        gateway.restart().await;
        assert_eq!(happens(&gateway, &opened(step)).await, Some(StatusCode::ACCEPTED), "{step}");
        eventually(step, async || shown().iter().any(|text| text.contains("Hello.")).then_some(())).await;
        gateway.until_settled().await;
        gateway.stop().await;

        // The draft of an answer may be left beside it, which then says that it replaces it.
        let plain = shown().iter().filter(|text| *text == "Hello.").count();
        assert!(plain <= 1 && shown().len() <= 2, "{step}: {:?}", shown());
    }
    assert_eq!(gateway.undeliverable(), 0);
}
